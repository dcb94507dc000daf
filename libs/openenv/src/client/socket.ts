import { PalestraError } from '@palestra/protocol';
import WebSocket from 'ws';
import { ANSWER_LIMITS, answerTooLarge, assertParsable, type OutboundPolicy, unrestricted } from '@palestra/outbound';
import { ConnectionFailed } from './connection.ts';
import { DuplicateReplies } from './duplicate-replies.ts';
import { isErrorFrame } from '../wire/server-replies.ts';

export interface SocketTarget {
  url: string;
  headers: Record<string, string>;
  /** Where its addresses may be; anywhere unless set. */
  outbound?: OutboundPolicy;
}

/** uvicorn takes 16 MiB and closes the socket on more. */
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

/** The socket is gone, for good. */
export class SocketBroken extends Error {
  constructor(
    why: string,
    /** A message was on its way: whether the server has seen it cannot be known. */
    readonly sent: boolean,
    /** The server closed with 1000 before it had said anything, which is how a refusal for capacity may look. */
    readonly closedAtOnce: boolean,
    /** Why it broke, where that has a code of its own: a frame that is not read. */
    readonly refusal: PalestraError | null = null,
  ) {
    super(why);
    this.name = 'SocketBroken';
  }
}

interface Waiter {
  /** Given what came. */
  hear(text: string): void;
  reject(error: unknown): void;
}

const ONE_TOO_MANY = 'it sent one reply more than it was asked for';
const FENCE = 'palestra-fence-';
let fences = 0;
/** Of a text that is given to `ws` as bytes: those are masked and framed in one piece. */
const TEXT = { binary: false } as const;

/**
 * One socket of one session: a message, its reply, the next message. There are no request ids on this wire, so whatever could shift
 * replies by one ends the socket: a frame that nobody waits for, a wait that is given up, a frame of another kind than its message asks for.
 * One shift is left: a reply that comes a second time when the next message is out already. What could be such a copy (see `DuplicateReplies`) is
 * believed only after a fence: a message of no known type, whose refusal quotes it. Had it been a copy, the true reply would come first.
 */
export class UpstreamSocket {
  readonly #socket: WebSocket;
  #waiter: Waiter | null = null;
  /** An error frame that came before the first message: the refusal of the session. */
  #refusal: string | null = null;
  #heard = false;
  readonly #duplicates = new DuplicateReplies();
  #broken: SocketBroken | null = null;
  /** Of the last message: most of a session have the same, and listening anew for each would cost as much as sending it. */
  #signal: AbortSignal | null = null;
  readonly #onAbort = (): void => {
    if (this.#waiter === null) return;
    this.#settle().reject(this.#signal!.reason);
    this.#fail('its reply was no longer waited for');
  };
  readonly #onSent = (error?: Error | null): void => {
    if (error) this.#fail(`it took no message (${error.message})`);
  };
  /** When the server last said anything, pongs included; milliseconds since the epoch. */
  heardAt = Date.now();

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.on('message', (data, isBinary) => this.#receive(data as Buffer, isBinary));
    socket.on('pong', () => (this.heardAt = Date.now()));
    socket.on('ping', () => (this.heardAt = Date.now()));
    // `close` follows, and says the same.
    socket.on('error', (error) => {
      const isTooLong = (error as NodeJS.ErrnoException).code === 'WS_ERR_UNSUPPORTED_MESSAGE_LENGTH';
      if (isTooLong) this.#refuse(answerTooLarge(ANSWER_LIMITS.call, error));
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
      // Not among the types of `ws`, which passes it on to `net.connect`.
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
   * Sends one message and waits for its one reply. Never two at the same time. Rejects with `SocketBroken`, or with the signal's reason, and
   * either way the socket is gone then. `fits` says whether a frame can be the reply to this message.
   */
  exchange(message: string, fits: (reply: string) => boolean, signal: AbortSignal): Promise<string> {
    return new Promise((resolve, reject) => {
      const hear = (reply: string): void => {
        if (quotes(reply, FENCE) || !fits(reply)) reject(this.#shifted('it sent a reply to another message than the last'));
        else if (!this.#duplicates.mayBeDuplicate(message, reply)) resolve(reply);
        else this.#verify(signal).then(() => resolve(reply), reject);
      };
      this.#send(message, { hear, reject }, signal);
    });
  }

  /** Rejects when the last reply was none to the last message. */
  async #verify(signal: AbortSignal): Promise<void> {
    if ((await this.fence(signal)) !== null) throw this.#shifted(ONE_TOO_MANY);
    this.#duplicates.verified();
  }

  /**
   * Asks for a sign of life that changes nothing: a message of no known type. Resolves with null when its refusal comes, with another error
   * frame of the server when it refuses the session instead.
   */
  async fence(signal: AbortSignal): Promise<string | null> {
    const type = `${FENCE}${(fences += 1)}`;
    const reply = await new Promise<string>((hear, reject) => this.#send(`{"type":"${type}"}`, { hear, reject }, signal));
    if (quotes(reply, type)) return null;
    if (isErrorFrame(reply)) return reply;
    throw this.#shifted(ONE_TOO_MANY);
  }

  /** Never rejects: a socket that does not take it is about to say so. */
  ping(): void {
    if (this.#socket.readyState === WebSocket.OPEN) this.#socket.ping();
  }

  /** Says goodbye, and waits until the server has hung up, so that it has its slot back; not for long. */
  async close(): Promise<void> {
    this.#end('it was closed');
    if (this.#socket.readyState === WebSocket.CLOSED) return;
    await new Promise<void>((resolve) => {
      const impatience = setTimeout(() => this.#socket.terminate(), CLOSE_MS);
      this.#socket.once('close', () => {
        clearTimeout(impatience);
        resolve();
      });
      if (this.#socket.readyState === WebSocket.OPEN) this.#socket.send('{"type":"close"}', () => {});
      this.#socket.close(1000);
    });
  }

  /** At once, without a goodbye. */
  drop(why: string): void {
    this.#fail(why);
  }

  #send(message: string, waiter: Waiter, signal: AbortSignal): void {
    if (this.#refusal !== null) {
      const refusal = this.#refusal;
      this.#refusal = null;
      return waiter.hear(refusal);
    }
    if (this.#broken !== null) return waiter.reject(new SocketBroken(this.#broken.message, false, this.#broken.closedAtOnce));
    if (this.#socket.readyState !== WebSocket.OPEN) return this.#hungUp(waiter);
    if (signal.aborted) {
      this.#fail('its reply was no longer waited for');
      return waiter.reject(signal.reason);
    }
    this.#heed(signal);
    this.#waiter = waiter;
    this.#socket.send(Buffer.from(message), TEXT, this.#onSent);
  }

  /** Who waits is told; from now on nobody waits. */
  #settle(): Waiter {
    const waiter = this.#waiter!;
    this.#waiter = null;
    return waiter;
  }

  /** The wait for a reply ends when this aborts; null: nobody will wait any more. */
  #heed(signal: AbortSignal | null): void {
    if (signal === this.#signal) return;
    this.#signal?.removeEventListener('abort', this.#onAbort);
    signal?.addEventListener('abort', this.#onAbort);
    this.#signal = signal;
  }

  /** The server has said goodbye, with a code that is known when it has hung up. */
  #hungUp(waiter: Waiter): void {
    const impatience = setTimeout(() => this.#socket.terminate(), CLOSE_MS);
    this.#socket.once('close', () => {
      clearTimeout(impatience);
      waiter.reject(this.#end('it closed the connection'));
    });
  }

  #receive(data: Buffer, isBinary: boolean): void {
    this.heardAt = Date.now();
    if (this.#broken !== null) return;
    if (isBinary) return void this.#fail('it sent a binary frame');
    try {
      assertParsable(data);
    } catch (error) {
      return void this.#fail(`it sent a reply that is not read: ${(error as Error).message}`);
    }
    const text = data.toString('utf8');
    const first = !this.#heard;
    this.#heard = true;
    if (this.#waiter !== null) return this.#settle().hear(text);
    if (first && isErrorFrame(text)) this.#refusal = text;
    else this.#fail('it sent a frame that nobody asked for');
  }

  #fail(why: string): SocketBroken {
    const broken = this.#end(why);
    this.#socket.terminate();
    return broken;
  }

  /** What the server sent is not read, so no later reply can be told from it. */
  #refuse(refusal: PalestraError): void {
    this.#end(refusal.message, false, refusal);
    this.#socket.terminate();
  }

  /** The reply of the message that was sent is not to be had any more. */
  #shifted(why: string): SocketBroken {
    this.#fail(why);
    return new SocketBroken(why, true, false);
  }

  /** Nothing that comes from now on is heard. */
  #end(why: string, closedNormally = false, refusal: PalestraError | null = null): SocketBroken {
    this.#broken ??= new SocketBroken(why, this.#waiter !== null, closedNormally && !this.#heard, refusal);
    if (this.#waiter !== null) this.#settle().reject(this.#broken);
    this.#heed(null);
    return this.#broken;
  }
}

/** A refusal of this message type. An observation may say anything. */
const quotes = (reply: string, type: string): boolean => isErrorFrame(reply) && reply.includes(type);
