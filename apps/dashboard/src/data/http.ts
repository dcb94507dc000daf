import { organisationHeader } from './organisation.ts';
import type { Answers, Bodies } from './routes.ts';

/** A refusal of the API or a network failure (`status` 0), with a message for the reader. */
export class ApiError extends Error {
  readonly status: number;
  readonly code: string;
  /** The id of the entry in the server's log; only internal errors have one. */
  readonly id: string | null;

  constructor(status: number, code: string, message: string, id: string | null = null) {
    super(message);
    this.name = 'ApiError';
    this.status = status;
    this.code = code;
    this.id = id;
  }
}

/** Whether the requested object does not exist or was deleted. */
export const isGone = (error: unknown): boolean => error instanceof ApiError && error.status === 404;

const PASSING = new Set([0, 429, 502, 503, 504]);
/** Whether the same request can succeed soon: the server does not respond, is starting, or has too much to do. */
export const isPassing = (error: unknown): boolean => error instanceof ApiError && PASSING.has(error.status);

/** The error to show instead of a page. What was read stays on the page while the server does not answer. */
export const errorInstead = ({ data, error }: { data: unknown; error: Error | null }): Error | null =>
  data !== undefined && isPassing(error) ? null : error;

/** The error of a refused response. */
export async function toError(response: Response): Promise<ApiError> {
  const body = (await response.json().catch(() => null)) as Partial<Record<'code' | 'message' | 'detail' | 'id', unknown>> | null;
  const message = [listed(body?.detail), body?.detail, body?.message].find((part) => typeof part === 'string');
  const text = typeof message === 'string' ? message : `The server answered ${response.status} ${response.statusText}`;
  const id = typeof body?.id === 'string' ? body.id : null;
  return new ApiError(
    response.status,
    typeof body?.code === 'string' ? body.code : `http_${response.status}`,
    // Every page that shows the message then also shows the id.
    id === null ? text : `${text} (error id ${id})`,
    id,
  );
}

/** `detail` of the routes that answer as FastAPI does: `tasks.0.name: Field required; …`. Undefined for any other. */
function listed(detail: unknown): string | undefined {
  if (!Array.isArray(detail) || detail.length === 0) return undefined;
  const issues = (detail as Partial<Record<'loc' | 'msg', unknown>>[]).slice(0, 5).map(({ loc, msg }) => {
    const field = Array.isArray(loc) ? loc.slice(1).join('.') : '';
    return `${field && `${field}: `}${String(msg)}`;
  });
  return issues.join('; ');
}

let refusalOf: ((path: string) => ApiError | null) | null = null;
/** From now on a request for which `refuse` returns an error fails with it and is not sent; null: all requests are sent. */
export function limitRequests(refuse: typeof refusalOf): void {
  refusalOf = refuse;
}

/** Headers of every request: the organisation of the page, and whether the page shows a share link. */
export const pageHeaders = (): Record<string, string> => ({ ...organisationHeader(), ...(refusalOf && { 'x-palestra-guest': '1' }) });

/** One request to our own origin with the session cookie. Throws ApiError; resolves to the parsed body (undefined for 204). */
export async function request<T>(
  path: string,
  options: { method?: string; body?: unknown; signal?: AbortSignal; onHeaders?: (headers: Headers) => void } = {},
): Promise<T> {
  const refusal = refusalOf?.(path);
  if (refusal) throw refusal;
  let response: Response;
  try {
    response = await fetch(path, {
      method: options.method ?? 'GET',
      credentials: 'same-origin',
      signal: options.signal ?? null,
      headers: {
        ...pageHeaders(),
        ...(options.body === undefined ? { accept: 'application/json' } : { 'content-type': 'application/json' }),
      },
      body: options.body === undefined ? null : JSON.stringify(options.body),
    });
  } catch (error) {
    if (options.signal?.aborted) throw error;
    throw new ApiError(0, 'network', 'The server does not respond. Nothing was lost. This page retries when the server is back.');
  }
  if (!response.ok) throw await toError(response);
  options.onHeaders?.(response.headers);
  const text = await response.text();
  return (text === '' ? undefined : JSON.parse(text)) as T;
}

type BodyOf<K> = K extends keyof Bodies ? Bodies[K] : undefined;
/** Values of a query string. Undefined, null and empty values are omitted; an array repeats its name. */
export type Query = Record<string, string | number | boolean | readonly string[] | null | undefined>;

export function search(query: Query): string {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined || value === null || value === '') continue;
    for (const one of Array.isArray(value) ? (value as readonly string[]) : [value]) params.append(name, String(one));
  }
  const text = params.toString();
  return text === '' ? '' : `?${text}`;
}

interface ApiOptions<K> {
  path?: Record<string, string>;
  query?: Query;
  body?: BodyOf<K>;
  signal?: AbortSignal;
  onHeaders?: (headers: Headers) => void;
}

/** One route of `routes.ts`: `api('GET /v1/runs/{run}/summary', { path: { run }, query: { steps } })`. Throws ApiError. */
export function api<K extends keyof Answers>(operation: K, options: ApiOptions<K> = {}): Promise<Answers[K]> {
  const [method, template] = operation.split(' ') as [string, string];
  const path = template.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(options.path?.[name] ?? ''));
  return request<Answers[K]>(path + search(options.query ?? {}), {
    method,
    ...(options.body === undefined ? {} : { body: options.body }),
    ...(options.signal && { signal: options.signal }),
    ...(options.onHeaders && { onHeaders: options.onHeaders }),
  });
}

/** An answer about a run with the version of the run; null if the route does not report one. */
export type Versioned<T> = T & { version: string | null };
export async function apiOfRun<K extends `GET /v1/runs/${string}` & keyof Answers>(
  operation: K,
  options: ApiOptions<K>,
): Promise<Versioned<Answers[K]>> {
  let version: string | null = null;
  const answer = await api(operation, { ...options, onHeaders: (headers) => (version = headers.get('x-data-version')) });
  return Object.assign(answer as object, { version }) as Versioned<Answers[K]>;
}
