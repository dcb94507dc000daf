import { isObject, type JsonValue, PalestraError, parseJson } from '@palestra/protocol';
import {
  type Caller,
  type EnvironmentDirectory,
  type HostedEnvironment,
  type Recording,
  type SecretMap,
  type SessionEngine,
  decodeSecrets,
} from '@palestra/session';
import { Deadlines } from './deadlines.ts';
import type { Episode, Scene } from './episode.ts';
import { OpenEnvError } from '../wire/errors.ts';
import { Facts, type Shape } from './facts.ts';
import { parseRpc, readRpc, RpcError, rpcResult, unknownSession } from '../wire/json-rpc.ts';
import { NativeEpisode } from './native-episode.ts';
import { rpcErrorText, type Attached, Seat, type SeatHooks, type SeatKind, type Standing } from './seat.ts';
import { Seats } from './seats.ts';
import { SLOT_PATIENCE_MS } from './slot.ts';
import { httpBodyOf } from './stateless.ts';
import { derivedSid, uuidOf } from './session-ids.ts';
import { TranslatedEpisode } from './translated-episode.ts';

/** What a client's headers ask of its sessions. `secrets`: `X-Secrets`, still encoded. */
export interface Asked {
  recording: Recording | null;
  secrets: string | null;
}

/** An environment as one caller is shown it, and what he asks of its sessions. */
export interface Stage {
  caller: Caller;
  hosted: HostedEnvironment;
  shape: Shape;
  recording: Recording | null;
  secrets: SecretMap | null;
}

export interface OpenEnvDialectOptions {
  engine: SessionEngine;
  directory: EnvironmentDirectory;
  onBackgroundError: (error: unknown, sid: string) => void;
  /** A client waits 60 s for its reply; ours comes before. Milliseconds. */
  deadlineMs?: number;
  /** A first message waits so long for a slot. Milliseconds. */
  patienceMs?: number;
}

const DEADLINE_MS = 55_000;

/** Our environments to OpenEnv clients (openenv-wire.md), whatever their servers speak. Framework-free: sockets and routes are elsewhere. */
export class OpenEnvDialect {
  readonly engine: SessionEngine;
  readonly directory: EnvironmentDirectory;
  readonly seats: Seats;
  readonly #deadlines: Deadlines;
  readonly #patienceMs: number;
  readonly #hooks: SeatHooks;

  constructor({ engine, directory, onBackgroundError, deadlineMs = DEADLINE_MS, patienceMs = SLOT_PATIENCE_MS }: OpenEnvDialectOptions) {
    this.engine = engine;
    this.directory = directory;
    this.seats = new Seats(engine);
    this.#deadlines = new Deadlines(deadlineMs);
    this.#patienceMs = patienceMs;
    this.#hooks = { onEnd: (seat) => this.seats.delete(seat), onBackgroundError };
  }

  /** Throws `deployment_not_found`, `secrets_invalid`; `backend_unreachable` and its like when its server cannot be asked what it is. */
  async stage(caller: Caller, owner: string, name: string, asked: Asked | null): Promise<Stage> {
    const secrets = decodeSecrets(asked?.secrets ?? null);
    const hosted = await this.directory.resolve(`${owner}/${name}`, caller);
    return { caller, hosted, shape: await Facts.of(hosted).shape(), recording: asked?.recording ?? null, secrets };
  }

  /** A place for a new client. */
  seat(stage: Stage, kind: SeatKind, id: string = crypto.randomUUID()): Seat {
    const seat = new Seat(id, kind, this.#scene(stage), this.#deadlines, this.#hooks);
    this.seats.add(seat);
    return seat;
  }

  #scene({ hosted, ...asked }: Stage): Omit<Scene, 'seat'> {
    return { engine: this.engine, patienceMs: this.#patienceMs, hosted, facts: Facts.of(hosted), ...asked };
  }

  /** An episode for one request. */
  episode(stage: Stage): Episode {
    const seat = { nextSid: () => crypto.randomUUID(), gone: AbortSignal.timeout(10 * DEADLINE_MS) };
    const scene: Scene = { ...this.#scene(stage), seat };
    return stage.shape.native ? new NativeEpisode(scene) : new TranslatedEpisode(scene);
  }

  /**
   * Brings a request for a session to the process that serves it: true when `elsewhere` has taken it over. Else the session, if it lives, has its
   * seat here afterwards, also when another process, or this one before a restart, opened it.
   */
  async place(stage: Stage, id: string, kind: 'http' | 'container', elsewhere: (sid: string) => Promise<boolean>): Promise<boolean> {
    const { caller, hosted } = stage;
    if (this.#find(id, caller, hosted) !== null) return false;
    const count = await this.#sessionsOf(stage, id);
    if (count === 0) return false;
    if (await elsewhere(derivedSid(id, count - 1))) return true;
    const last = await this.#standingOf(caller, derivedSid(id, count - 1));
    // A container that was closed may be opened again; a closed MCP session is unknown.
    if ((kind === 'http' && last === 'ended') || this.#find(id, caller, hosted) !== null) return false;
    this.seat(stage, kind, id).resume(count - 1, last);
    return false;
  }

  /** How many sessions a seat has had, also elsewhere: their SIDs follow from its id. */
  async #sessionsOf({ caller, hosted }: Stage, id: string): Promise<number> {
    const exists = async (number: number) => {
      const environment = await this.engine.environmentOf(caller, derivedSid(id, number)).catch(() => null);
      return environment?.environmentId === hosted.environmentId;
    };
    if (!(await exists(0))) return 0;
    let known = 0;
    let unknown = 1;
    while (await exists(unknown)) [known, unknown] = [unknown, unknown * 2];
    while (unknown - known > 1) {
      const middle = (known + unknown) >> 1;
      if (await exists(middle)) known = middle;
      else unknown = middle;
    }
    return known + 1;
  }

  async #standingOf(caller: Caller, sid: string): Promise<Standing> {
    try {
      await this.engine.ping(caller, sid);
      return 'open';
    } catch (error) {
      return error instanceof PalestraError && error.code === 'session_not_found' ? 'reserved' : 'ended';
    }
  }

  /**
   * The seat of an HTTP MCP session, for a socket that wants to sit there. Throws `SESSION_ERROR`, whose texts and cases are those of openenv-wire.md
   * 8.2, but that ids of plain sockets are refused.
   */
  attach({ caller, hosted }: Stage, id: string, socket: Attached): Seat {
    const seat = this.#find(id, caller, hosted);
    if (seat === null || seat.kind === 'container') throw new OpenEnvError('SESSION_ERROR', `Unknown session_id: ${id}`);
    if (seat.starting) throw new OpenEnvError('SESSION_ERROR', `Session ${id} is still initializing`);
    if (seat.attached !== null) throw new OpenEnvError('SESSION_ERROR', `Session ${id} already has an attached WebSocket`);
    seat.attached = socket;
    seat.lastUsedAt = Date.now();
    return seat;
  }

  /** A socket whose client has said goodbye has left, also when the connection still ends. */
  #find(id: string, caller: Caller, hosted: HostedEnvironment): Seat | null {
    const seat = this.seats.find(id, caller, hosted);
    if (seat?.attached?.isOpen === false) this.detach(seat, seat.attached);
    return seat?.ended === false ? seat : null;
  }

  /** The socket of a seat has closed. */
  detach(seat: Seat, socket: Attached): void {
    if (seat.attached !== socket) return;
    seat.attached = null;
    seat.lastUsedAt = Date.now();
    if (seat.kind === 'socket' || seat.closing) seat.end();
  }

  /** The answer to one JSON-RPC request over HTTP; `gone` aborts when its client has left unanswered. */
  async mcp(stage: Stage, body: string, gone: AbortSignal): Promise<string> {
    let id = 'null';
    try {
      const data = parseRpc(body, false);
      const request = readRpc(data);
      ({ id } = request);
      switch (request.method) {
        case 'openenv/session/create':
          return rpcResult(id, await this.#createSession(stage, gone));
        case 'openenv/session/close':
          return rpcResult(id, await this.#closeSession(stage, request.params['session_id']));
        case 'tools/list':
        case 'tools/call':
          break;
        default:
          throw new RpcError(-32601, `Method not found: ${request.method}`);
      }
      const { session_id: session } = request.params;
      if (session === undefined || session === null) return rpcResult(id, await this.#once(stage, (episode) => episode.rpc(request)));
      const result = await this.#seatOf(stage, session).ask({ type: 'mcp', data });
      if (result instanceof OpenEnvError) throw result;
      return httpBodyOf(result);
    } catch (error) {
      return rpcErrorText(error, id, stage.shape.className);
    }
  }

  async #once<T>(stage: Stage, play: (episode: Episode) => Promise<T>): Promise<T> {
    const episode = this.episode(stage);
    try {
      return await play(episode);
    } finally {
      await episode.end();
    }
  }

  #seatOf({ caller, hosted }: Stage, id: JsonValue): Seat {
    const seat = typeof id === 'string' ? this.#find(id, caller, hosted) : null;
    if (seat === null || seat.kind === 'container') throw unknownSession(id);
    if (seat.starting) throw new RpcError(-32600, `Session ${String(id)} is still initializing; retry shortly`);
    return seat;
  }

  /** A client that left before it heard its id would never close it. */
  async #createSession(stage: Stage, gone: AbortSignal): Promise<string> {
    const seat = this.seat(stage, 'http');
    seat.starting = true;
    const leave = () => seat.end();
    gone.addEventListener('abort', leave, { once: true });
    try {
      await seat.episode.reserve();
      // A slot of another process: the session's requests are brought there from now on.
      if (!(await this.engine.place(stage.caller, seat.id)).here) this.seats.delete(seat);
    } catch (error) {
      seat.end();
      throw error;
    }
    seat.starting = false;
    return `{"session_id":"${seat.id}"}`;
  }

  async #closeSession(stage: Stage, id: JsonValue): Promise<string> {
    if (typeof id !== 'string' || id === '') throw new RpcError(-32602, "Invalid params - 'session_id' is required");
    const seat = this.#seatOf(stage, id);
    if (seat.kind === 'socket') throw new RpcError(-32600, 'Cannot close active WebSocket-managed session via MCP method');
    if (seat.attached !== null) {
      seat.closing = true;
      return `{"session_id":${JSON.stringify(id)},"closed":false,"closing":true}`;
    }
    seat.end();
    await seat.forgotten;
    return `{"session_id":${JSON.stringify(id)},"closed":true}`;
  }

  /** The id under which a virtual container's sessions are found again. */
  containerId({ caller, hosted }: Stage, name: string): string {
    return uuidOf(JSON.stringify(['container', caller.orgId, caller.keyId, hosted.environmentId, name]));
  }

  /** The seat of a virtual container; made by `reset` only. */
  container(stage: Stage, name: string, make: boolean): Seat | null {
    const id = this.containerId(stage, name);
    const seat = this.#find(id, stage.caller, stage.hosted);
    return seat ?? (make ? this.seat(stage, 'container', id) : null);
  }
}

/** The session that a JSON-RPC body is for; null when it names none. */
export function sessionIdOf(body: string): string | null {
  try {
    const request = parseJson(body);
    const params = isObject(request) ? request['params'] : null;
    const id = isObject(params) ? params['session_id'] : null;
    return typeof id === 'string' ? id : null;
  } catch {
    return null;
  }
}
