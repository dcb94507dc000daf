import http from 'node:http';
import https from 'node:https';
import type { Duplex, Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import Docker from 'dockerode';
import { HostingError } from '../../provider/hosting-error.ts';
import { readAnswer } from './answer.ts';
import { type EngineAddress, type EngineOptions, findEngine } from './engine-address.ts';
import { EngineError, isStatus } from './engine-error.ts';

export { EngineError, isStatus } from './engine-error.ts';

export interface EngineRequest {
  method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  path: string;
  /** Objects are sent as JSON; undefined values are left out. */
  query?: Record<string, string | number | boolean | object | undefined>;
  body?: object;
  /** A tar archive as the body. */
  archive?: NodeJS.ReadableStream | Buffer;
  /** Time until the answer, or until its first byte for `stream`; default 30 s. */
  deadlineMs?: number;
}

/** What the engine is. `podman`: it speaks Podman's own API too. */
export interface EngineInfo {
  podman: boolean;
  version: string;
  /** Megabytes of the machine; null if the engine does not say it. */
  memoryMb: number | null;
  /** It enforces limits of memory, processors and processes. */
  limits: boolean;
  /** Names of OCI runtimes that exist. Podman lists runtimes that are not installed, so they are not counted. */
  runtimes: readonly string[];
}

type AnswerKind = 'json' | 'stream' | 'duplex';

interface DockerInfo {
  MemTotal?: number;
  MemoryLimit?: boolean;
  CpuCfsQuota?: boolean;
  PidsLimit?: boolean;
  Runtimes?: Record<string, unknown>;
}
interface DockerVersion {
  Version: string;
  Components?: { Name: string }[] | null;
}

const DEADLINE_MS = 30_000;
const REPEATS = 3;
const REPEAT_MS = 100;
const MAX_REASON_CHARS = 10_000;
/** What Podman says of every image while it removes one. */
const REMOVING = /retrieving parent of image|reading image "[0-9a-f]+" as image/;
/** Statuses of success, also "it is so already" (304). */
const OK = new Set([200, 201, 202, 204, 304]);
/** docker-modem collects the answers with other statuses, without a limit. */
const ALL = Object.fromEntries(Array.from({ length: 500 }, (_, index) => [index + 100, true]));

/** Requests to a Docker or Podman engine, each with a deadline. Connects when it is used, so that an engine may come and go. */
export class Engine {
  readonly #options: EngineOptions;
  #found: { address: EngineAddress; docker: Docker } | null = null;
  #info: EngineInfo | null = null;

  constructor(options: EngineOptions) {
    this.#options = options;
  }

  /** Rejects with an `EngineError` if the engine refuses, with `engine_unavailable` if it does not answer. */
  async request<T>(request: EngineRequest, signal: AbortSignal): Promise<T> {
    const either = AbortSignal.any([signal, AbortSignal.timeout(request.deadlineMs ?? DEADLINE_MS)]);
    return (await this.#send(request, 'json', either, signal)) as T;
  }

  /** The same for an answer that is read as it comes. The signal also ends the stream; `deadlineMs` does not. */
  async stream(request: EngineRequest, signal: AbortSignal): Promise<Readable> {
    return (await this.#open(request, 'stream', signal)) as Readable;
  }

  /** The same for a request whose connection becomes a stream in both directions. The caller destroys it; the signal does not. */
  async attach(request: EngineRequest, signal: AbortSignal): Promise<Duplex> {
    return (await this.#open(request, 'duplex', signal)) as Duplex;
  }

  async #open(request: EngineRequest, kind: 'stream' | 'duplex', signal: AbortSignal): Promise<unknown> {
    const tooLate = new AbortController();
    const timer = setTimeout(() => tooLate.abort(new Error('deadline')), request.deadlineMs ?? DEADLINE_MS);
    try {
      return await this.#send(request, kind, AbortSignal.any([signal, tooLate.signal]), signal);
    } finally {
      clearTimeout(timer);
    }
  }

  /** Sends the request again when the engine did nothing for a reason that passes. */
  async #send(request: EngineRequest, kind: AnswerKind, abortSignal: AbortSignal, caller: AbortSignal): Promise<unknown> {
    for (let left = REPEATS; ; left -= 1) {
      try {
        return await this.#dial(request, kind, abortSignal, caller);
      } catch (error) {
        // An archive is a stream, which only its owner can send again.
        const mayRepeat = wasCut(error) ? request.archive === undefined : request.method === 'GET' && wasRemoving(error);
        if (left === 0 || !mayRepeat) throw error;
      }
      await sleep(REPEAT_MS);
    }
  }

  /** Null for an engine on this machine. */
  async host(): Promise<string | null> {
    return (await this.#connect()).address.host;
  }

  async info(signal: AbortSignal): Promise<EngineInfo> {
    if (this.#info) return this.#info;
    const [version, info] = await Promise.all([
      this.request<DockerVersion>({ method: 'GET', path: '/version' }, signal),
      this.request<DockerInfo>({ method: 'GET', path: '/info' }, signal),
    ]);
    const podman = version.Components?.some(({ Name }) => Name.startsWith('Podman')) ?? false;
    this.#info = {
      podman,
      version: version.Version,
      memoryMb: info.MemTotal ? Math.floor(info.MemTotal / 2 ** 20) : null,
      limits: Boolean(info.MemoryLimit && info.CpuCfsQuota && info.PidsLimit),
      runtimes: podman ? [] : Object.keys(info.Runtimes ?? {}),
    };
    return this.#info;
  }

  /** What an error of a request or of its stream means. `signal`: of the caller. */
  failure(error: unknown, signal: AbortSignal): Error {
    if (signal.aborted) return signal.reason as Error;
    if (error instanceof HostingError || error instanceof EngineError) return error;
    // The next request looks for the engine again, which may be another one.
    this.#info = null;
    const { code, name, message } = error as NodeJS.ErrnoException;
    const why = code === 'ABORT_ERR' || name === 'TimeoutError' || message === 'deadline' ? 'no answer in time' : (code ?? message);
    return new HostingError('engine_unavailable', `The container engine does not answer (${why}). ${this.#advice(code)}`, { cause: error });
  }

  #advice(code: string | undefined): string {
    const address = this.#found?.address;
    const where = address === undefined || address.host !== null ? 'the engine' : address.socketPath;
    if (code === 'EACCES') return `Give the user of this service access to ${where}.`;
    return `Check that it runs and that ${where} is its address.`;
  }

  async #connect() {
    const known = this.#found;
    if (known) return known;
    const address = await findEngine(this.#options);
    if (address === null) {
      throw new HostingError(
        'engine_unavailable',
        'No container engine was found. Start Docker or Podman ("podman system service"), or set PALESTRA_DOCKER_HOST.',
      );
    }
    this.#found = { address, docker: new Docker(dockerOptions(address)) };
    return this.#found;
  }

  async #dial(request: EngineRequest, kind: AnswerKind, abortSignal: AbortSignal, caller: AbortSignal): Promise<unknown> {
    caller.throwIfAborted();
    try {
      const { docker } = await this.#connect();
      const answer = await new Promise<http.IncomingMessage | Duplex>((resolve, reject) => {
        docker.modem.dial(
          {
            path: `${request.path}?`,
            method: request.method,
            // An empty body is not sent.
            options: { _query: defined(request.query ?? {}), _body: request.body ?? {} },
            file: request.archive,
            abortSignal,
            isStream: true,
            hijack: kind === 'duplex',
            statusCodes: ALL,
          } as never,
          (error: unknown, found: unknown) => (error ? reject(error as Error) : resolve(found as http.IncomingMessage)),
        );
      });
      // A connection in both directions has no status.
      if (!('statusCode' in answer)) return answer;
      const status = answer.statusCode!;
      if (!OK.has(status)) throw new EngineError(status, reasonOf(status, await readAnswer(answer, abortSignal)));
      return kind === 'json' ? await readAnswer(answer, abortSignal) : answer;
    } catch (error) {
      throw this.failure(error, caller);
    }
  }
}

/** The engine closed the connection before it had the whole request, so it did nothing. */
export const wasCut = (error: unknown): boolean =>
  error instanceof HostingError && (error.cause as NodeJS.ErrnoException | undefined)?.code === 'EPIPE';

const wasRemoving = (error: unknown): boolean => isStatus(error, 500) && REMOVING.test((error as EngineError).message);

/** Explicit values for all that docker-modem would otherwise take from DOCKER_HOST. */
function dockerOptions(address: EngineAddress): Docker.DockerOptions {
  // Without keep-alive: a kept connection of an engine that has restarted would fail the next request.
  if (address.host === null) {
    return { socketPath: address.socketPath, host: undefined, port: undefined, agent: new http.Agent() } as Docker.DockerOptions;
  }
  const { host, port, tls } = address;
  const agent = tls ? new https.Agent() : new http.Agent();
  return { socketPath: undefined, host, port, protocol: tls ? 'https' : 'http', pathPrefix: '/', ...tls, agent } as Docker.DockerOptions;
}

const defined = (query: object) => Object.fromEntries(Object.entries(query).filter(([, value]) => value !== undefined));

/** Why the engine refused. `body`: of its answer. */
function reasonOf(status: number, body: unknown): string {
  const said = typeof body === 'string' ? body : (body as { message?: unknown } | null)?.message;
  return typeof said === 'string' ? said.trim().slice(0, MAX_REASON_CHARS) : `status ${status}`;
}
