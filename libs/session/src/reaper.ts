import type { Clock } from '@palestra/kit';
import { type LiveSession, TOMBSTONE_MS } from './live-session.ts';
import type { SessionRegistry } from './session-registry.ts';

export interface ReaperOptions {
  clock: Clock;
  onBackgroundError: (error: unknown, sid: string) => void;
}

const SWEEP_MS = 5_000;
/** Activity reaches the store at most this late; far below any idle timeout. */
const TOUCH_MS = 10_000;
/** The environment's server hears of a session that only pings this often (its own idle limit is 15 minutes). */
const UPSTREAM_PING_MS = 30_000;
const PING_DEADLINE_MS = 20_000;
const IDLE_BATCH = 500;

/** Keeps living sessions alive, in the store and upstream, and ends those that nobody asks for any more. */
export class SessionReaper {
  #cancel: () => void = () => {};
  #sweeping: Promise<void> = Promise.resolve();

  constructor(
    readonly registry: SessionRegistry,
    readonly options: ReaperOptions,
    readonly teardown: (live: LiveSession) => Promise<void>,
  ) {}

  start(): void {
    this.#cancel = this.options.clock.after(SWEEP_MS, () => {
      this.#sweeping = this.sweep()
        .catch((error: unknown) => this.options.onBackgroundError(error, ''))
        .finally(() => this.start());
    });
  }

  async stop(): Promise<void> {
    await this.#sweeping;
    this.#cancel();
  }

  async sweep(): Promise<void> {
    await this.#touch();
    await this.#expire();
    await this.registry.store.purge(this.options.clock.now() - TOMBSTONE_MS);
  }

  pingUpstream(live: LiveSession): void {
    const now = this.options.clock.now();
    if (live.backend === null || now - live.upstreamSeenAt < UPSTREAM_PING_MS) return;
    live.upstreamSeenAt = now;
    const deadline = AbortSignal.any([live.signal, AbortSignal.timeout(PING_DEADLINE_MS)]);
    // A failed ping proves nothing: the next request that matters will say what is wrong.
    live.backend.ping(deadline).catch((error: unknown) => this.options.onBackgroundError(error, live.record.sid));
  }

  async #touch(): Promise<void> {
    const now = this.options.clock.now();
    const seen: { sid: string; at: number }[] = [];
    for (const live of this.registry.all()) {
      if (live.runningCalls > 0) live.lastSeenAt = now;
      if (live.lastSeenAt <= live.touchedAt || now - live.touchedAt < TOUCH_MS) continue;
      live.touchedAt = now;
      seen.push({ sid: live.record.sid, at: live.lastSeenAt });
    }
    if (seen.length === 0) return;
    const stored = await this.registry.store.touch(seen);
    await Promise.all(
      stored.map(async ({ sid, version }) => {
        const live = this.registry.get(sid);
        if (live !== undefined && version > live.record.version) await this.registry.refresh(live);
      }),
    );
  }

  async #expire(): Promise<void> {
    const now = this.options.clock.now();
    const idle = await this.registry.store.findIdle(now, IDLE_BATCH);
    await Promise.all(
      idle.map(async (record) => {
        const live = this.registry.adopt(record);
        if (now - live.lastSeenAt < record.idleTimeoutMs) return;
        const hadBackend = live.record.ref !== null;
        if ((await this.registry.advance(live, 'expired')) && hadBackend) await this.teardown(live);
      }),
    );
  }
}
