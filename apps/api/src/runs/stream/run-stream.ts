import type { ServerResponse } from 'node:http';
import { encodeSseEvent, encodeSseHeartbeat, SSE_HEADERS } from '@palestra/protocol';
import type { RunNews } from './run-activity.service.ts';
import type { RunCounters } from './stream.sql.ts';

/** Time between comments that keep proxies from closing an idle stream (dashboard.md section 7). */
const PING_MS = 15_000;
/** Counters are read and sent so often at most. */
const COUNTERS_MS = 1_000;
/** A reader that takes nothing is cut; it reconnects and reads the newest state. */
const MAX_PENDING_BYTES = 256 * 1024;
/** News of two processes may come in the other order: a reader is told again what changed in the versions just before its own. */
export const RETOLD_VERSIONS = 16n;
/** So many versions back a reader can be told what changed; one that is further back reads everything again. */
export const RESUMABLE_VERSIONS = 1_000;
export const RESUMABLE_STEPS = 200;

/** One reader of the news of a run, or of all runs of its organisation. */
export class RunStream {
  #last: string | null = null;
  #counting: NodeJS.Timeout | null = null;
  /** Something came after they were last read. */
  #recount = false;
  readonly #ping: NodeJS.Timeout;

  constructor(
    private readonly raw: ServerResponse,
    /** Null: of all runs, of which nothing is counted. */
    private readonly counters: (() => Promise<RunCounters | null>) | null,
  ) {
    raw.on('error', () => {});
    raw.writeHead(200, SSE_HEADERS);
    raw.write(encodeSseHeartbeat(new Date()));
    this.#ping = setInterval(() => this.#write(encodeSseHeartbeat(new Date())), PING_MS);
  }

  /** What a reader that was here before has missed. `steps`: what changed since; null when that cannot be told. */
  resume(steps: readonly number[] | null, v: string): void {
    if (steps === null) this.#send('reset', { v }, v);
    else if (steps.length > 0) this.#dirty(steps, v);
  }

  /** News, at most once a second a run and kind: whoever tells them has merged them. */
  tell({ id, v, steps }: RunNews): void {
    this.#send('run', { id, v, steps }, null);
    if (this.counters === null) return;
    if (steps !== undefined) this.#dirty(steps, v);
    this.count();
  }

  /** Sends counters now, or when a second has passed since they were last sent; what comes in between is in them. */
  count(): void {
    if (this.counters === null) return;
    if (this.#counting) {
      this.#recount = true;
      return;
    }
    this.#recount = false;
    void this.#count(this.counters);
    this.#counting = setTimeout(() => {
      this.#counting = null;
      if (this.#recount) this.count();
    }, COUNTERS_MS);
  }

  end(): void {
    clearInterval(this.#ping);
    if (this.#counting) clearTimeout(this.#counting);
  }

  async #count(read: () => Promise<RunCounters | null>): Promise<void> {
    // Whoever misses one gets the next one.
    const counters = await read().catch(() => null);
    // Its version is no place to go on from: what changed up to it may not have been told yet. The first one is.
    if (counters) this.#send('counters', counters, this.#last === null ? counters.v : null);
  }

  /** `groups` null: any of these steps. */
  #dirty(steps: readonly number[] | null, v: string): void {
    this.#send('dirty', { steps, groups: null, v }, v);
  }

  /** `v`: a version up to which everything has been told, by which a reader goes on; it never goes back. */
  #send(event: string, data: object, v: string | null): void {
    if (v !== null && (this.#last === null || BigInt(v) > BigInt(this.#last))) this.#last = v;
    this.#write(`${v === null ? '' : `id: ${this.#last}\r\n`}${encodeSseEvent(event, JSON.stringify(data))}`);
  }

  #write(text: string): void {
    if (this.raw.destroyed) return;
    if (this.raw.writableLength > MAX_PENDING_BYTES) this.raw.destroy();
    else this.raw.write(text);
  }
}
