import { once } from 'node:events';
import type { FastifyReply } from 'fastify';
import { onClosed } from '../../../platform/http/on-closed.ts';

/** Interval of the empty lines that keep proxies from closing a silent response. */
const KEEP_ALIVE_MS = 15_000;

/**
 * Sends values as lines of JSON, as fast as the client reads them. A failure after the first byte breaks the connection. Resolves at the end.
 */
export async function replyWithLines(reply: FastifyReply, lines: (signal: AbortSignal) => AsyncIterable<unknown>): Promise<void> {
  const { raw } = reply;
  const closed = new AbortController();
  reply.hijack();
  raw.on('error', () => {});
  onClosed(raw, () => closed.abort());
  raw.writeHead(200, { 'content-type': 'application/x-ndjson; charset=utf-8', 'x-accel-buffering': 'no' });
  raw.flushHeaders();
  const keepAlive = setInterval(() => raw.write('\n'), KEEP_ALIVE_MS);
  try {
    for await (const line of lines(closed.signal)) {
      if (!raw.write(`${JSON.stringify(line)}\n`)) await once(raw, 'drain', { signal: closed.signal });
    }
    raw.end();
  } catch {
    raw.destroy();
  } finally {
    clearInterval(keepAlive);
  }
}
