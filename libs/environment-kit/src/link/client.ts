import { onAbort } from '@palestra/kit';
import { PalestraError, stringifyJson } from '@palestra/protocol';
import { connect, type Socket } from 'node:net';
import { parseLinkAddress } from './address.ts';
import { decodeAnswer, fromErrorFrame, lineWriter, readLines } from './frames.ts';
import type { Link, LinkMethod, LinkParams, LinkResult } from './methods.ts';

/** Past this many unanswered requests new ones are refused, nothing having run. */
const MAX_PENDING = 20_000;

/** A lost answer of one of these leaves open whether it ran; the others may simply be asked again. */
const RUNS_SOMETHING: ReadonlySet<LinkMethod> = new Set<LinkMethod>(['create', 'call', 'scoreGroup']);

interface Pending {
  method: LinkMethod;
  resolve: (result: never) => void;
  reject: (error: Error) => void;
}

/** An open connection; gone as soon as its socket is. */
interface Connection {
  socket: Socket;
  write: (line: string) => void;
  pending: Map<number, Pending>;
}

/**
 * The API's end of the link: any number of requests at the same time over one socket. Connects when first used, and again
 * after a drop, which rejects what was pending: `session_lost` when it may have run, `backend_unreachable` when not.
 */
export class LinkClient implements Link {
  readonly #address: string;
  #connecting: Promise<Connection> | null = null;
  #connection: Connection | null = null;
  #nextId = 1;
  #closed = false;

  /** `host:port`, or the path of a unix socket. */
  constructor(address: string) {
    this.#address = address;
  }

  /** Rejects with the signal's reason when it aborts first; the other side is told to stop waiting. */
  async request<M extends LinkMethod>(method: M, params: LinkParams<M>, signal: AbortSignal): Promise<LinkResult<M>> {
    signal.throwIfAborted();
    const connection = this.#connection ?? (await this.#connect());
    if (connection.pending.size >= MAX_PENDING) {
      throw new PalestraError('backend_unreachable', { detail: `more than ${MAX_PENDING} requests wait for the environment` });
    }
    signal.throwIfAborted();
    return new Promise<LinkResult<M>>((resolve, reject) => {
      const id = this.#nextId++;
      const forget = onAbort(signal, (reason) => {
        connection.pending.delete(id);
        connection.write(`{"cancel":${id}}`);
        reject(reason as Error);
      });
      connection.pending.set(id, {
        method,
        resolve: (result) => (forget(), resolve(result)),
        reject: (error) => (forget(), reject(error)),
      });
      connection.write(`{"id":${id},"method":"${method}","params":${stringifyJson(params)}}`);
    });
  }

  close(): void {
    this.#closed = true;
    this.#connection?.socket.destroy();
  }

  #connect(): Promise<Connection> {
    if (this.#closed) return Promise.reject(new PalestraError('backend_unreachable', { detail: 'the link is closed' }));
    this.#connecting ??= this.#open().finally(() => (this.#connecting = null));
    return this.#connecting;
  }

  #open(): Promise<Connection> {
    return new Promise((resolve, reject) => {
      const socket = connect(parseLinkAddress(this.#address));
      const connection: Connection = { socket, write: lineWriter(socket), pending: new Map() };
      let cause: Error | undefined;
      socket.setNoDelay(true);
      socket.on('error', (error) => (cause = error));
      socket.on('close', () => {
        if (this.#connection === connection) this.#connection = null;
        reject(new PalestraError('backend_unreachable', { cause }));
        rejectPending(connection, cause);
      });
      socket.on('connect', () => {
        this.#connection = connection;
        resolve(connection);
      });
      readLines(socket, (line) => settle(connection, line));
    });
  }
}

function settle(connection: Connection, line: string): void {
  let answer;
  try {
    answer = decodeAnswer(line);
  } catch (error) {
    connection.socket.destroy(new Error('the link carried something else than its protocol', { cause: error }));
    return;
  }
  const pending = connection.pending.get(answer.id);
  // An answer to a request that was cancelled.
  if (!pending) return;
  connection.pending.delete(answer.id);
  if (answer.error) pending.reject(fromErrorFrame(answer.error));
  else pending.resolve(answer.result as never);
}

function rejectPending(connection: Connection, cause: Error | undefined): void {
  for (const { method, reject } of connection.pending.values()) {
    reject(new PalestraError(RUNS_SOMETHING.has(method) ? 'session_lost' : 'backend_unreachable', { cause }));
  }
  connection.pending.clear();
}
