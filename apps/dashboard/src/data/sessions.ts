import { infiniteQueryOptions, type InfiniteData, type QueryClient, queryOptions } from '@tanstack/react-query';
import type { SessionCallList, SessionCallView, SessionForkView, SessionList, SessionView, SlotList } from '@palestra/protocol';
import { request } from './http.ts';
import { openEventSource } from './live/event-source.ts';

/** Query options of sessions, calls and slots, and the functions that keep a session page current. */

const SESSION_PAGE = 100;
const CALL_PAGE = 100;
/** Lists of live sessions have no event stream, so they are polled while they are visible. */
const LIVE_REFRESH_MS = 3_000;
const PING_REFRESH_MS = 5_000;
const CALLS_REFRESH_MS = 1_000;

const part = encodeURIComponent;
const path = (sid: string) => `/v1/sessions/${part(sid)}`;

export interface SessionFilter {
  /** `live`, `ended`, or one state. */
  state: string;
  environment?: string | undefined;
  run?: string | undefined;
  key?: string | undefined;
  failure?: string | undefined;
}

const sessionKeys = {
  lists: ['sessions'] as const,
  slots: ['slots'] as const,
  one: (sid: string) => ['session', sid] as const,
  calls: (sid: string) => ['session-calls', sid] as const,
};

function listPath({ state, environment, run, key, failure }: SessionFilter, cursor: string): string {
  const query = { state, environment, run, key_id: key, failure_class: failure, cursor, limit: String(SESSION_PAGE) };
  return `/v1/sessions?${new URLSearchParams(Object.entries(query).filter((entry): entry is [string, string] => Boolean(entry[1])))}`;
}

export const sessionsQuery = (filter: SessionFilter) =>
  infiniteQueryOptions({
    queryKey: [...sessionKeys.lists, filter],
    queryFn: ({ pageParam, signal }) => request<SessionList>(listPath(filter, pageParam), { signal }),
    initialPageParam: '',
    getNextPageParam: (last) => last.next_cursor ?? undefined,
    refetchInterval: filter.state === 'ended' ? false : LIVE_REFRESH_MS,
  });

/** The slots of the organisation, or of one environment. */
export const slotsQuery = (environment?: string) =>
  queryOptions({
    queryKey: [...sessionKeys.slots, environment ?? ''],
    queryFn: ({ signal }) => request<SlotList>(`/v1/slots${environment ? `?environment=${part(environment)}` : ''}`, { signal }),
    refetchInterval: LIVE_REFRESH_MS,
  });

export const sessionQuery = (sid: string) =>
  queryOptions({
    queryKey: sessionKeys.one(sid),
    queryFn: ({ signal }) => request<SessionView>(path(sid), { signal }),
    // Pings change its times without an event.
    refetchInterval: ({ state }) => (state.data?.live ? PING_REFRESH_MS : false),
  });

export const callsQuery = (sid: string) =>
  infiniteQueryOptions({
    queryKey: sessionKeys.calls(sid),
    queryFn: ({ pageParam, signal }) => request<SessionCallList>(`${path(sid)}/calls?after=${pageParam}&limit=${CALL_PAGE}`, { signal }),
    initialPageParam: 0,
    getNextPageParam: (last) => last.next_after ?? undefined,
  });

/** One call with its whole input and result. A running call is read again after it ends. */
export const wholeCallQuery = (sid: string, { task_id: taskId, state }: Pick<SessionCallView, 'task_id' | 'state'>) =>
  queryOptions({
    queryKey: ['session-call', sid, taskId, state],
    queryFn: ({ signal }) => request<SessionCallView>(`${path(sid)}/calls/${part(taskId)}`, { signal }),
    staleTime: Infinity,
  });

export const forkSession = (sid: string, atCall: number) =>
  request<SessionForkView>(`${path(sid)}/fork`, { method: 'POST', body: { at_call: atCall } });

/** Ends the session and invalidates the lists of sessions and slots. */
export async function endSession(client: QueryClient, sid: string): Promise<void> {
  const view = await request<SessionView>(path(sid), { method: 'DELETE' });
  client.setQueryData(sessionKeys.one(sid), view);
  await Promise.all([client.invalidateQueries({ queryKey: sessionKeys.lists }), client.invalidateQueries({ queryKey: sessionKeys.slots })]);
}

type CallPages = InfiniteData<SessionCallList, number>;

/** The pages with this call updated, or appended to the last page. */
function withCall(data: CallPages | undefined, call: SessionCallView): CallPages | undefined {
  if (data === undefined) return data;
  const known = data.pages.some((page) => page.calls.some(({ task_id: id }) => id === call.task_id));
  const pages = data.pages.map((page, index): SessionCallList => {
    if (known) return { ...page, calls: page.calls.map((old) => (old.task_id === call.task_id ? call : old)) };
    if (index < data.pages.length - 1 || page.next_after !== null) return page;
    return { ...page, calls: [...page.calls, call].toSorted((a, b) => a.seq - b.seq) };
  });
  return { ...data, pages };
}

/**
 * Refetches the queries of a key. It waits for requests in progress: aborting a request closes its connection. If that connection carried a
 * call a moment ago, the server would assume a broken call and treat an equal call as its repeat (ADR 7).
 */
async function refetch(client: QueryClient, queryKey: readonly string[]): Promise<void> {
  const reading = client.isFetching({ queryKey }) > 0;
  await client.invalidateQueries({ queryKey }, { cancelRefetch: false });
  if (reading) await client.invalidateQueries({ queryKey }, { cancelRefetch: false });
}

/** Refetches the session and its calls. */
export const refreshSession = (client: QueryClient, sid: string): Promise<unknown> =>
  Promise.all([refetch(client, sessionKeys.one(sid)), refetch(client, sessionKeys.calls(sid))]);

export const showSession = (client: QueryClient, session: SessionView): void => {
  client.setQueryData(sessionKeys.one(session.sid), session);
};
/** Shows the current state of a call; repeated events of a call update it. */
export const showCall = (client: QueryClient, sid: string, call: SessionCallView): void => {
  client.setQueryData<CallPages>(sessionKeys.calls(sid), (pages) => withCall(pages, call));
};

/** Keeps a session page current until the session ends. Returns a function that stops it. */
export function followSession(client: QueryClient, sid: string): () => void {
  let pending: ReturnType<typeof setTimeout> | undefined;
  const refresh = () => {
    pending = undefined;
    void refetch(client, sessionKeys.one(sid));
  };
  const close = openEventSource(`${path(sid)}/events`, (source) => {
    // Changes between the first read and the stream, or while the stream was interrupted.
    source.addEventListener('open', () => {
      refresh();
      void refetch(client, sessionKeys.calls(sid));
    });
    source.addEventListener('session', ({ data }: MessageEvent<string>) => showSession(client, JSON.parse(data) as SessionView));
    source.addEventListener('call', ({ data }: MessageEvent<string>) => {
      showCall(client, sid, JSON.parse(data) as SessionCallView);
      pending ??= setTimeout(refresh, CALLS_REFRESH_MS);
    });
    source.addEventListener('end', ({ data }: MessageEvent<string>) => {
      showSession(client, JSON.parse(data) as SessionView);
      source.close();
    });
  });
  return () => {
    close();
    clearTimeout(pending);
  };
}
