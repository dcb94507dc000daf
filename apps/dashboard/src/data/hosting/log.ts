import type { HostingLogLine } from '@palestra/protocol';
import { useEffect, useRef, useState } from 'react';
import { ApiError, isPassing, pageHeaders, type Query, search, toError } from '../http.ts';
import { whileVisible } from '../live/stream.ts';

/** Lines of one request of the API. */
const PAGE = 10_000;
/** Lines that a page keeps: the newest ones. */
const MOST_LINES = 50_000;
const RECONNECT_MS = 1_000;
/** New lines are shown together this often. */
const FLUSH_MS = 150;

export interface Log {
  lines: readonly HostingLogLine[];
  /** Number of the first of these lines in what was read, from 1. */
  first: number;
  /** `reading`: the lines that exist; `following`: those that are written from now on. */
  state: 'reading' | 'following' | 'complete' | 'interrupted';
  /** A refusal, after which nothing more is read. */
  error: Error | null;
}

const EMPTY: Log = { lines: [], first: 1, state: 'reading', error: null };

export interface LogRequest {
  /** `/v1/deploys/{id}/logs` or `/v1/environments/{owner}/{name}/logs`. */
  path: string;
  /** `severity`, `q`, `instance`, `version`. */
  filter?: Query;
  /** Begin with the last so many lines. Undefined: all. */
  tail?: number;
  follow: boolean;
  /** Nothing more is written, so a stream that the server ended is complete, instead of interrupted. */
  ends: boolean;
}

/** A log, which is read while the page is visible, from the first line or the last ones, and continued after an interruption. */
export function useHostingLog({ path, filter = {}, tail, follow, ends }: LogRequest): Log {
  const [log, setLog] = useState(EMPTY);
  const filtered = search(filter);
  // The end of a deploy does not read its log again.
  const isOver = useRef(ends);
  useEffect(() => {
    isOver.current = ends;
  }, [ends]);
  useEffect(() => {
    const reader = new LogFollower(path, filtered, { tail, follow, ends: () => isOver.current }, setLog);
    return whileVisible(() => reader.start());
  }, [path, filtered, tail, follow]);
  return log;
}

class LogFollower {
  #log = EMPTY;
  #after: number | undefined;
  #waiting: HostingLogLine[] = [];
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly path: string,
    private readonly filter: string,
    private readonly options: Pick<LogRequest, 'tail' | 'follow'> & { ends: () => boolean },
    private readonly onChange: (log: Log) => void,
  ) {}

  /** Reads until the returned function is called. */
  start(): () => void {
    const stop = new AbortController();
    // Of another log, the lines of the one before disappear.
    this.onChange(this.#log);
    void this.#run(stop.signal);
    return () => {
      stop.abort();
      clearTimeout(this.#timer);
      this.#timer = undefined;
    };
  }

  async #run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted && this.#log.state !== 'complete') {
      try {
        const count = await this.#read(signal);
        const isLast = this.options.follow ? this.options.ends() : count < PAGE || this.options.tail !== undefined;
        this.#flush(isLast ? 'complete' : this.options.follow ? 'interrupted' : 'reading');
        if (isLast) return;
      } catch (error) {
        if (signal.aborted) return;
        if (error instanceof ApiError && !isPassing(error)) {
          this.#set({ state: 'complete', error });
          return;
        }
        this.#flush('interrupted');
      }
      if (this.options.follow || this.#log.state === 'interrupted') await new Promise((resolve) => setTimeout(resolve, RECONNECT_MS));
    }
  }

  /** Resolves with the number of lines of one response. */
  async #read(signal: AbortSignal): Promise<number> {
    const { tail, follow } = this.options;
    const page = new URLSearchParams({ limit: String(PAGE) });
    if (follow) page.set('follow', 'true');
    if (this.#after !== undefined) page.set('after', String(this.#after));
    else if (tail !== undefined) page.set('tail', String(tail));
    const url = `${this.path}${this.filter === '' ? '?' : `${this.filter}&`}${page.toString()}`;
    const response = await fetch(url, { credentials: 'same-origin', headers: pageHeaders(), signal });
    if (!response.ok) throw await toError(response);
    if (follow) this.#flush('following');
    const text = response.body!.pipeThrough(new TextDecoderStream()).getReader();
    let rest = '';
    let count = 0;
    for (;;) {
      const { done, value } = await text.read();
      if (done) return count;
      const lines = (rest + value).split('\n');
      rest = lines.pop()!;
      for (const line of lines) {
        // An empty line keeps the connection open.
        if (line.trim() === '') continue;
        this.#add(JSON.parse(line) as HostingLogLine);
        count += 1;
      }
    }
  }

  #add(line: HostingLogLine): void {
    this.#after = line.seq;
    this.#waiting.push(line);
    this.#timer ??= setTimeout(() => this.#flush(this.#log.state), FLUSH_MS);
  }

  #flush(state: Log['state']): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const all = this.#waiting.length === 0 ? this.#log.lines : [...this.#log.lines, ...this.#waiting];
    this.#waiting = [];
    const excess = Math.max(0, all.length - MOST_LINES);
    this.#set({ lines: excess === 0 ? all : all.slice(excess), first: this.#log.first + excess, state });
  }

  #set(change: Partial<Log>): void {
    this.#log = { ...this.#log, ...change };
    this.onChange(this.#log);
  }
}
