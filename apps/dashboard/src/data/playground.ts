import { keepPreviousData, queryOptions } from '@tanstack/react-query';
import type { KeptSession, MessageBlock, SessionStateView, ToolsAnswer } from '@palestra/protocol';
import { SseParser } from '@palestra/kit/sse';
import { api, ApiError, pageHeaders, request, toError } from './http.ts';

/**
 * Plays a session by hand. Prompt and tools come from the HTTP API of sessions, which accepts the browser's cookie. Calls and events use the
 * session's socket (`session-link.ts`), or the functions here if no socket can be opened.
 */

interface SessionRequestOptions {
  body?: string;
  signal?: AbortSignal;
  headers?: Record<string, string>;
}

async function sessionRequest(
  method: string,
  path: string,
  sid: string,
  { body, signal, headers }: SessionRequestOptions = {},
): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(path, {
      method,
      credentials: 'same-origin',
      signal: signal ?? null,
      headers: { ...pageHeaders(), 'x-session-id': sid, ...headers, ...(body !== undefined && { 'content-type': 'application/json' }) },
      body: body ?? null,
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new ApiError(0, 'network', 'The server does not respond. Calls continue to run there and never run twice.');
  }
  if (!response.ok) throw await toError(response);
  return response;
}

const read = async <T>(path: string, sid: string, signal: AbortSignal): Promise<T> =>
  (await (await sessionRequest('GET', path, sid, { signal })).json()) as T;

/** The prompt of the session. Waits for the environment's setup. Throws ApiError: the error of the setup; 410 after the session has ended. */
export const readPrompt = (sid: string, signal: AbortSignal): Promise<MessageBlock[]> => read('/prompt', sid, signal);

export const promptQuery = (sid: string) =>
  queryOptions({
    queryKey: ['play', sid, 'prompt'],
    queryFn: ({ signal }) => readPrompt(sid, signal),
    staleTime: Infinity,
    gcTime: Infinity,
    refetchOnWindowFocus: false,
  });

/** The tools of the environment and of this task. */
export const taskToolsQuery = (sid: string) =>
  queryOptions({
    queryKey: ['play', sid, 'tools'],
    queryFn: ({ signal }) => read<ToolsAnswer>('/task_tools', sid, signal),
    staleTime: Infinity,
    gcTime: Infinity,
    refetchOnWindowFocus: false,
  });

/** The state of the episode after `ended` calls, read again after each call. It can contain the answer of the task. */
export const stateQuery = (sid: string, ended: number) =>
  queryOptions({
    queryKey: ['play', sid, 'state', ended],
    queryFn: ({ signal }) => request<SessionStateView>(`/v1/sessions/${encodeURIComponent(sid)}/state`, { signal }),
    placeholderData: keepPreviousData,
    staleTime: Infinity,
    gcTime: 60_000,
    refetchOnWindowFocus: false,
  });

export const pingSession = (sid: string): Promise<Response> => sessionRequest('POST', '/ping', sid, { body: '{}' });

export interface SessionChoice {
  environment: string;
  variant: string;
  /** An index in a split, or the JSON text of a task spec. */
  task: { split: string; index: number } | { spec: string };
}

/** A random UUID. `crypto.randomUUID` is not available on pages served over plain HTTP. */
export function newSid(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6]! & 0x0f) | 0x40;
  bytes[8] = (bytes[8]! & 0x3f) | 0x80;
  const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
}

/**
 * Opens a session under an id that the page chose, so that a repeat after a lost answer finds the session. Returns the stored id (ADR 26). Waits
 * for a slot.
 */
export async function openSession(sid: string, { environment, variant, task }: SessionChoice, signal: AbortSignal): Promise<string> {
  const head = JSON.stringify({ sid, environment, variant }).slice(0, -1);
  // As text, so that the numbers of a task keep their digits.
  const taskText = 'spec' in task ? `"task_spec":${task.spec}` : JSON.stringify(task).slice(1, -1);
  for (let attempt = 0; ; attempt += 1) {
    try {
      const opened = await sessionRequest('POST', '/v1/sessions', sid, { body: `${head},${taskText}}`, signal });
      return ((await opened.json()) as { sid: string }).sid;
    } catch (error) {
      if (!isLost(error) || attempt >= 3 || signal.aborted) throw error;
      await pause(500 * 2 ** attempt, signal);
    }
  }
}

export interface PlayCall {
  tool: string;
  /** JSON text of its input. */
  input: string;
}
export interface Played {
  taskId: string;
  /** The connection broke and the stored result was read. The tool did not run again. */
  replayed: boolean;
}

const RETRIES_MS = [500, 1_000, 2_000, 4_000, 8_000, 15_000, 15_000, 15_000];
/** The wait before the next attempt, after `lost` lost attempts; undefined: give up. */
export const retryWait = (lost: number): number | undefined => RETRIES_MS[lost];
const RETRIED = new Set([0, 429, 502, 503, 504]);
/** Whether another attempt can succeed. */
export const isLost = (error: unknown): boolean => error instanceof ApiError && RETRIED.has(error.status);

interface CallAttempt {
  /** The idempotency key of the call. A repeat with it joins the call or reads its result. */
  id: string;
  /** The task id if a socket accepted the call before. */
  taskId: string | null;
  signal: AbortSignal;
  onTaskId: (taskId: string) => void;
}

/** Runs a tool once over HTTP and retries lost connections. Resolves when the call has ended; the ledger has its outcome. */
export async function callTool(sid: string, call: PlayCall, { id, signal, onTaskId, ...before }: CallAttempt): Promise<Played> {
  let { taskId } = before;
  let replayed = false;
  const accept = (accepted: string) => {
    replayed ||= taskId !== null;
    taskId = accepted;
    onTaskId(accepted);
  };
  for (let attempt = 0; ; attempt += 1) {
    try {
      await attemptCall(sid, call, id, accept, signal);
      return { taskId: taskId ?? '', replayed };
    } catch (error) {
      const wait = retryWait(attempt);
      if (!isLost(error) || wait === undefined || signal.aborted) throw error;
      await pause(wait, signal);
    }
  }
}

async function attemptCall(
  sid: string,
  { tool, input }: PlayCall,
  id: string,
  onTaskId: (taskId: string) => void,
  signal: AbortSignal,
): Promise<void> {
  const body = `{"name":${JSON.stringify(tool)},"input":${input}}`;
  const response = await sessionRequest('POST', '/call', sid, { body, signal, headers: { 'idempotency-key': id } });
  const lost = new ApiError(0, 'network', 'The connection broke before the result arrived. The call does not run again.');
  const reader = response.body?.getReader();
  if (!reader) throw lost;
  const parser = new SseParser();
  let ended = false;
  for (;;) {
    const piece = await reader.read().catch((error: unknown) => {
      if (signal.aborted) throw error;
      return null;
    });
    if (piece === null || piece.done) {
      if (ended) return;
      throw lost;
    }
    for (const { event, data } of parser.push(piece.value)) {
      if (event === 'task_id') onTaskId(data);
      // The page reads the outcome from the ledger.
      if (event === 'end' || event === 'error') ended = true;
    }
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener(
      'abort',
      () => {
        clearTimeout(timer);
        reject(signal.reason as Error);
      },
      { once: true },
    );
  });
}

/** Records the session as a rollout of a run. Idempotent. */
export const keepSession = (sid: string, body: { run: string; rollout: string | null }): Promise<KeptSession> =>
  api('POST /v1/sessions/{sid}/rollout', { path: { sid }, body });

/** Polls until the recorded rollout can be read: calls are recorded a second after they end. */
export const keptQuery = (id: string) =>
  queryOptions({
    queryKey: ['play', 'kept', id],
    queryFn: ({ signal }) => request<{ id: string }>(`/v1/rollouts/${encodeURIComponent(id)}`, { signal }).catch(notYet),
    refetchInterval: ({ state }) => (state.data ? false : 1_000),
  });

function notYet(error: unknown): null {
  if (error instanceof ApiError && error.status === 404) return null;
  throw error;
}
