import { PalestraError } from '@palestra/protocol';
import WebSocket from 'ws';
import { ANSWER_LIMITS, answerTooLarge, assertParsable, type OutboundPolicy, unrestricted } from '@palestra/outbound';
import { ConnectionFailed } from './connection.ts';
import { DuplicateReplies } from './duplicate-replies.ts';
import { isErrorFrame } from '../wire/server-replies.ts';

export interface SocketTarget {
  url: string;
  headers: Record<string, string>;
  /** Which addresses are allowed; default: all. */
  outbound?: OutboundPolicy;
}

/** uvicorn closes the socket on messages over 16 MiB. */
export const MAX_SENT_BYTES = 16 * 1024 * 1024 - 1;
const HANDSHAKE_MS = 10_000;
const CLOSE_MS = 2_000;

/** The server refused the upgrade. */
export class UpgradeRefused extends Error {
  constructor(readonly status: number) {
    super(`HTTP ${status}`);
    this.name = 'UpgradeRefused';
  }
}

/** The socket cannot be used any more. */
export class SocketBroken extends Error {
  constructor(
    why: string,
    /** A message was on its way; whether the server has seen it is unknown. */
    readonly sent: boolean,
    /** The server closed with 1000 before it sent anything, which can be a refusal for capacity. */
    readonly closedAtOnce: boolean,
    /** The error to throw instead, e.g. for a frame that is too large. */
    readonly refusal: PalestraError | null = null,
  ) {
    super(why);
    this.name = 'SocketBroken';
  }
}

interface Waiter {
  /** Called with the frame. */
  resolve(text: string): void;
  reject(error: unknown): void;
}

const EXTRA_REPLY = 'it sent more replies than messages were sent';
const FENCE = 'palestra-fence-';
let fences = 0;
/** `ws` masks and frames a Buffer in one piece. */
const TEXT = { binary: false } as const;

/**
 * One socket of one session: a message, its reply, the next message. The wire has no request ids. Everything that could shift replies by
 * one therefore ends the socket: an unexpected frame, an aborted wait, a frame of the wrong kind. A duplicate reply can still arrive after
 * the next message was sent. Replies that may be duplicates (see `DuplicateReplies`) are verified with a fence: a message of an unknown
 * type, whose refusal quotes it. If the reply was a duplicate, the true reply comes before the refusal.
 */
export class UpstreamSocket {
  readonly #socket: WebSocket;
  #waiter: Waiter | null = null;
  /** An error frame before the first message: the server refused the session. */
  #refusal: string | null = null;
  #hasReceived = false;
  readonly #duplicates = new DuplicateReplies();
  #broken: SocketBroken | null = null;
  /** Signal of the last message. Most messages of a session share one, so the listener stays. */
  #signal: AbortSignal | null = null;
  readonly #onAbort = (): void => {
    if (this.#waiter === null) return;
    this.#takeWaiter().reject(this.#signal!.reason);
    this.#fail('the wait for its reply was aborted');
  };
  readonly #onSent = (error?: Error | null): void => {
    if (error) this.#fail(`it took no message (${error.message})`);
  };
  /** When the server last sent anything, pongs included: a time of `performance.now()`, which nobody can set. */
  heardAt = performance.now();

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.on('message', (data, isBinary) => this.#receive(data as Buffer, isBinary));
    socket.on('pong', () => (this.heardAt = performance.now()));
    socket.on('ping', () => (this.heardAt = performance.now()));
    // `close` follows with the same information.
    socket.on('error', (error) => {
      const isTooLong = (error as NodeJS.ErrnoException).code === 'WS_ERR_UNSUPPORTED_MESSAGE_LENGTH';
      if (isTooLong) this.#failWith(answerTooLarge(ANSWER_LIMITS.call, error));
      else this.#fail(`it broke the protocol or the connection (${(error as NodeJS.ErrnoException).code ?? error.message})`);
    });
    socket.on('close', (code) => this.#end(`it closed the connection (${code})`, code === 1000));
  }

  /** Rejects with `UpgradeRefused`, `ConnectionFailed`, `upstream_address_refused`, or the signal's reason. */
  static async open({ url, headers, outbound = unrestricted }: SocketTarget, signal: AbortSignal): Promise<UpstreamSocket> {
    const { hostname, port, protocol } = new URL(url);
    const portNumber = Number(port) || (protocol === 'wss:' ? 443 : 80);
    await outbound.check(hostname, portNumber);
    signal.throwIfAborted();
    const socket = new WebSocket(url, {
      headers,
      perMessageDeflate: false,
      maxPayload: ANSWER_LIMITS.call,
      handshakeTimeout: HANDSHAKE_MS,
      // Missing in the types of `ws`, which passes it on to `net.connect`.
      ...({ lookup: outbound.lookup(portNumber) } as object),
    });
    const opened = new UpstreamSocket(socket);
    return new Promise((resolve, reject) => {
      const settle = (finish: () => void) => {
        signal.removeEventListener('abort', onAbort);
        finish();
      };
      const onAbort = () => settle(() => (socket.terminate(), reject(signal.reason as Error)));
      signal.addEventListener('abort', onAbort, { once: true });
      socket.once('open', () => settle(() => resolve(opened)));
      socket.once('error', (error) => settle(() => reject(error instanceof PalestraError ? error : new ConnectionFailed(error))));
      socket.once('unexpected-response', (request, response) => {
        settle(() => reject(new UpgradeRefused(response.statusCode ?? 0)));
        response.resume();
        request.destroy();
      });
    });
  }

  get isOpen(): boolean {
    return this.#broken === null;
  }

  /**
   * Sends one message and waits for its reply. Never call it twice at the same time. Rejects with `SocketBroken` or the signal's reason;
   * either ends the socket. `fits`: whether a frame can be the reply.
   */
  exchange(message: string, fits: (reply: string) => boolean, signal: AbortSignal): Promise<string> {
    return new Promise((resolve, reject) => {
      const onReply = (reply: string): void => {
        if (isRefusalOf(reply, FENCE) || !fits(reply)) reject(this.#replyLost('it sent a reply to another message than the last'));
        else if (!this.#duplicates.mayBeDuplicate(message, reply)) resolve(reply);
        else this.#verify(signal).then(() => resolve(reply), reject);
      };
      this.#send(message, { resolve: onReply, reject }, signal);
    });
  }

  /** Rejects if the last reply was a duplicate. */
  async #verify(signal: AbortSignal): Promise<void> {
    if ((await this.fence(signal)) !== null) throw this.#replyLost(EXTRA_REPLY);
    this.#duplicates.verified();
  }

  /**
   * Sends a message of an unknown type, which changes nothing. Resolves with null when its refusal arrives, or with the error frame of a
   * server that refuses the session.
   */
  async fence(signal: AbortSignal): Promise<string | null> {
    const type = `${FENCE}${(fences += 1)}`;
    const reply = await new Promise<string>((resolve, reject) => this.#send(`{"type":"${type}"}`, { resolve, reject }, signal));
    if (isRefusalOf(reply, type)) return null;
    if (isErrorFrame(reply)) return reply;
    throw this.#replyLost(EXTRA_REPLY);
  }

  /** Never rejects. */
  ping(): void {
    if (this.#socket.readyState === WebSocket.OPEN) this.#socket.ping();
  }

  /** Closes the socket and waits a short time until the server has closed it too, so that its slot is free. */
  async close(): Promise<void> {
    this.#end('it was closed');
    if (this.#socket.readyState === WebSocket.CLOSED) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(() => this.#socket.terminate(), CLOSE_MS);
      this.#socket.once('close', () => {
        clearTimeout(timer);
        resolve();
      });
      if (this.#socket.readyState === WebSocket.OPEN) this.#socket.send('{"type":"close"}', () => {});
      this.#socket.close(1000);
    });
  }

  /** Terminates the connection. */
  drop(why: string): void {
    this.#fail(why);
  }

  #send(message: string, waiter: Waiter, signal: AbortSignal): void {
    if (this.#refusal !== null) {
      const refusal = this.#refusal;
      this.#refusal = null;
      return waiter.resolve(refusal);
    }
    if (this.#broken !== null) return waiter.reject(new SocketBroken(this.#broken.message, false, this.#broken.closedAtOnce));
    if (this.#socket.readyState !== WebSocket.OPEN) return this.#rejectOnClose(waiter);
    if (signal.aborted) {
      this.#fail('the wait for its reply was aborted');
      return waiter.reject(signal.reason);
    }
    this.#listenTo(signal);
    this.#waiter = waiter;
    this.#socket.send(Buffer.from(message), TEXT, this.#onSent);
  }

  /** Returns the waiter and clears it. */
  #takeWaiter(): Waiter {
    const waiter = this.#waiter!;
    this.#waiter = null;
    return waiter;
  }

  /** Ends the wait when `signal` aborts; null: nothing waits. */
  #listenTo(signal: AbortSignal | null): void {
    if (signal === this.#signal) return;
    this.#signal?.removeEventListener('abort', this.#onAbort);
    signal?.addEventListener('abort', this.#onAbort);
    this.#signal = signal;
  }

  /** The server is closing the socket; its close code comes with `close`. */
  #rejectOnClose(waiter: Waiter): void {
    const timer = setTimeout(() => this.#socket.terminate(), CLOSE_MS);
    this.#socket.once('close', () => {
      clearTimeout(timer);
      waiter.reject(this.#end('it closed the connection'));
    });
  }

  #receive(data: Buffer, isBinary: boolean): void {
    this.heardAt = performance.now();
    if (this.#broken !== null) return;
    if (isBinary) return void this.#fail('it sent a binary frame');
    try {
      assertParsable(data);
    } catch (error) {
      return void this.#fail(`it sent a reply that is not read: ${(error as Error).message}`);
    }
    const text = data.toString('utf8');
    const first = !this.#hasReceived;
    this.#hasReceived = true;
    if (this.#waiter !== null) return this.#takeWaiter().resolve(text);
    if (first && isErrorFrame(text)) this.#refusal = text;
    else this.#fail('it sent an unexpected frame');
  }

  #fail(why: string): SocketBroken {
    const broken = this.#end(why);
    this.#socket.terminate();
    return broken;
  }

  /** A frame was not read, so later replies cannot be matched. */
  #failWith(refusal: PalestraError): void {
    this.#end(refusal.message, false, refusal);
    this.#socket.terminate();
  }

  /** The reply to the last message is lost. */
  #replyLost(why: string): SocketBroken {
    this.#fail(why);
    return new SocketBroken(why, true, false);
  }

  /** Ignores all later frames. */
  #end(why: string, closedNormally = false, refusal: PalestraError | null = null): SocketBroken {
    this.#broken ??= new SocketBroken(why, this.#waiter !== null, closedNormally && !this.#hasReceived, refusal);
    if (this.#waiter !== null) this.#takeWaiter().reject(this.#broken);
    this.#listenTo(null);
    return this.#broken;
  }
}

/** Whether `reply` is an error that quotes `type`. Observations can contain any text. */
const isRefusalOf = (reply: string, type: string): boolean => isErrorFrame(reply) && reply.includes(type);
