import { setMaxListeners } from 'node:events';
import { Readable } from 'node:stream';
import { Agent, type Dispatcher } from 'undici';
import type { HttpAnswer, HttpRequest, RequestBody, Transport } from './transport.ts';

export interface TransportOptions {
  /** An undici dispatcher, for proxies, connection limits or tests. Not in browsers. */
  dispatcher?: Dispatcher;
}

const USER_AGENT = 'palestra-client/0.1.0';

export function createTransport({ dispatcher: given }: TransportOptions): Transport {
  // The client enforces the deadlines: a prompt can wait half an hour for setup.
  const dispatcher = given ?? new Agent({ headersTimeout: 0, bodyTimeout: 0, keepAliveTimeout: 30_000 });
  return {
    send: (request) =>
      new Promise((resolve, reject) => {
        const { origin, path, headers, body } = request;
        const exchange = new Exchange(request, resolve, reject);
        dispatcher.dispatch(
          {
            origin,
            path,
            method: request.method as Dispatcher.HttpMethod,
            headers: { 'user-agent': USER_AGENT, ...headers },
            body: body === null || typeof body === 'string' ? body : streamOf(body),
          },
          exchange,
        );
      }),
    share: (signal) => setMaxListeners(0, signal),
    close: async () => {
      if (given === undefined) await dispatcher.close();
    },
  };
}

function streamOf(body: Exclude<RequestBody, string>): Readable {
  if (body instanceof Readable) return body;
  return Readable.from(body instanceof Blob ? body.stream() : body);
}

/** One request and its response, without the streams of undici's `request`, which cost as much as a short call. */
class Exchange implements HttpAnswer, Dispatcher.DispatchHandler {
  status = 0;
  #headers: Record<string, string | string[] | undefined> = {};
  readonly #resolve: (answer: HttpAnswer) => void;
  readonly #reject: (error: Error) => void;
  #controller: Dispatcher.DispatchController | null = null;
  /** Pieces that arrived before a reader. */
  #early: Uint8Array[] = [];
  #onBytes: (bytes: Uint8Array) => void = (bytes) => void this.#early.push(bytes);
  #end: { error: Error | null } | null = null;
  #onEnd: () => void = () => {};

  constructor({ onAbort }: HttpRequest, resolve: (answer: HttpAnswer) => void, reject: (error: Error) => void) {
    this.#resolve = resolve;
    this.#reject = reject;
    onAbort(() => this.#abort());
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#end) controller.abort(this.#end.error!);
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: Record<string, string | string[] | undefined>,
  ): void {
    if (status < 200) return;
    this.status = status;
    this.#headers = headers;
    this.#resolve(this);
  }

  onResponseData(_controller: Dispatcher.DispatchController, bytes: Uint8Array): void {
    // Undici delivers an empty piece after a pause.
    if (bytes.length > 0) this.#onBytes(bytes);
  }

  onResponseEnd(): void {
    this.#finish(null);
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#finish(error);
  }

  header(name: string): string | null {
    const value = this.#headers[name];
    return typeof value === 'string' ? value : null;
  }

  async text(): Promise<string> {
    const pieces: Uint8Array[] = [];
    await this.read((bytes) => void pieces.push(bytes));
    return (pieces.length === 1 ? Buffer.from(pieces[0]!) : Buffer.concat(pieces)).toString('utf8');
  }

  read(onBytes: (bytes: Uint8Array) => void): Promise<void> {
    return new Promise((resolve, reject) => {
      for (const bytes of this.#early.splice(0)) onBytes(bytes);
      this.#onBytes = onBytes;
      this.#onEnd = () => (this.#end!.error ? reject(this.#end!.error) : resolve());
      if (this.#end) this.#onEnd();
    });
  }

  async *chunks(): AsyncGenerator<Uint8Array> {
    const queue: Uint8Array[] = [];
    let wake = () => {};
    const ended = this.read((bytes) => {
      queue.push(bytes);
      this.#controller!.pause();
      wake();
    });
    ended.then(
      () => wake(),
      () => wake(),
    );
    try {
      for (;;) {
        while (queue.length > 0) yield queue.shift()!;
        if (this.#end) return await ended;
        this.#controller!.resume();
        if (queue.length === 0 && !this.#end) await new Promise<void>((resolve) => (wake = resolve));
      }
    } finally {
      // Ends the connection of a reader that stopped early.
      this.#abort();
    }
  }

  #abort(): void {
    if (this.#end) return;
    const error = new Error('The request was aborted.');
    this.#finish(error);
    this.#controller?.abort(error);
  }

  #finish(error: Error | null): void {
    if (this.#end) return;
    this.#end = { error };
    if (this.status === 0) this.#reject(error ?? new Error('The response has no head.'));
    this.#onEnd();
  }
}
