import type { FetchLike } from '@modelcontextprotocol/sdk/shared/transport.js';
import { type Agent, fetch } from 'undici';

/** The answer of a request ended; `resumable`: its stream had event ids, so the SDK goes on to ask for the rest. */
export type Ended = (id: string | number, resumable: boolean) => void;

/** The SDK reads the last event of a stream a moment after we saw it pass. */
const READ_MS = 100;

/**
 * `fetch` that tells when the answer of a JSON-RPC request is over, however it ended: the SDK lets whoever waits for a reply wait on when
 * its stream broke.
 */
export function watchedFetch(agent: Agent, ended: Ended): FetchLike {
  return async (url, init) => {
    const answer = (await fetch(url, { ...init, dispatcher: agent } as Parameters<typeof fetch>[1])) as unknown as Response;
    const id = init?.method === 'POST' ? idOf(init.body) : null;
    if (id === null || answer.body === null || !answer.headers.get('content-type')?.startsWith('text/event-stream')) return answer;
    let resumable = false;
    const body = watched(answer.body, {
      piece: (text) => (resumable ||= /^id:/m.test(text)),
      end: () => setTimeout(() => ended(id, resumable), READ_MS).unref(),
    });
    return new Response(body, { status: answer.status, statusText: answer.statusText, headers: answer.headers });
  };
}

function watched(body: ReadableStream<Uint8Array>, told: { piece(text: string): void; end(): void }): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  return new ReadableStream({
    async pull(controller) {
      try {
        const { done, value } = await reader.read();
        if (!done) {
          told.piece(Buffer.from(value).toString('latin1'));
          return controller.enqueue(value);
        }
        controller.close();
      } catch (error) {
        controller.error(error);
      }
      told.end();
    },
    async cancel(reason) {
      told.end();
      await reader.cancel(reason);
    },
  });
}

function idOf(body: unknown): string | number | null {
  if (typeof body !== 'string') return null;
  const { id, method } = JSON.parse(body) as { id?: unknown; method?: unknown };
  return typeof method === 'string' && (typeof id === 'string' || typeof id === 'number') ? id : null;
}
