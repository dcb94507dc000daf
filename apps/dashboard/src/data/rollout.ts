import { infiniteQueryOptions, keepPreviousData, queryOptions, type QueryKey } from '@tanstack/react-query';
import type { RolloutCalls, RolloutDiff, RolloutHeader, RolloutMessageView, RolloutOutline, RolloutView } from '@palestra/protocol';
import { queryClient } from './client.ts';
import { api, isGone, pageHeaders, request, toError } from './http.ts';
import { type FromList, readOrder } from './list-order.ts';

/** Data of the rollout viewer: header and outline at once, texts by page, large bodies in windows. */

/** How often a live rollout is read; new rows are appended at the end. */
const LIVE_MS = 1_500;
/** How often a rollout is read that is quiet or ended recently: messages can still arrive. */
const SETTLING_MS = 10_000;
/** A rollout without changes for this long is not read again. */
const SETTLED_AFTER_MS = 10 * 60_000;

function headerInterval(header: RolloutHeader | undefined): number | false {
  if (!header) return false;
  if (header.state === 'live') return LIVE_MS;
  return canChange(header) ? SETTLING_MS : false;
}
const canChange = ({ state, updated_at }: RolloutHeader): boolean =>
  state === 'live' || Date.now() - Date.parse(updated_at) < SETTLED_AFTER_MS;
/** The refetch interval of data about a rollout, such as its group. */
export const relatedInterval = (header: RolloutHeader): number | false => (canChange(header) ? SETTLING_MS : false);

/** The last data under a key with this prefix, shown until new data arrives. */
export const lastRead = <T>(begin: QueryKey): T | undefined =>
  queryClient.getQueriesData<T>({ queryKey: begin }).findLast(([, data]) => data !== undefined)?.[1];
/** How often a search is repeated while messages wait for the index. */
const PENDING_MS = 2_000;
/** Messages of one page of texts. */
export const PAGE = 50;

/** The key does not start with `run`: changes of a run do not refetch the transcript. */
const key = (id: string, ...rest: readonly unknown[]) => ['transcript', id, ...rest] as const;

export const headerQuery = (id: string) =>
  queryOptions({
    queryKey: key(id, 'header'),
    queryFn: ({ signal }) => api('GET /v1/rollouts/{id}/header', { path: { id }, signal }),
    refetchInterval: ({ state }) => (isGone(state.error) ? false : headerInterval(state.data)),
  });

/** `counts`: counts of the header that differ from the first outline; a new value reads the outline again. Null for the first outline. */
export const outlineQuery = (id: string, counts: Pick<RolloutHeader, 'num_messages' | 'gaps'> | null) =>
  queryOptions({
    queryKey: key(id, 'outline', ...(counts === null ? ['first'] : [counts.num_messages, counts.gaps])),
    queryFn: ({ signal }) => api('GET /v1/rollouts/{id}/outline', { path: { id }, signal }),
    placeholderData: (previous, before) => (before?.queryKey[1] === id ? previous : undefined),
    staleTime: Infinity,
  });

/** The number of missing messages in an outline. */
const missingIn = ({ missing }: RolloutOutline): number => missing.reduce((sum, [from, to]) => sum + to - from + 1, 0);

/** Whether an outline has the counts of the header. Messages arrive, and missing messages are reported after a delay. */
export const isCurrent = (outline: RolloutOutline, { num_messages, gaps }: RolloutHeader): boolean =>
  outline.total === num_messages && missingIn(outline) === gaps;

const readMessages = (id: string, from: number, limit: number, signal?: AbortSignal) =>
  api('GET /v1/rollouts/{id}/messages', { path: { id }, query: { from, limit, bodies: 'preview' }, ...(signal && { signal }) });

/** The range to read for a page of texts. Messages can share an index; `skip` of them before the page are read again and dropped. */
function rangeOfPage(outline: RolloutOutline, page: number): { first: number; count: number; from: number; skip: number } {
  const first = page * PAGE;
  const from = outline.index[first] ?? 0;
  let skip = 0;
  while (outline.index[first - skip - 1] === from) skip += 1;
  return { first, count: Math.min(PAGE, outline.total - first), from, skip };
}

/**
 * The messages at the outline's positions from `page * PAGE` on, by position; texts over 16 kB are cut, with `body_bytes`. The key has their
 * indexes, because a message that arrives late moves the messages after it, also within a full page.
 */
export function pageQuery(id: string, outline: RolloutOutline, page: number) {
  const { first, count, from, skip } = rangeOfPage(outline, page);
  return queryOptions({
    queryKey: key(id, 'page', page, skip, outline.index.slice(first, first + count).join()),
    queryFn: async ({ signal }) => {
      const { messages } = await readMessages(id, from, count + skip, signal);
      return { first, messages: messages.slice(skip) };
    },
    staleTime: Infinity,
  });
}

/** Prefetches the first view of a rollout while the code of its page loads, including the texts at `hash` (`#m-9000`). */
export function prefetchRollout(id: string, hash: string): void {
  void queryClient.prefetchQuery(headerQuery(id));
  const wanted = Number(/^#?m-(\d{1,9})$/.exec(hash)?.[1] ?? 0);
  // Correct if every index has one message. Only the outline knows, but waiting for it would delay the texts.
  const guess = Math.floor(wanted / PAGE);
  const early = readMessages(id, guess * PAGE, PAGE).catch(() => null);
  const read = async (): Promise<void> => {
    const outline = await queryClient.ensureQueryData(outlineQuery(id, null));
    if (outline.total === 0) return;
    const at = outline.index.findIndex((index) => index >= wanted);
    const page = Math.floor((at < 0 ? outline.total - 1 : at) / PAGE);
    const query = pageQuery(id, outline, page);
    const { first, count, from, skip } = rangeOfPage(outline, page);
    const texts = from === guess * PAGE && skip === 0 ? early : null;
    await queryClient.prefetchQuery({
      ...query,
      queryFn: async (context) => {
        const messages = (await texts)?.messages ?? [];
        return messages.length >= count ? { first, messages: messages.slice(0, count) } : query.queryFn!(context);
      },
    });
  };
  // The page itself shows the error.
  read().catch(() => {});
}

/** Messages from an index on, for comparisons. `counted`: the message count of the rollout; a new count reads them again. */
export const messagesAtQuery = (id: string, from: number, limit: number, counted: number | null = null) =>
  queryOptions({
    queryKey: key(id, 'at', from, limit, counted),
    queryFn: async ({ signal }) => (await readMessages(id, from, limit, signal)).messages,
    placeholderData: () => lastRead<RolloutMessageView[]>(key(id, 'at', from, limit)),
    staleTime: Infinity,
  });

/** The ledger's data of the calls. The key has the counts of the header: calls arrive with messages, their ledger match seconds later. */
export const callsQuery = ({ id, num_tool_calls: count, verified, latency_ms: latency }: RolloutHeader) =>
  queryOptions({
    queryKey: key(id, 'calls', count, verified, latency),
    queryFn: ({ signal }) => api('GET /v1/rollouts/{id}/calls', { path: { id }, signal }),
    placeholderData: () => lastRead<RolloutCalls>(key(id, 'calls')),
    staleTime: 60_000,
  });

export const bodyUrl = (id: string, index: number, event: string) =>
  `/v1/rollouts/${encodeURIComponent(id)}/messages/${index}/body?event=${encodeURIComponent(event)}`;
export const objectUrl = (id: string, name: string) => `/v1/rollouts/${encodeURIComponent(id)}/objects/${encodeURIComponent(name)}`;
export const rawUrl = (id: string) => `/v1/rollouts/${encodeURIComponent(id)}`;

async function read(url: string, signal: AbortSignal, range?: string): Promise<Response> {
  const headers: HeadersInit = { ...pageHeaders(), ...(range !== undefined && { range }) };
  const answer = await fetch(url, { credentials: 'same-origin', signal, headers });
  if (!answer.ok) throw await toError(answer);
  return answer;
}

/** The whole text of a message that was cut in its page. */
export const bodyQuery = (id: string, index: number, event: string) =>
  queryOptions({
    queryKey: key(id, 'body', event),
    queryFn: async ({ signal }) => (await read(bodyUrl(id, index, event), signal)).text(),
    staleTime: Infinity,
    gcTime: 30_000,
  });

/** Size of one window of a large text, bytes. */
export const WINDOW_BYTES = 128 * 1024;
const isContinuation = (byte: number | undefined) => byte !== undefined && (byte & 0xc0) === 0x80;

/** One window of a large text. It contains every character that begins in the window. */
export const windowQuery = (id: string, index: number, event: string, window: number, bytes: number) =>
  queryOptions({
    queryKey: key(id, 'window', event, window),
    queryFn: async ({ signal }) => {
      const from = window * WINDOW_BYTES;
      const to = Math.min(bytes, from + WINDOW_BYTES + 3);
      const answer = await read(bodyUrl(id, index, event), signal, `bytes=${from}-${to - 1}`);
      const part = new Uint8Array(await answer.arrayBuffer());
      let start = 0;
      while (window > 0 && start < 3 && isContinuation(part[start])) start += 1;
      let end = Math.min(part.length, WINDOW_BYTES);
      while (end < part.length && isContinuation(part[end])) end += 1;
      return new TextDecoder().decode(part.subarray(start, end));
    },
    placeholderData: keepPreviousData,
    staleTime: Infinity,
    gcTime: 10_000,
  });

/** `counted`: the message counts of the two rollouts; new counts align them again. Nothing else refetches it while it is read. */
export const diffQuery = (a: string, b: string, counted: readonly (number | undefined)[] = []) =>
  queryOptions({
    queryKey: ['diff', a, b, ...counted],
    queryFn: ({ signal }) => api('GET /v1/diff', { query: { a, b }, signal }),
    placeholderData: () => lastRead<RolloutDiff>(['diff', a, b]),
    staleTime: 60_000,
    refetchOnWindowFocus: false,
    refetchOnReconnect: false,
  });

/** Messages that contain the text literally, ignoring case, in pages of 100 by index. `total`: the message count; `growing`: more can arrive. */
export const findQuery = (run: string, id: string, text: string, { total, growing }: { total: number; growing: boolean }) =>
  infiniteQueryOptions({
    queryKey: key(id, 'find', text, total),
    queryFn: ({ pageParam, signal }) => {
      const q = `(?i)${text.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')}`;
      const query = { q, mode: 'regex', within: `id:${id}`, limit: 100, cursor: pageParam };
      return api('GET /v1/runs/{run}/search', { path: { run }, query, signal });
    },
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (last) => last.next ?? undefined,
    // Hits are in message order, so the hits of a growing rollout keep their positions.
    placeholderData: (previous, before) => (before?.queryKey[1] === id && before.queryKey[3] === text ? previous : undefined),
    // New messages are searchable within seconds.
    refetchInterval: ({ state }) => (growing && state.data?.pages.at(-1)?.pending ? PENDING_MS : false),
    staleTime: 30_000,
  });

/** The rollouts before and after one in the list that it was opened from. */
export const besideQuery = (id: string, { q, sort }: FromList) =>
  queryOptions({
    queryKey: key(id, 'beside', q, sort),
    queryFn: ({ signal }) => {
      const { id: by, order } = readOrder(sort);
      return api('GET /v1/rollouts/{id}/beside', { path: { id }, query: { q, sort: by, order }, signal });
    },
    // A growing list can get a neighbour at its end.
    staleTime: ({ state }) => (state.data?.next && state.data.previous ? 60_000 : 0),
  });
export const beside = (id: string, from: FromList) => queryClient.fetchQuery(besideQuery(id, from));

/** All messages with their whole texts, for copying a rollout of moderate size. */
export const readWholeRollout = (id: string) => request<RolloutView>(rawUrl(id));
