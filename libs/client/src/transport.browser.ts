import type { RequestBody, Transport } from './transport.ts';

/** None in browsers. */
export type TransportOptions = Record<never, never>;

export function createTransport(_options: TransportOptions): Transport {
  return {
    async send({ origin, path, method, headers, body, onAbort }) {
      const controller = new AbortController();
      onAbort(() => controller.abort());
      const { signal } = controller;
      const options = { method, headers, signal, cache: 'no-store', credentials: 'omit', redirect: 'error' } as const;
      const response = await fetch(origin + path, { ...options, body: await bodyOf(body) }).catch((error: unknown) => {
        throw signal.aborted ? error : explain(error);
      });
      return {
        status: response.status,
        header: (name) => response.headers.get(name),
        text: () => response.text(),
        read: async (onBytes) => {
          for await (const bytes of chunksOf(response)) onBytes(bytes);
        },
        chunks: () => chunksOf(response),
      };
    },
    share() {},
    close: async () => {},
  };
}

/** Browsers send no stream over HTTP/1.1, so the parts become a `Blob`, which a browser may keep on the disk. */
async function bodyOf(body: RequestBody | null): Promise<string | Blob | null> {
  if (body === null || typeof body === 'string' || body instanceof Blob) return body;
  const parts: Uint8Array<ArrayBuffer>[] = [];
  for await (const part of body) parts.push(part as Uint8Array<ArrayBuffer>);
  return new Blob(parts);
}

/** Safari's streams are no async iterables. */
async function* chunksOf({ body }: Response): AsyncGenerator<Uint8Array> {
  if (body === null) return;
  const reader = body.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } finally {
    // Ends the connection of a reader that stopped early.
    reader.cancel().catch(() => {});
  }
}

/** A browser hides the reason from the page. */
function explain(error: unknown): Error {
  const reason = 'the service does not answer, or its setting PALESTRA_ALLOWED_ORIGINS does not contain the origin of this page';
  return new Error(reason, { cause: error });
}
