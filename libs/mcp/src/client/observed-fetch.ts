import type { FetchLike } from '@modelcontextprotocol/sdk/shared/transport.js';
import { PalestraError } from '@palestra/protocol';
import type { Agent } from 'undici';
import { ANSWER_LIMITS, AnswerBytes, assertParsable, outboundFetch } from '@palestra/outbound';
import { EventLines } from './event-lines.ts';

export interface Watcher {
  /** The response of a request ended. `resumable`: its stream had event ids, so the SDK requests the rest. */
  ended(id: string | number, resumable: boolean): void;
  /** The server sent more than we read. */
  refused(error: PalestraError): void;
}

/** The SDK handles the last event of a stream after we see it. */
const READ_MS = 100;
/** Statuses without a body. */
const WITHOUT_BODY = new Set([204, 205, 304]);

/**
 * A `fetch` that limits response sizes and reports when the response of a JSON-RPC request has ended. The SDK itself keeps waiting for the
 * reply of a broken stream. Redirects within the server's origin are followed by the SDK.
 */
export function observedFetch(agent: Agent, watcher: Watcher): FetchLike {
  const send = outboundFetch(agent);
  return async (url, init) => {
    const answer = await send(url, init);
    if (answer.body === null || WITHOUT_BODY.has(answer.status)) return answer;
    const { status, statusText, headers } = answer;
    const request = init?.method === 'POST' ? requestOf(init.body) : null;
    if (!answer.ok || !headers.get('content-type')?.startsWith('text/event-stream')) {
      const bytes = await readWhole(answer.body, request?.method === 'tools/call' ? ANSWER_LIMITS.call : ANSWER_LIMITS.metadata);
      return new Response(bytes as unknown as ArrayBuffer, { status, statusText, headers });
    }
    let resumable = false;
    const body = observeBody(answer.body, {
      lines: (text) => (resumable ||= /^id:/m.test(text)),
      refused: (error) => watcher.refused(error),
      end: () => {
        if (request !== null) setTimeout(() => watcher.ended(request.id, resumable), READ_MS).unref();
      },
    });
    return new Response(body, { status, statusText, headers });
  };
}

async function readWhole(body: ReadableStream<Uint8Array>, limitBytes: number): Promise<Buffer> {
  const answer = new AnswerBytes(limitBytes);
  // Leaving the loop cancels the body.
  for await (const piece of body as unknown as AsyncIterable<Uint8Array>) answer.push(piece);
  assertParsable(answer.bytes);
  return answer.bytes;
}

function observeBody(
  body: ReadableStream<Uint8Array>,
  observer: { lines(text: string): void; refused(error: PalestraError): void; end(): void },
): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  const lines = new EventLines();
  return new ReadableStream({
    async pull(controller) {
      try {
        for (;;) {
          const { done, value } = await reader.read();
          if (done) break;
          const whole = lines.push(Buffer.from(value.buffer, value.byteOffset, value.byteLength));
          if (whole === null) continue;
          observer.lines(whole.toString('latin1'));
          return controller.enqueue(whole);
        }
        controller.close();
      } catch (error) {
        if (error instanceof PalestraError) {
          observer.refused(error);
          void reader.cancel(error).catch(() => {});
        }
        controller.error(error);
      }
      observer.end();
    },
    async cancel(reason) {
      observer.end();
      await reader.cancel(reason);
    },
  });
}

function requestOf(body: unknown): { id: string | number; method: string } | null {
  if (typeof body !== 'string') return null;
  const { id, method } = JSON.parse(body) as { id?: unknown; method?: unknown };
  return typeof method === 'string' && (typeof id === 'string' || typeof id === 'number') ? { id, method } : null;
}
