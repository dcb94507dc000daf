import http from 'node:http';
import https from 'node:https';
import type { Duplex, Readable } from 'node:stream';
import Docker from 'dockerode';
import { HostingError } from '../../provider/hosting-error.ts';
import { type EngineAddress, type EngineOptions, findEngine } from './engine-address.ts';

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

/** The engine refused a request. */
export class EngineError extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.name = 'EngineError';
    this.status = status;
  }
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
/** Statuses of success, also "it is so already" (304). */
const OK = Object.fromEntries([200, 201, 202, 204, 304].map((status) => [status, true]));

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
    const deadline = AbortSignal.timeout(request.deadlineMs ?? DEADLINE_MS);
    return (await this.#dial(request, 'json', AbortSignal.any([signal, deadline]), signal)) as T;
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
      return await this.#dial(request, kind, AbortSignal.any([signal, tooLate.signal]), signal);
    } finally {
      clearTimeout(timer);
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

  async #dial(request: EngineRequest, kind: 'json' | 'stream' | 'duplex', abortSignal: AbortSignal, caller: AbortSignal): Promise<unknown> {
    caller.throwIfAborted();
    try {
      const { docker } = await this.#connect();
      return await new Promise((resolve, reject) => {
        docker.modem.dial(
          {
            path: `${request.path}?`,
            method: request.method,
            // An empty body is not sent.
            options: { _query: defined(request.query ?? {}), _body: request.body ?? {} },
            file: request.archive,
            abortSignal,
            isStream: kind !== 'json',
            hijack: kind === 'duplex',
            statusCodes: OK,
          } as never,
          (error: unknown, answer: unknown) => (error ? reject(error as Error) : resolve(answer)),
        );
      });
    } catch (error) {
      throw this.failure(refusal(error), caller);
    }
  }
}

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

/** docker-modem gives an error the status and the parsed body of the answer. */
function refusal(error: unknown): unknown {
  const { statusCode, json, message } = error as { statusCode?: number; json?: unknown; message: string };
  if (statusCode === undefined) return error;
  const body = json as { message?: unknown; cause?: unknown } | null;
  const said = typeof body?.message === 'string' ? body.message : message.replace(/^\(HTTP code \d+\) \S+ - /, '');
  return new EngineError(statusCode, said.trim());
}

export const isStatus = (error: unknown, ...statuses: number[]): boolean => error instanceof EngineError && statuses.includes(error.status);
