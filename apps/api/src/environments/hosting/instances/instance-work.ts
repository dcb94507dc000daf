import { HostingError, type InstanceSpec, type Provider } from '@palestra/hosting';
import { abortable, MicroBatcher, splitCredentials, systemClock } from '@palestra/kit';
import type { Logger } from 'pino';
import type pg from 'pg';
import type { InstanceLogs } from './instance-logs.ts';
import { notifyInstances } from '../hosting-events.ts';
import { endInstances, markReady, markStopped, type StoredInstance } from './instance.sql.ts';
import { Turns } from './turns.ts';

export interface WorkOptions {
  pool: pg.Pool;
  logger: Logger;
  logs: InstanceLogs;
  /** Null when this process has no such engine. */
  provider: (name: string) => Provider | null;
  /** What the engine needs to start the instance; null when it must not start any more. Throws `HostingError`. */
  spec: (id: string) => Promise<InstanceSpec | null>;
  /** `fetch` for the server of an instance of that provider. */
  fetch: (provider: string) => typeof globalThis.fetch;
  /** Called when an instance has changed, so that the next decision comes soon. */
  onChange: () => void;
  onReady: (coldStartMs: number) => void;
}

/** Instances that became ready or ended while the ones before were stored share one commit. */
const BATCH = { maxItems: 500, maxAgeMs: 0, maxQueued: 100_000, concurrency: 1 };
/** Instances that start at the same time, and that end: one that cannot end, because its node is lost, keeps no other from starting. */
const CONCURRENCY = 32;
const ENSURE_MS = 300_000;
const REMOVE_MS = 90_000;
/** Between SIGTERM and SIGKILL. */
const GRACE_MS = 10_000;
/** After a failure the same work waits. */
const RETRY_MS = 2_000;
const ANSWER_MS = 2_000;
const FIRST_PAUSE_MS = 25;
const LONGEST_PAUSE_MS = 500;
/** A proxy or a server before its application is ready answers these. */
const NOT_READY = new Set([502, 503, 504]);

interface ReadyInstance {
  row: StoredInstance;
  endpoint: string;
}

/** Carries decisions out, in the background: at most one piece of work of an instance at a time. */
export class InstanceWork {
  readonly #options: WorkOptions;
  readonly #running = new Map<string, AbortController>();
  readonly #notBefore = new Map<string, number>();
  /** Which the engine has accepted. */
  readonly #ensured = new Set<string>();
  readonly #probing = new Map<string, AbortController>();
  readonly #work = new Set<Promise<void>>();
  readonly #starts = new Turns(CONCURRENCY);
  readonly #ends = new Turns(CONCURRENCY);
  readonly #ready: MicroBatcher<ReadyInstance, number | null>;
  readonly #stopped: MicroBatcher<{ id: string; detail: string | null }, void>;

  constructor(options: WorkOptions) {
    this.#options = options;
    this.#ready = new MicroBatcher({ ...BATCH, flush: (all) => this.#storeReady(all) });
    this.#stopped = new MicroBatcher({ ...BATCH, flush: (all) => markStopped(options.pool, all).then(() => all.map(() => {})) });
  }

  isBusy(id: string): boolean {
    if (this.#running.has(id)) return true;
    const notBefore = this.#notBefore.get(id);
    if (notBefore === undefined) return false;
    if (notBefore > Date.now()) return true;
    return !this.#notBefore.delete(id);
  }

  /** Whether this process has started the instance to the end. */
  isEnsured(id: string): boolean {
    return this.#ensured.has(id);
  }

  /** Starts the instance on its engine. */
  ensure(row: StoredInstance): void {
    this.#run(row.id, this.#starts, ENSURE_MS, async (signal) => {
      try {
        const provider = this.#options.provider(row.provider);
        if (provider === null) throw new HostingError('instance_failed', `This server no longer has the engine "${row.provider}".`);
        const spec = await this.#options.spec(row.id);
        if (spec === null) return;
        const { endpoint, state } = await provider.ensure(spec, signal);
        this.#ensured.add(row.id);
        if (endpoint !== null && state !== 'exited') this.probe(row, endpoint);
      } catch (error) {
        if (!(error instanceof HostingError) || error.code === 'engine_unavailable') throw error;
        await this.#end(row, error.message);
      }
    });
  }

  /** Removes what the engine has of an ended instance. A failed one gets the last lines of its log as its reason. */
  remove(row: StoredInstance): void {
    this.stopProbe(row.id);
    this.#ensured.delete(row.id);
    this.#run(row.id, this.#ends, REMOVE_MS, async (signal) => {
      const { provider: providerOf, logs } = this.#options;
      const provider = providerOf(row.provider);
      const tail = row.state === 'failed' && provider !== null ? await logs.tail(row, provider) : [];
      await provider?.remove(row.id, GRACE_MS, signal);
      const detail = tail.length === 0 ? null : [row.detail ?? 'It ended.', 'Last lines of its log:', ...tail].join('\n');
      await this.#stopped.add({ id: row.id, detail });
    });
  }

  /** Removes an instance that no row names: what a crash left. */
  removeOrphan(id: string, provider: Provider): void {
    this.#run(id, this.#ends, REMOVE_MS, (signal) => provider.remove(id, GRACE_MS, signal));
  }

  /** Asks the instance until it answers. Does nothing if it is being asked. */
  probe(row: StoredInstance, endpoint: string): void {
    if (this.#probing.has(row.id)) return;
    const stop = new AbortController();
    this.#probing.set(row.id, stop);
    this.#track(this.#probe(row, endpoint, stop.signal).finally(() => this.#probing.delete(row.id)));
  }

  stopProbe(id: string): void {
    this.#probing.get(id)?.abort();
  }

  /** Whether the server answers anything within `ms`. */
  async answers(row: StoredInstance, endpoint: string, ms: number, signal?: AbortSignal): Promise<number | null> {
    const deadline = AbortSignal.timeout(ms);
    const stop = signal === undefined ? deadline : AbortSignal.any([deadline, signal]);
    const { url: base, headers } = splitCredentials(endpoint);
    const url = new URL('health', base.endsWith('/') ? base : `${base}/`);
    const ask = async () => {
      const answer = await this.#options.fetch(row.provider)(url, { headers, signal: stop, redirect: 'manual' });
      await answer.body?.cancel();
      return answer.status;
    };
    // `fetch` of Node.js 20 may ignore its signal when the connection has ended.
    return abortable(ask(), stop).catch(() => null);
  }

  /** Aborts what runs. Another process continues. */
  async stop(): Promise<void> {
    for (const stop of [...this.#running.values(), ...this.#probing.values()]) stop.abort(new Error('stopped'));
    for (const turns of [this.#starts, this.#ends]) turns.release();
    await Promise.allSettled(this.#work);
  }

  async #probe(row: StoredInstance, endpoint: string, signal: AbortSignal): Promise<void> {
    const { onReady, onChange } = this.#options;
    for (let pauseMs = FIRST_PAUSE_MS; !signal.aborted; pauseMs = Math.min(1.5 * pauseMs, LONGEST_PAUSE_MS)) {
      const status = await this.answers(row, endpoint, ANSWER_MS, signal);
      if (status !== null && !NOT_READY.has(status)) {
        const coldStartMs = await this.#ready.add({ row, endpoint });
        if (coldStartMs === null) return;
        onReady(coldStartMs);
        return onChange();
      }
      await systemClock.sleep(pauseMs, signal).catch(() => {});
    }
  }

  /** Milliseconds of each start; null for those that do not start any more. */
  async #storeReady(all: readonly ReadyInstance[]): Promise<(number | null)[]> {
    const { pool } = this.#options;
    const started = all.map(({ row, endpoint }) => ({ id: row.id, endpoint }));
    const coldStarts = await markReady(pool, started);
    const versions = all.filter(({ row }) => coldStarts.has(row.id)).map(({ row }) => row.version_id);
    if (versions.length > 0) await notifyInstances(pool, [...new Set(versions)]);
    return all.map(({ row }) => coldStarts.get(row.id) ?? null);
  }

  async #end(row: StoredInstance, reason: string): Promise<void> {
    await endInstances(this.#options.pool, [{ id: row.id, state: 'failed', reason }]);
    await notifyInstances(this.#options.pool, [row.version_id]);
  }

  #run(id: string, turns: Turns, deadlineMs: number, work: (signal: AbortSignal) => Promise<unknown>): void {
    if (this.isBusy(id)) return;
    const stop = new AbortController();
    this.#running.set(id, stop);
    const run = async () => {
      await turns.begin();
      try {
        if (stop.signal.aborted) return;
        await work(AbortSignal.any([stop.signal, AbortSignal.timeout(deadlineMs)]));
      } catch (error) {
        this.#notBefore.set(id, Date.now() + RETRY_MS);
        if (!stop.signal.aborted) this.#options.logger.warn({ err: error, instance: id }, 'work on an instance failed; it is repeated');
      } finally {
        this.#running.delete(id);
        turns.end();
        this.#options.onChange();
      }
    };
    this.#track(run());
  }

  #track(work: Promise<void>): void {
    const tracked = work
      .catch((error: unknown) => this.#options.logger.warn({ err: error }, 'work on an instance failed'))
      .finally(() => this.#work.delete(tracked));
    this.#work.add(tracked);
  }
}
