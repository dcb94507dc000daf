import { infiniteQueryOptions, keepPreviousData, queryOptions, type QueryKey } from '@tanstack/react-query';
import type { RolloutCalls, RolloutDiff, RolloutHeader, RolloutMessageView, RolloutOutline, RolloutView } from '@palestra/protocol';
import { queryClient } from './client.ts';
import { api, isGone, request, toError } from './http.ts';
import { type FromList, readOrder } from './list-order.ts';

/** What the rollout viewer reads: header and outline at once, texts by page, large bodies in parts. */

/** A rollout that is still being sent is looked at this often; what the reader reads never moves, new rows come at its end. */
const LIVE_MS = 1_500;
/** One that fell silent, or whose end came a moment ago: its trainer may go on, and late messages come behind the last one. */
const SETTLING_MS = 10_000;
/** Where nothing came for this long, the page no longer looks. */
const SETTLED_AFTER_MS = 10 * 60_000;

function lookAgain(header: RolloutHeader | undefined): number | false {
  if (!header) return false;
  if (header.state === 'live') return LIVE_MS;
  return mayGoOn(header) ? SETTLING_MS : false;
}
const mayGoOn = ({ state, updated_at }: RolloutHeader): boolean =>
  state === 'live' || Date.now() - Date.parse(updated_at) < SETTLED_AFTER_MS;
/** How often what stands around a rollout is read again, its group say. */
export const lookAround = (header: RolloutHeader): number | false => (mayGoOn(header) ? SETTLING_MS : false);

/** What was read last under a key that begins like this: it stays until the next reading is here. */
export const lastRead = <T>(begin: QueryKey): T | undefined =>
  queryClient.getQueriesData<T>({ queryKey: begin }).findLast(([, data]) => data !== undefined)?.[1];
/** A search looks again this often while messages wait to be searchable. */
const PENDING_MS = 2_000;
/** Messages of one page of texts. */
export const PAGE = 50;

/** The first key is of its own: a finished rollout does not change, so the stream of the runs leaves its reader alone. */
const key = (id: string, ...rest: readonly unknown[]) => ['transcript', id, ...rest] as const;

export const headerQuery = (id: string) =>
  queryOptions({
    queryKey: key(id, 'header'),
    queryFn: ({ signal }) => api('GET /v1/rollouts/{id}/header', { path: { id }, signal }),
    refetchInterval: ({ state }) => (isGone(state.error) ? false : lookAgain(state.data)),
  });

/** `told`: what the header says of the rollout, where the first outline has something else; the old one stays until the new one is read. */
export const outlineQuery = (id: string, told: Pick<RolloutHeader, 'num_messages' | 'gaps'> | null) =>
  queryOptions({
    queryKey: key(id, 'outline', ...(told === null ? ['first'] : [told.num_messages, told.gaps])),
    queryFn: ({ signal }) => api('GET /v1/rollouts/{id}/outline', { path: { id }, signal }),
    placeholderData: (previous, before) => (before?.queryKey[1] === id ? previous : undefined),
    staleTime: Infinity,
  });

/** Messages that an outline shows as missing. */
const missingIn = ({ missing }: RolloutOutline): number => missing.reduce((sum, [from, to]) => sum + to - from + 1, 0);

/** Whether an outline has what the header counts: messages come, and what is missing is told once it had its time to come. */
export const isCurrent = (outline: RolloutOutline, { num_messages, gaps }: RolloutHeader): boolean =>
  outline.total === num_messages && missingIn(outline) === gaps;

const readMessages = (id: string, from: number, limit: number, signal?: AbortSignal) =>
  api('GET /v1/rollouts/{id}/messages', { path: { id }, query: { from, limit, bodies: 'preview' }, ...(signal && { signal }) });

/** What to read for a page of texts: messages of one index come in a row; those before the page are asked for again and dropped. */
function placeOf(outline: RolloutOutline, page: number): { first: number; count: number; from: number; skip: number } {
  const first = page * PAGE;
  const from = outline.index[first] ?? 0;
  let skip = 0;
  while (outline.index[first - skip - 1] === from) skip += 1;
  return { first, count: Math.min(PAGE, outline.total - first), from, skip };
}

/** The messages at the outline's positions from `page * PAGE` on, by position; texts over 16 kB are cut, with `body_bytes`. */
export function pageQuery(id: string, outline: RolloutOutline, page: number) {
  const { first, count, from, skip } = placeOf(outline, page);
  return queryOptions({
    queryKey: key(id, 'page', page, from, skip, count),
    queryFn: async ({ signal }) => {
      const { messages } = await readMessages(id, from, count + skip, signal);
      return { first, messages: messages.slice(skip) };
    },
    staleTime: Infinity,
  });
}

/** Reads what the first paint of a rollout needs while the code of its page is on its way: the texts where `hash` (`#m-9000`) leads, too. */
export function prefetchRollout(id: string, hash: string): void {
  void queryClient.prefetchQuery(headerQuery(id));
  const wanted = Number(/^#?m-(\d{1,9})$/.exec(hash)?.[1] ?? 0);
  // Where every index has one message these are the texts; the outline, which says so, need not be here to ask for them.
  const guess = Math.floor(wanted / PAGE);
  const early = readMessages(id, guess * PAGE, PAGE).catch(() => null);
  const read = async (): Promise<void> => {
    const outline = await queryClient.ensureQueryData(outlineQuery(id, null));
    if (outline.total === 0) return;
    const at = outline.index.findIndex((index) => index >= wanted);
    const page = Math.floor((at < 0 ? outline.total - 1 : at) / PAGE);
    const query = pageQuery(id, outline, page);
    const { first, count, from, skip } = placeOf(outline, page);
    const texts = from === guess * PAGE && skip === 0 ? early : null;
    await queryClient.prefetchQuery({
      ...query,
      queryFn: async (context) => {
        const messages = (await texts)?.messages ?? [];
        return messages.length >= count ? { first, messages: messages.slice(0, count) } : query.queryFn!(context);
      },
    });
  };
  // The page itself tells what went wrong.
  read().catch(() => {});
}

/** A few messages from an index on: what a comparison shows of the other rollout. `counted`: how many it had; where it has more, they are read again. */
export const messagesAtQuery = (id: string, from: number, limit: number, counted: number | null = null) =>
  queryOptions({
    queryKey: key(id, 'at', from, limit, counted),
    queryFn: async ({ signal }) => (await readMessages(id, from, limit, signal)).messages,
    placeholderData: () => lastRead<RolloutMessageView[]>(key(id, 'at', from, limit)),
    staleTime: Infinity,
  });

/** What the ledger knows of the calls, as the header counts it: calls come with messages, and the ledger's word on them seconds later. */
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
  const headers: HeadersInit = range === undefined ? {} : { range };
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

/** Bytes of one window of a large text. */
export const WINDOW_BYTES = 128 * 1024;
const isContinuation = (byte: number | undefined) => byte !== undefined && (byte & 0xc0) === 0x80;

/** One window of a large text, cut at characters: one that begins in the window is in it whole. */
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

/** `counted`: how many messages the two had; where that is another number, they are aligned anew. It is read line by line: nothing else moves it. */
export const diffQuery = (a: string, b: string, counted: readonly (number | undefined)[] = []) =>
  queryOptions({
    queryKey: ['diff', a, b, ...counted],
    queryFn: ({ signal }) => api('GET /v1/diff', { query: { a, b }, signal }),
    placeholderData: () => lastRead<RolloutDiff>(['diff', a, b]),
    staleTime: 60_000,
    refetchOnWindowFocus: false,
    refetchOnReconnect: false,
  });

/** Messages in which the text stands as it is typed, upper and lower case alike, in pages of 100 by index. `total`: how many there are; `growing`: more may come. */
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
    // Hits come in the order of the messages: those of a rollout that grew stand where they stood.
    placeholderData: (previous, before) => (before?.queryKey[1] === id && before.queryKey[3] === text ? previous : undefined),
    // What came last is searchable in seconds.
    refetchInterval: ({ state }) => (growing && state.data?.pages.at(-1)?.pending ? PENDING_MS : false),
    staleTime: 30_000,
  });

/** The rollouts before and after one in the list that its reader came from. */
export const besideQuery = (id: string, { q, sort }: FromList) =>
  queryOptions({
    queryKey: key(id, 'beside', q, sort),
    queryFn: ({ signal }) => {
      const { id: by, order } = readOrder(sort);
      return api('GET /v1/rollouts/{id}/beside', { path: { id }, query: { q, sort: by, order }, signal });
    },
    // At an end of a list that grows the next look may find somebody.
    staleTime: ({ state }) => (state.data?.next && state.data.previous ? 60_000 : 0),
  });
export const beside = (id: string, from: FromList) => queryClient.fetchQuery(besideQuery(id, from));

/** Every message with its whole text; only asked for when the reader copies a rollout of moderate size. */
export const readWholeRollout = (id: string) => request<RolloutView>(rawUrl(id));
