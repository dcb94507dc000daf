import { keepPreviousData, queryOptions } from '@tanstack/react-query';
import type { KeptSession, MessageBlock, SessionStateView, ToolsAnswer } from '@palestra/protocol';
import { SseParser } from '@palestra/kit/sse';
import { api, ApiError, request, toError } from './http.ts';

/**
 * Playing a session by hand: its prompt and tools over the session plane, which takes the browser's cookie as well as keys; its calls and events over its
 * socket (session-link.ts), or by what is here where no socket comes through.
 */

interface PlaneOptions {
  body?: string;
  signal?: AbortSignal;
  headers?: Record<string, string>;
}

async function plane(method: string, path: string, sid: string, { body, signal, headers }: PlaneOptions = {}): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(path, {
      method,
      credentials: 'same-origin',
      signal: signal ?? null,
      headers: { 'x-session-id': sid, ...headers, ...(body !== undefined && { 'content-type': 'application/json' }) },
      body: body ?? null,
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new ApiError(0, 'network', 'The server does not answer. What runs there goes on, and is never run twice.');
  }
  if (!response.ok) throw await toError(response);
  return response;
}

const read = async <T>(path: string, sid: string, signal: AbortSignal): Promise<T> =>
  (await (await plane('GET', path, sid, { signal })).json()) as T;

/** What the policy reads first. Waits for the environment's setup; 410 once the session has ended. */
export const promptQuery = (sid: string) =>
  queryOptions({
    queryKey: ['play', sid, 'prompt'],
    queryFn: ({ signal }) => read<MessageBlock[]>('/prompt', sid, signal),
    staleTime: Infinity,
    gcTime: Infinity,
    refetchOnWindowFocus: false,
  });

/** The tools of this task; those of its environment and its own. */
export const taskToolsQuery = (sid: string) =>
  queryOptions({
    queryKey: ['play', sid, 'tools'],
    queryFn: ({ signal }) => read<ToolsAnswer>('/task_tools', sid, signal),
    staleTime: Infinity,
    gcTime: Infinity,
    refetchOnWindowFocus: false,
  });

/** The state of the episode after so many calls; asked for anew after each. It may hold the answer of the task. */
export const stateQuery = (sid: string, ended: number) =>
  queryOptions({
    queryKey: ['play', sid, 'state', ended],
    queryFn: ({ signal }) => request<SessionStateView>(`/v1/sessions/${encodeURIComponent(sid)}/state`, { signal }),
    placeholderData: keepPreviousData,
    staleTime: Infinity,
    gcTime: 60_000,
    refetchOnWindowFocus: false,
  });

export const pingSession = (sid: string): Promise<Response> => plane('POST', '/ping', sid, { body: '{}' });

export interface Opening {
  environment: string;
  variant: string;
  /** A place in a split, or JSON text of the task itself. */
  task: { split: string; index: number } | { spec: string };
}

/** An id that works where a page is served over plain HTTP, too. */
export function newSid(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6]! & 0x0f) | 0x40;
  bytes[8] = (bytes[8]! & 0x3f) | 0x80;
  const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
}

/**
 * Opens a session under an id of ours, so that a repeat after a lost answer finds it, and returns the id that it is stored under (ADR 26). Waits where
 * slots are limited.
 */
export async function openPlay(sid: string, { environment, variant, task }: Opening, signal: AbortSignal): Promise<string> {
  const head = JSON.stringify({ sid, environment, variant }).slice(0, -1);
  // As text, so that the numbers of a task keep their spelling.
  const what = 'spec' in task ? `"task_spec":${task.spec}` : JSON.stringify(task).slice(1, -1);
  for (let attempt = 0; ; attempt += 1) {
    try {
      const opened = await plane('POST', '/v1/sessions', sid, { body: `${head},${what}}`, signal });
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
  /** The connection broke, and the stored result was read: the tool did not run again. */
  replayed: boolean;
}

const RETRIES_MS = [500, 1_000, 2_000, 4_000, 8_000, 15_000, 15_000, 15_000];
/** Before the next attempt after so many that were lost; undefined: give up. */
export const retryWait = (lost: number): number | undefined => RETRIES_MS[lost];
const RETRIED = new Set([0, 429, 502, 503, 504]);
/** Another attempt may come through. */
export const isLost = (error: unknown): boolean => error instanceof ApiError && RETRIED.has(error.status);

export interface Posting {
  /** Of our own: with it a repeat joins the call, or reads its result, whatever was heard of it before. */
  id: string;
  /** It was accepted before, over a socket. */
  taskId: string | null;
  signal: AbortSignal;
  onTaskId: (taskId: string) => void;
}

/** Calls a tool over HTTP, once, whatever happens to the connection. Resolves when the call has ended, however it ended: the ledger says how. */
export async function callTool(sid: string, call: PlayCall, { id, signal, onTaskId, ...before }: Posting): Promise<Played> {
  let { taskId } = before;
  let replayed = false;
  const told = (heard: string) => {
    replayed ||= taskId !== null;
    taskId = heard;
    onTaskId(heard);
  };
  for (let attempt = 0; ; attempt += 1) {
    try {
      await attemptCall(sid, call, id, told, signal);
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
  told: (taskId: string) => void,
  signal: AbortSignal,
): Promise<void> {
  const body = `{"name":${JSON.stringify(tool)},"input":${input}}`;
  const response = await plane('POST', '/call', sid, { body, signal, headers: { 'idempotency-key': id } });
  const lost = new ApiError(0, 'network', 'The connection broke before the result came. The call is not run again.');
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
      if (event === 'task_id') told(data);
      // The outcome itself is read from the ledger, where everybody reads it.
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

/** Has the session written as a rollout of a run. Idempotent. */
export const keepSession = (sid: string, body: { run: string; rollout: string | null }): Promise<KeptSession> =>
  api('POST /v1/sessions/{sid}/rollout', { path: { sid }, body });

/** Whether the rollout can be read already: its calls are written a second after they ended. */
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
