import type { ServerResponse } from 'node:http';
import { encodeSseEvent, encodeSseHeartbeat, SSE_HEADERS } from '@palestra/kit/sse';
import type { StreamAdvisories, StreamCounters, StreamData, StreamEvent } from '@palestra/protocol';
import { LIVE_MS } from '@palestra/rollouts';
import { rounded } from '../../platform/http/round-figures.ts';
import { Throttle } from './throttle.ts';
import type { RunChange } from '../../store/run-activity.service.ts';
import type { OpenRollout } from './stream.sql.ts';

/** Time between comments, which keep proxies from closing an idle stream. */
const PING_MS = 15_000;
/** Shortest time between two events of one kind. */
const EVENT_MS = 1_000;
/** The stream of a reader that is this far behind is closed; the reader reconnects and reads the newest state. */
const MAX_PENDING_BYTES = 256 * 1024;
/** Notifications of two processes can arrive in reverse order, so a resumed stream repeats the changes of this many versions before its own. */
export const REPEATED_VERSIONS = 16n;
/** A reader that is further behind reads everything again. */
export const RESUMABLE_VERSIONS = 1_000;
export const RESUMABLE_STEPS = 200;

/** Reads of state that a stream sends beside changes of runs, each when something may have changed. Null is not sent. */
export interface StreamReads {
  /** Counters of one run; absent for a stream of all runs. */
  counters?: () => Promise<StreamCounters | null>;
  advisories?: () => Promise<StreamAdvisories | null>;
  /** The rollout that the page shows. */
  rollout?: () => Promise<OpenRollout | null>;
}

/** The event stream of one page: changes of one run, or of all runs of the organisation. */
export class RunStream {
  #last: string | null = null;
  /** The last content by kind of event: equal content is not sent again. */
  readonly #sent = new Map<string, string>();
  readonly #counters: Throttle;
  readonly #advisories: Throttle;
  readonly #rollout: Throttle;
  readonly #ping: NodeJS.Timeout;
  /** Fires when the shown rollout has had no event for so long that its state changes. */
  #quiet: NodeJS.Timeout | null = null;
  #ended = false;

  constructor(
    private readonly raw: ServerResponse,
    private readonly reads: StreamReads,
  ) {
    raw.on('error', () => {});
    raw.writeHead(200, SSE_HEADERS);
    raw.write(encodeSseHeartbeat(new Date()));
    this.#counters = new Throttle(() => this.#sendCounters(), EVENT_MS);
    this.#advisories = new Throttle(() => this.#sendAdvisories(), EVENT_MS);
    this.#rollout = new Throttle(() => this.#sendRollout(), EVENT_MS);
    this.#ping = setInterval(() => {
      this.#write(encodeSseHeartbeat(new Date()));
      // Some advisories of an idle run depend on the clock.
      this.#advisories.request();
    }, PING_MS);
  }

  /** Sends the current state. */
  begin(): void {
    this.requestCounters();
    this.#advisories.request();
    this.requestRollout();
  }

  /** Continues a stream. `steps`: the steps that changed since; null when they are not known. */
  resume(steps: number[] | null, v: string): void {
    if (steps === null) this.#send('reset', { v }, v);
    else if (steps.length > 0) this.#dirty(steps, v);
  }

  /** Sends a change of a run. The caller merges changes to at most one per second, run and kind. */
  sendChange({ id, v, steps }: RunChange): void {
    this.#send('run', { id, v, steps }, null);
    if (!this.reads.counters) return;
    if (steps !== undefined) {
      this.#dirty(steps, v);
      this.#advisories.request();
    }
    this.requestCounters();
  }

  /** Reads the shown rollout again; it may have changed. */
  requestRollout(): void {
    if (this.reads.rollout) this.#rollout.request();
  }

  /** Sends counters now, or one second after the last ones. */
  requestCounters(): void {
    if (this.reads.counters) this.#counters.request();
  }

  end(): void {
    this.#ended = true;
    clearInterval(this.#ping);
    if (this.#quiet) clearTimeout(this.#quiet);
    for (const throttle of [this.#counters, this.#advisories, this.#rollout]) throttle.end();
  }

  async #sendCounters(): Promise<void> {
    const counters = await this.reads.counters?.();
    // Changes up to this version may not be sent yet, so a stream must not resume from it. The first one is safe.
    if (counters) this.#send('counters', counters, this.#last === null ? counters.v : null);
  }

  async #sendAdvisories(): Promise<void> {
    const news = await this.reads.advisories?.();
    if (news && this.#isNew('advisory', news.advisories)) this.#send('advisory', rounded(news) as StreamAdvisories, null);
  }

  async #sendRollout(): Promise<void> {
    const rollout = await this.reads.rollout?.();
    if (!rollout || this.#ended) return;
    const { id, msgs, state, age_ms } = rollout;
    if (this.#isNew('rollout', [msgs, state])) this.#send('rollout', { id, msgs, state }, null);
    if (this.#quiet) clearTimeout(this.#quiet);
    this.#quiet = state === 'live' ? setTimeout(() => this.requestRollout(), Math.max(0, LIVE_MS - age_ms) + 100) : null;
  }

  #isNew(kind: string, content: unknown): boolean {
    const text = JSON.stringify(content);
    if (this.#sent.get(kind) === text) return false;
    this.#sent.set(kind, text);
    return true;
  }

  /** `groups` null: any group of these steps. */
  #dirty(steps: number[] | null, v: string): void {
    this.#send('dirty', { steps, groups: null, v }, v);
  }

  /** `v`: the version from which a reader can resume, since all changes up to it are sent; it never decreases. */
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
