import type { ServerResponse } from 'node:http';
import { encodeSseEvent, encodeSseHeartbeat, SSE_HEADERS } from '@palestra/kit/sse';
import type { StreamAdvisories, StreamCounters, StreamData, StreamEvent } from '@palestra/protocol';
import { LIVE_MS } from '@palestra/rollouts';
import { Pulse } from './pulse.ts';
import type { RunChange } from '../../store/run-activity.service.ts';
import type { OpenRollout } from './stream.sql.ts';

/** Time between comments that keep proxies from closing an idle stream (dashboard.md section 7). */
const PING_MS = 15_000;
/** Each kind of event is read and sent so often at most. */
const EVENT_MS = 1_000;
/** A reader that takes nothing is cut; it reconnects and reads the newest state. */
const MAX_PENDING_BYTES = 256 * 1024;
/** News of two processes may come in the other order: a reader is told again what changed in the versions just before its own. */
export const RETOLD_VERSIONS = 16n;
/** So many versions back a reader can be told what changed; one that is further back reads everything again. */
export const RESUMABLE_VERSIONS = 1_000;
export const RESUMABLE_STEPS = 200;

/** What a stream tells beside news, each read when something may have changed. Null answers are not sent. */
export interface StreamReads {
  /** Of one run; absent for a stream of all runs. */
  counters?: () => Promise<StreamCounters | null>;
  advisories?: () => Promise<StreamAdvisories | null>;
  /** The rollout that the reader has open. */
  rollout?: () => Promise<OpenRollout | null>;
}

/** One reader of the news of a run, or of all runs of its organisation. */
export class RunStream {
  #last: string | null = null;
  /** By kind of event, what was sent last: the same is not sent again. */
  readonly #sent = new Map<string, string>();
  readonly #counters: Pulse;
  readonly #advisories: Pulse;
  readonly #rollout: Pulse;
  readonly #ping: NodeJS.Timeout;
  /** The open rollout falls quiet without any news. */
  #quiet: NodeJS.Timeout | null = null;
  #ended = false;

  constructor(
    private readonly raw: ServerResponse,
    private readonly reads: StreamReads,
  ) {
    raw.on('error', () => {});
    raw.writeHead(200, SSE_HEADERS);
    raw.write(encodeSseHeartbeat(new Date()));
    this.#counters = new Pulse(() => this.#count(), EVENT_MS);
    this.#advisories = new Pulse(() => this.#advise(), EVENT_MS);
    this.#rollout = new Pulse(() => this.#look(), EVENT_MS);
    this.#ping = setInterval(() => {
      this.#write(encodeSseHeartbeat(new Date()));
      // A run that stands still has advisories that only the clock tells.
      this.#advisories.ask();
    }, PING_MS);
  }

  /** Begins with how things are now. */
  begin(): void {
    this.count();
    this.#advisories.ask();
    this.lookAtRollout();
  }

  /** What a reader that was here before has missed. `steps`: what changed since; null when that cannot be told. */
  resume(steps: number[] | null, v: string): void {
    if (steps === null) this.#send('reset', { v }, v);
    else if (steps.length > 0) this.#dirty(steps, v);
  }

  /** News, at most once a second a run and kind: whoever tells them has merged them. */
  tell({ id, v, steps }: RunChange): void {
    this.#send('run', { id, v, steps }, null);
    if (!this.reads.counters) return;
    if (steps !== undefined) {
      this.#dirty(steps, v);
      this.#advisories.ask();
    }
    this.count();
  }

  /** Something may have come for the rollout that the reader has open. */
  lookAtRollout(): void {
    if (this.reads.rollout) this.#rollout.ask();
  }

  /** Sends counters now, or when a second has passed since they were last sent; what comes in between is in them. */
  count(): void {
    if (this.reads.counters) this.#counters.ask();
  }

  end(): void {
    this.#ended = true;
    clearInterval(this.#ping);
    if (this.#quiet) clearTimeout(this.#quiet);
    for (const pulse of [this.#counters, this.#advisories, this.#rollout]) pulse.end();
  }

  async #count(): Promise<void> {
    const counters = await this.reads.counters?.();
    // Its version is no place to go on from: what changed up to it may not have been told yet. The first one is.
    if (counters) this.#send('counters', counters, this.#last === null ? counters.v : null);
  }

  async #advise(): Promise<void> {
    const news = await this.reads.advisories?.();
    if (news && this.#isNew('advisory', news.advisories)) this.#send('advisory', news, null);
  }

  async #look(): Promise<void> {
    const rollout = await this.reads.rollout?.();
    if (!rollout || this.#ended) return;
    const { id, msgs, state, age_ms } = rollout;
    if (this.#isNew('rollout', [msgs, state])) this.#send('rollout', { id, msgs, state }, null);
    if (this.#quiet) clearTimeout(this.#quiet);
    this.#quiet = state === 'live' ? setTimeout(() => this.lookAtRollout(), Math.max(0, LIVE_MS - age_ms) + 100) : null;
  }

  #isNew(kind: string, content: unknown): boolean {
    const text = JSON.stringify(content);
    if (this.#sent.get(kind) === text) return false;
    this.#sent.set(kind, text);
    return true;
  }

  /** `groups` null: any of these steps. */
  #dirty(steps: number[] | null, v: string): void {
    this.#send('dirty', { steps, groups: null, v }, v);
  }

  /** `v`: a version up to which everything has been told, by which a reader goes on; it never goes back. */
  #send<E extends StreamEvent>(event: E, data: StreamData[E], v: string | null): void {
    if (v !== null && (this.#last === null || BigInt(v) > BigInt(this.#last))) this.#last = v;
    this.#write(`${v === null ? '' : `id: ${this.#last}\r\n`}${encodeSseEvent(event, JSON.stringify(data))}`);
  }

  #write(text: string): void {
    if (this.raw.destroyed) return;
    if (this.raw.writableLength > MAX_PENDING_BYTES) this.raw.destroy();
    else this.raw.write(text);
  }
}
