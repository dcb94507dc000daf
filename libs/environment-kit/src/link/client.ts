import { onAbort } from '@palestra/kit';
import { PalestraError, stringifyJson } from '@palestra/protocol';
import { connect, type Socket } from 'node:net';
import { parseLinkAddress } from './address.ts';
import { decodeAnswer, fromErrorFrame, lineWriter, readLines } from './frames.ts';
import type { Link, LinkMethod, LinkParams, LinkResult } from './methods.ts';

/** With this many pending requests, new ones are refused without running. */
const MAX_PENDING = 20_000;

/** Methods whose outcome is unknown if the response is lost. The others can be repeated. */
const RUNS_SOMETHING: ReadonlySet<LinkMethod> = new Set<LinkMethod>(['create', 'call', 'scoreGroup']);

interface Pending {
  method: LinkMethod;
  resolve: (result: never) => void;
  reject: (error: Error) => void;
}

/** A connection; it ends with its socket. */
interface Connection {
  socket: Socket;
  write: (line: string) => void;
  pending: Map<number, Pending>;
}

/**
 * The client of the link, in the API: concurrent requests over one socket. Connects on first use and reconnects after a failure. A failure
 * rejects pending requests: with `session_lost` if they may have run, else with `backend_unreachable`.
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

  /** Rejects with the signal's reason if it aborts first, and cancels the request on the server. */
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
    connection.socket.destroy(new Error('the link received data that is not of its protocol', { cause: error }));
    return;
  }
  const pending = connection.pending.get(answer.id);
  // The request was cancelled.
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
