import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import type { Duplex } from 'node:stream';
import { connect as connectTls } from 'node:tls';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Agent } from 'undici';
import { onDelivery } from './ors/delivery.ts';

/** Marks a request that another process of this service passes on; such a one is never passed on again. */
export const FORWARDED = 'x-palestra-forwarded';
/** On the answer to a forwarded call: its task id, for whoever watches the client's connection. */
export const CALL_HEADER = 'x-palestra-call';
/** On an answer: the session is not here any more, nothing was done. */
export const MOVED_HEADER = 'x-palestra-moved';

const HOP_BY_HOP = new Set([
  'connection',
  'keep-alive',
  'transfer-encoding',
  'upgrade',
  'proxy-connection',
  'te',
  'trailer',
  'expect',
  'host',
]);
/** Shorter than our own servers keep idle connections. */
const KEEP_ALIVE_MS = 30_000;

/** What became of a request that was passed on: answered, or to be asked again because its session moved or its owner is silent. */
export type Forwarding = 'answered' | 'moved' | 'unanswered';

/** Passes requests on to the process that serves their session, with the client's own credentials, in one hop. */
export class Forwarder {
  readonly #agent = new Agent({
    connections: 1_024,
    pipelining: 1,
    keepAliveTimeout: KEEP_ALIVE_MS,
    headersTimeout: 0,
    bodyTimeout: 0,
    connect: { timeout: 2_000 },
  });

  constructor(
    readonly replicaId: string,
    /** Told of a forwarded call whose client broke off at the end. */
    readonly onBroken: (taskId: string) => void,
  ) {}

  async pass(request: FastifyRequest, reply: FastifyReply, address: string): Promise<Forwarding> {
    const gone = new AbortController();
    const onClose = () => {
      if (!reply.raw.writableFinished) gone.abort();
    };
    reply.raw.once('close', onClose);
    let answer;
    try {
      answer = await this.#agent.request({
        origin: address,
        path: request.raw.url ?? '/',
        method: request.method as 'GET',
        headers: { ...this.#headers(request) },
        body: bodyOf(request),
        signal: gone.signal,
      });
    } catch {
      reply.raw.off('close', onClose);
      if (!gone.signal.aborted) return 'unanswered';
      reply.hijack();
      return 'answered';
    }
    if (answer.headers[MOVED_HEADER] !== undefined) {
      reply.raw.off('close', onClose);
      await answer.body.dump();
      return 'moved';
    }
    const { [CALL_HEADER]: taskId, ...headers } = answer.headers;
    if (typeof taskId === 'string') onDelivery(request, reply, (how) => how === 'broke' && this.onBroken(taskId));
    reply.hijack();
    reply.raw.on('error', () => {});
    reply.raw.writeHead(
      answer.statusCode,
      Object.fromEntries(Object.entries(headers).filter(([name]) => !HOP_BY_HOP.has(name))) as Record<string, string>,
    );
    // A stream must not wait for its first piece before the client sees that it is open.
    reply.raw.flushHeaders();
    answer.body.on('error', () => reply.raw.destroy());
    answer.body.pipe(reply.raw);
    return 'answered';
  }

  /** An upgrade, with all that goes over its socket afterwards. False when the other process does not answer; then nothing was sent back. */
  async passUpgrade(raw: IncomingMessage, path: string, socket: Duplex, head: Buffer, address: string): Promise<boolean> {
    const { protocol, hostname, port } = new URL(address);
    const secure = protocol === 'https:';
    const target = { host: hostname.replace(/^\[|\]$/g, ''), port: Number(port) || (secure ? 443 : 80), timeout: 2_000 };
    const upstream = secure ? connectTls({ ...target, servername: hostname }) : connect(target);
    try {
      await once(upstream, secure ? 'secureConnect' : 'connect', { signal: AbortSignal.timeout(2_000) });
    } catch {
      upstream.destroy();
      return false;
    }
    upstream.setTimeout(0);
    const headers = { ...raw.headers, [FORWARDED]: this.replicaId };
    const lines = Object.entries(headers).flatMap(([name, value]) => [value ?? []].flat().map((one) => `${name}: ${one}`));
    upstream.write(`GET ${path} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`);
    if (head.length > 0) upstream.write(head);
    const end = () => {
      upstream.destroy();
      socket.destroy();
    };
    for (const one of [upstream, socket]) one.on('error', end).on('close', end);
    upstream.pipe(socket).pipe(upstream);
    return true;
  }

  async close(): Promise<void> {
    await this.#agent.destroy();
  }

  #headers(request: FastifyRequest): Record<string, string> {
    const headers: Record<string, string> = { [FORWARDED]: this.replicaId };
    for (const [name, value] of Object.entries(request.headers)) {
      if (HOP_BY_HOP.has(name) || name === 'content-length' || name === 'content-encoding' || value === undefined) continue;
      headers[name] = Array.isArray(value) ? value.join(', ') : value;
    }
    return headers;
  }
}

function bodyOf(request: FastifyRequest): Buffer | string | null {
  if (request.body === undefined || request.body === null) return null;
  if (Buffer.isBuffer(request.body)) return request.body;
  return JSON.stringify(request.body);
}
