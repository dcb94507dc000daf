import http from 'node:http';
import https from 'node:https';
import { KubeConfig } from '@kubernetes/client-node';
import { abortable } from '@palestra/kit';
import { HostingError } from '../../provider/hosting-error.ts';

export interface ClusterOptions {
  /** File that says where the cluster is; default: ~/.kube/config, else the service account of this pod. */
  kubeconfig?: string;
  /** Default: that of the kubeconfig, or of this pod. */
  namespace?: string;
}

export interface ClusterRequest {
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  path: string;
  query?: Record<string, string | number | boolean | undefined>;
  body?: object;
  /** Of the body; server-side apply has its own. */
  type?: 'application/json' | 'application/apply-patch+yaml';
  /** Default 15 s; for `stream` until the answer begins. */
  deadlineMs?: number;
}

/** The API server refused a request. `reason`: a word such as `NotFound`. */
export class ClusterRefusal extends Error {
  readonly status: number;
  readonly reason: string;

  constructor(status: number, reason: string, message: string) {
    super(message);
    this.name = 'ClusterRefusal';
    this.status = status;
    this.reason = reason;
  }
}

const DEADLINE_MS = 15_000;
/** Of an answer. A page of a list has 500 objects of some ten kilobytes. */
const MOST_BYTES = 64 * 2 ** 20;
/** The API server is there, and cannot work now. */
const AWAY = new Set([429, 500, 502, 503, 504]);
/** The address that the client takes when there is no configuration. */
const NO_CLUSTER = 'http://localhost:8080';

/**
 * Requests to the API server, each with a deadline and a signal. The client library finds the cluster and its credentials; its own API classes
 * are not used, because their watches stop silently and their requests have no deadline.
 */
export class Cluster {
  readonly #options: ClusterOptions;
  #config: KubeConfig | null = null;

  constructor(options: ClusterOptions) {
    this.#options = options;
  }

  get namespace(): string {
    const config = this.#connect();
    return this.#options.namespace ?? config.getContextObject(config.getCurrentContext())?.namespace ?? 'default';
  }

  /** Rejects with a `ClusterRefusal`, or with `engine_unavailable` if there is no answer or no permission. */
  async request<T>(request: ClusterRequest, signal: AbortSignal): Promise<T> {
    const deadline = AbortSignal.timeout(request.deadlineMs ?? DEADLINE_MS);
    const answer = await this.#send(request, AbortSignal.any([signal, deadline]), signal);
    try {
      return JSON.parse(await textOf(answer)) as T;
    } catch (error) {
      throw failure(error, signal);
    }
  }

  /** The same for an answer that is read as it comes. The signal also ends the stream; `deadlineMs` does not. */
  async stream(request: ClusterRequest, signal: AbortSignal): Promise<http.IncomingMessage> {
    const tooLate = new AbortController();
    const timer = setTimeout(() => tooLate.abort(new Error('no answer in time')), request.deadlineMs ?? DEADLINE_MS);
    try {
      return await this.#send(request, AbortSignal.any([signal, tooLate.signal]), signal);
    } finally {
      clearTimeout(timer);
    }
  }

  /** Null for 404. */
  async find<T>(path: string, signal: AbortSignal): Promise<T | null> {
    try {
      return await this.request<T>({ method: 'GET', path }, signal);
    } catch (error) {
      if (isRefusal(error, 404)) return null;
      throw error;
    }
  }

  /** Creates the object, or changes it to what is given here. */
  apply(path: string, body: object, signal: AbortSignal): Promise<unknown> {
    const query = { fieldManager: 'palestra', force: true };
    return this.request({ method: 'PATCH', path, query, body, type: 'application/apply-patch+yaml' }, signal);
  }

  /** All objects that have these labels, page by page. */
  async list<T>(path: string, labelSelector: string, signal: AbortSignal): Promise<T[]> {
    const items: T[] = [];
    let next: string | undefined;
    do {
      const query = { labelSelector, limit: 500, continue: next };
      const page = await this.request<{ items?: T[]; metadata?: { continue?: string } }>({ method: 'GET', path, query }, signal);
      items.push(...(page.items ?? []));
      next = page.metadata?.continue || undefined;
    } while (next !== undefined);
    return items;
  }

  /** Where and how a WebSocket connects. */
  async socket(path: string): Promise<{ url: string; options: https.RequestOptions }> {
    const config = this.#connect();
    const options: https.RequestOptions = {};
    await config.applyToHTTPSOptions(options);
    return { url: `${serverOf(config).replace(/^http/, 'ws')}${path}`, options };
  }

  #connect(): KubeConfig {
    if (this.#config) return this.#config;
    const config = new KubeConfig();
    try {
      if (this.#options.kubeconfig === undefined) config.loadFromDefault();
      else config.loadFromFile(this.#options.kubeconfig);
    } catch (error) {
      throw new HostingError('engine_unavailable', `The kubeconfig cannot be read: ${(error as Error).message}`, { cause: error });
    }
    const server = config.getCurrentCluster()?.server;
    if (server === undefined || server === NO_CLUSTER) {
      throw new HostingError(
        'engine_unavailable',
        'No Kubernetes cluster is configured. Set KUBECONFIG, or run the service in a pod with a service account and its token.',
      );
    }
    this.#config = config;
    return config;
  }

  async #send(request: ClusterRequest, abort: AbortSignal, caller: AbortSignal): Promise<http.IncomingMessage> {
    caller.throwIfAborted();
    const config = this.#connect();
    const server = serverOf(config);
    const query = Object.entries(request.query ?? {}).filter(([, value]) => value !== undefined);
    const search = new URLSearchParams(query.map(([name, value]): [string, string] => [name, String(value)]));
    const body = request.body === undefined ? null : JSON.stringify(request.body);
    const options: https.RequestOptions = {
      method: request.method,
      signal: abort,
      headers: {
        accept: 'application/json',
        ...(body !== null && { 'content-type': request.type ?? 'application/json', 'content-length': Buffer.byteLength(body) }),
      },
    };
    try {
      // Reads the token again when its file has changed. It replaces the agent: one without kept connections, which a restart of the API
      // server would break. It may also wait for a program or another server that gives the token, and knows no deadline.
      await abortable(config.applyToHTTPSOptions(options), abort);
      const at = `${server}${request.path}?${search.toString()}`;
      const answer = await new Promise<http.IncomingMessage>((resolve, reject) => {
        const send = server.startsWith('http:') ? http.request : https.request;
        send(at, options, resolve).on('error', reject).end(body);
      });
      if (answer.statusCode! < 300) return answer;
      throw await refusal(answer);
    } catch (error) {
      throw failure(error, caller);
    }
  }
}

/** Its URL, without a slash at the end. */
const serverOf = (config: KubeConfig): string => new URL(config.getCurrentCluster()!.server).href.replace(/\/$/, '');

async function textOf(answer: http.IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of answer as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > MOST_BYTES) throw new Error(`the answer has more than ${MOST_BYTES} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

/** Of an answer with a status that is no success. */
export async function refusal(answer: http.IncomingMessage): Promise<ClusterRefusal> {
  const text = await textOf(answer);
  let said: { reason?: string; message?: string } = {};
  try {
    said = JSON.parse(text) as typeof said;
  } catch {
    // A proxy before the API server answers in its own words.
  }
  return new ClusterRefusal(answer.statusCode!, said.reason ?? '', said.message ?? text.slice(0, 500));
}

/** What an error of a request or of its stream means. `signal`: of the caller. */
export function failure(error: unknown, signal: AbortSignal): Error {
  if (signal.aborted) return signal.reason as Error;
  if (error instanceof HostingError) return error;
  if (error instanceof ClusterRefusal) {
    const { status, message } = error;
    if (status === 401) {
      return new HostingError('engine_unavailable', 'The Kubernetes API server does not accept the credentials of this service.', {
        cause: error,
      });
    }
    if (status === 403 && isMissingRight(message)) {
      const advice = 'Give its service account the Role that docs/hosting.md shows.';
      return new HostingError('engine_unavailable', `This service may not use the cluster: ${message}. ${advice}`, { cause: error });
    }
    if (!AWAY.has(status)) return error;
    return new HostingError('engine_unavailable', `The Kubernetes API server cannot answer now (${status}): ${message}`, { cause: error });
  }
  const { code, name, message } = error as NodeJS.ErrnoException;
  const why = code === 'ABORT_ERR' || name === 'TimeoutError' || name === 'AbortError' ? 'no answer in time' : (code ?? message);
  return new HostingError(
    'engine_unavailable',
    `The Kubernetes API server does not answer (${why}). Check that it runs and is reachable.`,
    {
      cause: error,
    },
  );
}

/** Refusals of quotas and of admission have the same status. */
const isMissingRight = (message: string): boolean => /is forbidden: User "/.test(message);

export const isRefusal = (error: unknown, ...statuses: number[]): error is ClusterRefusal =>
  error instanceof ClusterRefusal && statuses.includes(error.status);
