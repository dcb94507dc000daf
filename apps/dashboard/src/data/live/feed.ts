import type { Query, QueryClient } from '@tanstack/react-query';
import type { StreamCounters, StreamMessage, StreamRollout } from '@palestra/protocol';
import { listen } from './channel.ts';
import type { ToTab } from './worker-messages.ts';

const REFRESH_MS = 1_000;
const POLL_MS = 5_000;
const FAILURES_BEFORE_POLLING = 3;

/** Counts of a run from the last `counters` event. */
export interface LiveCounters extends StreamCounters {
  /** When the event arrived, milliseconds since the epoch. */
  at: number;
}
export interface FeedState {
  /** `polling`: the stream is down, and everything is refetched every five seconds. */
  link: 'connecting' | 'live' | 'polling';
  /** When the reader froze the page, ms since the epoch; null while the page updates. */
  frozenAt: number | null;
  counters: ReadonlyMap<string, LiveCounters>;
  rollout: StreamRollout | null;
}
/** The run or rollout of the page, for which the stream sends more events. */
export interface Focus {
  run?: string;
  rollout?: string;
}

/**
 * Follows one stream for the page of a tab. It refetches only active queries with `meta.live`, so lists and transcripts do not move while
 * they are read. There is one instance per tab (`useFeed.ts`).
 */
export class Feed {
  #state: FeedState = { link: 'connecting', frozenAt: null, counters: new Map(), rollout: null };
  readonly #listeners = new Set<() => void>();
  readonly #foci: Focus[] = [];
  #url: string | null = null;
  #stop: (() => void) | null = null;
  #polling: ReturnType<typeof setInterval> | undefined;
  #pending: ReturnType<typeof setTimeout> | undefined;
  /** Ids of runs that changed since the last refetch; null for all runs. */
  #stale: Set<string> | null = new Set();
  #running = false;
  /** Ids and names of runs that are being erased. */
  readonly #leaving = new Set<string>();

  constructor(private readonly client: QueryClient) {
    document.addEventListener('visibilitychange', () => this.#reconnect());
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };
  readonly state = (): FeedState => this.#state;

  /** Follows the stream while the page is visible. Returns a function that stops it. */
  start(): () => void {
    this.#running = true;
    this.#reconnect();
    return () => {
      this.#running = false;
      this.#reconnect();
    };
  }

  /** Sets the focus of the page until the returned function is called. */
  focus(focus: Focus): () => void {
    this.#foci.push(focus);
    this.#reconnect();
    return () => {
      this.#foci.splice(this.#foci.indexOf(focus), 1);
      this.#reconnect();
    };
  }

  /** Freezes the page, or resumes it and refetches everything. */
  toggleFreeze(): void {
    const frozenAt = this.#state.frozenAt === null ? Date.now() : null;
    this.#set({ frozenAt });
    if (frozenAt === null) this.#scheduleRefresh(null);
  }

  /** Stops refetching a run that is being erased, until the returned function is called: the server would refuse the requests. */
  leave(names: readonly string[]): () => void {
    for (const name of names) this.#leaving.add(name);
    return () => names.forEach((name) => this.#leaving.delete(name));
  }

  #reconnect(): void {
    const { run, rollout } = this.#foci.at(-1) ?? {};
    const search = new URLSearchParams({ ...(run && { run }), ...(rollout && { rollout }) }).toString();
    const wanted = this.#running && document.visibilityState === 'visible' ? `/v1/stream${search && `?${search}`}` : null;
    if (wanted === this.#url) return;
    this.#stop?.();
    this.#url = wanted;
    this.#poll(false);
    this.#set({ rollout: null });
    this.#stop = wanted === null ? null : listen(wanted, (message) => this.#receive(message));
  }

  #receive(message: ToTab): void {
    if (message.kind === 'open') {
      this.#poll(false);
      this.#set({ link: 'live' });
      // Changes before the stream opened.
      this.#scheduleRefresh(null);
    } else if (message.kind === 'down') {
      if (message.failures >= FAILURES_BEFORE_POLLING || message.closed) this.#poll(true);
    } else this.#apply({ event: message.event, data: JSON.parse(message.data) } as StreamMessage);
  }

  #apply({ event, data }: StreamMessage): void {
    const { run } = this.#foci.at(-1) ?? {};
    if (event === 'reset') this.#scheduleRefresh(null);
    else if (event === 'run') this.#scheduleRefresh(data.id);
    else if ((event === 'dirty' || event === 'advisory') && run) this.#scheduleRefresh(run);
    else if (event === 'counters' && run) this.#set({ counters: new Map(this.#state.counters).set(run, { ...data, at: Date.now() }) });
    else if (event === 'rollout') this.#set({ rollout: data });
  }

  #poll(on: boolean): void {
    clearInterval(this.#polling);
    this.#polling = undefined;
    if (!on) return;
    this.#set({ link: 'polling' });
    this.#polling = setInterval(() => this.#scheduleRefresh(null), POLL_MS);
  }

  /** Marks a run (null: all runs) as changed and refetches at most once a second. */
  #scheduleRefresh(run: string | null): void {
    if (run === null) this.#stale = null;
    else this.#stale?.add(run);
    if (this.#state.frozenAt !== null) return;
    if (this.#pending === undefined) this.#pending = setTimeout(() => this.#refresh(), REFRESH_MS);
  }

  #refresh(): void {
    this.#pending = undefined;
    // Scheduled before the page was frozen. Resuming refetches everything.
    if (this.#state.frozenAt !== null) return;
    const stale = this.#stale;
    this.#stale = new Set();
    const names = stale && this.#namesOf(stale);
    void this.client.invalidateQueries({
      predicate: (query) =>
        query.meta?.live === 'replace' &&
        !this.#leaving.has(String(query.queryKey[1])) &&
        (names === null || query.queryKey[0] !== 'run' || names.has(String(query.queryKey[1]))),
      refetchType: 'active',
    });
  }

  /** These ids and the names under which pages have read the runs. */
  #namesOf(ids: ReadonlySet<string>): Set<string> {
    const names = new Set(ids);
    const reads = this.client
      .getQueryCache()
      .findAll({ predicate: ({ queryKey }: Query) => queryKey[0] === 'run' && queryKey.length === 2 });
    for (const { state, queryKey } of reads) {
      const id = (state.data as { id?: string } | undefined)?.id;
      if (id !== undefined && ids.has(id)) names.add(String(queryKey[1]));
    }
    return names;
  }

  #set(change: Partial<FeedState>): void {
    this.#state = { ...this.#state, ...change };
    this.#listeners.forEach((listener) => listener());
  }
}
