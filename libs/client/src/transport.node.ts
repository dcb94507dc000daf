import { Readable } from 'node:stream';
import { Agent, type Dispatcher } from 'undici';
import type { RequestBody, Transport } from './transport.ts';

export interface TransportOptions {
  /** An undici dispatcher, for proxies, connection limits or tests. Not in browsers. */
  dispatcher?: Dispatcher;
}

const USER_AGENT = 'palestra-client/0.1.0';

export function createTransport({ dispatcher: given }: TransportOptions): Transport {
  // The client enforces the deadlines: a prompt can wait half an hour for setup.
  const dispatcher = given ?? new Agent({ headersTimeout: 0, bodyTimeout: 0, keepAliveTimeout: 30_000 });
  return {
    async send({ origin, path, method, headers, body, signal }) {
      const answer = await dispatcher.request({
        origin,
        path,
        method: method as Dispatcher.HttpMethod,
        headers: { 'user-agent': USER_AGENT, ...headers },
        body: body === null || typeof body === 'string' ? body : streamOf(body),
        signal,
      });
      return {
        status: answer.statusCode,
        header: (name) => {
          const value = answer.headers[name];
          return typeof value === 'string' ? value : null;
        },
        text: () => answer.body.text(),
        chunks: () => answer.body,
      };
    },
    close: async () => {
      if (given === undefined) await dispatcher.close();
    },
  };
}

function streamOf(body: Exclude<RequestBody, string>): Readable {
  if (body instanceof Readable) return body;
  return Readable.from(body instanceof Blob ? body.stream() : body);
}
