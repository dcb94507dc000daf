import { type BeforeApplicationShutdown, Inject, Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import { EventEmitter } from 'node:events';
import { Logger as JobLogger, run, type Runner, type TaskList, type WorkerEvents } from 'graphile-worker';
import type pg from 'pg';
import type { Logger } from 'pino';
import { type Config, CONFIG } from '../platform/config.ts';
import { Database } from '../platform/database/database.ts';
import { Metrics } from '../platform/telemetry/metrics.ts';
import { LOGGER } from '../platform/tokens.ts';
import { openJobPool } from './job-pool.ts';
import { addJob, countDueJobs, deleteFailedJobs } from './job-queue.sql.ts';
import { JOB_SCHEMA } from './job-schema.ts';
import { RunnerMonitor } from './runner-monitor.ts';

/** Concurrent jobs of one process, by lane. */
const CONCURRENCY = { short: 3, long: 2, bulk: 5 } as const;
type Lane = keyof typeof CONCURRENCY;
const LANES = Object.keys(CONCURRENCY) as Lane[];
/** The library listens on one connection for each lane, and reports ends on another. */
const POOL_SIZE = CONCURRENCY.short + CONCURRENCY.long + CONCURRENCY.bulk + 2 * LANES.length;
/** A job that is added is announced, also a later one: polling finds what waits for a time when nothing is added. */
const POLL_MS = { short: 5_000, long: 5_000, bulk: 15_000 } as const;
/** A shutdown aborts the signal of running handlers after this time, milliseconds. */
const STOP_GRACE_MS = 500;
/** A runner whose first query failed repeats the error of it for ever, so another one takes its place. */
const MOST_FAILURES = 20;
/** Time in which a runner without jobs ends by itself. */
const DRAINED_MS = 1_000;
const RESTART_MS = 1_000;
const KEEP_FAILED_DAYS = 7;
const DEFAULT_ATTEMPTS = 12;

export interface JobOptions {
  /** Only one job of a key waits, with the newest payload. A running job does not count. */
  key?: string;
  runAt?: Date;
  /** Attempts, with growing delays; 12 take about two days. */
  maxAttempts?: number;
  /** Jobs with the same serial key run one after another, in all processes. */
  serialKey?: string;
  /** Of jobs that are due the one with the smallest number starts first. Default 0. */
  priority?: number;
}

/**
 * Runs a job. It must be repeatable: a process may die after the work and before it reports the end. `signal` aborts at the deadline and
 * when the process stops; another run then continues.
 */
export type JobHandler = (payload: never, signal: AbortSignal) => Promise<unknown>;

export interface HandlerOptions {
  deadlineMs: number;
  /** Interval at which the job runs, once in all processes, and not while the previous run continues. */
  everyMs?: number;
  /** `long`: a deploy. `bulk`: an export or a sweep, which may take hours. Neither may delay the others. Default `short`. */
  lane?: Lane;
}

interface Registered extends HandlerOptions {
  handler: JobHandler;
}

/**
 * Background jobs in PostgreSQL (graphile-worker, ADR 15): any process adds jobs, those with `jobs: 'here'` run them. Services
 * register handlers before the application starts.
 */
@Injectable()
export class JobQueue implements OnApplicationBootstrap, BeforeApplicationShutdown {
  readonly #handlers = new Map<string, Registered>();
  readonly #timers: NodeJS.Timeout[] = [];
  readonly #jobs;
  readonly #durations;
  readonly #monitor: RunnerMonitor;
  #pool: pg.Pool | null = null;
  readonly #runners = new Map<Lane, Runner>();
  #supervising: Promise<unknown> = Promise.resolve();
  readonly #stopping = new AbortController();

  constructor(
    private readonly database: Database,
    metrics: Metrics,
    @Inject(CONFIG) private readonly config: Config,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {
    this.#monitor = new RunnerMonitor(database.connectionString, logger);
    this.#jobs = metrics.counter('palestra_jobs_total', 'Background jobs by outcome', ['job', 'outcome']);
    this.#durations = metrics.histogram('palestra_job_duration_seconds', 'Background jobs from start to end', ['job']);
    metrics.gauge('palestra_jobs_due', 'Background jobs that are due and not running', ['job'], async (gauge) => {
      gauge.reset();
      // A scrape must not fail while PostgreSQL restarts.
      const counts = await countDueJobs(this.database.pool).catch(() => []);
      for (const { name, due } of counts) gauge.set({ job: name }, due);
    });
  }

  /** Registers a handler, before the application starts. */
  handle(name: string, options: HandlerOptions, handler: JobHandler): void {
    this.#handlers.set(name, { ...options, handler });
  }

  /** `client`: the job is added in its transaction. */
  async add(
    name: string,
    payload: object = {},
    options: JobOptions = {},
    client: Pick<pg.Pool, 'query'> = this.database.pool,
  ): Promise<void> {
    if (!this.#handlers.has(name)) throw new Error(`no handler is registered for job "${name}"`);
    const { key = null, runAt = null, maxAttempts = DEFAULT_ATTEMPTS, serialKey = null, priority = 0 } = options;
    await addJob(client, { name, payload, key, runAt, maxAttempts, serialKey, priority, keepTime: false });
  }

  onApplicationBootstrap(): void {
    this.handle('forget-failed-jobs', { deadlineMs: 60_000, everyMs: 3_600_000 }, () =>
      deleteFailedJobs(this.database.pool, KEEP_FAILED_DAYS),
    );
    if (this.config.jobs !== 'here') return;
    this.#pool = openJobPool({ connectionString: this.database.connectionString, max: POOL_SIZE, connectionTimeoutMillis: 5_000 });
    this.#supervising = Promise.all(LANES.map((lane) => this.#supervise(lane, this.#pool!)));
    this.#monitor.start();
    for (const [name, { everyMs }] of this.#handlers) {
      if (everyMs === undefined) continue;
      void this.#tick(name, new Date());
      const timer = setInterval(() => void this.#tick(name, boundaryAfter(Date.now(), everyMs)), everyMs);
      timer.unref();
      this.#timers.push(timer);
    }
  }

  /** Stops taking jobs, aborts the running ones and waits for them. */
  async beforeApplicationShutdown(): Promise<void> {
    this.#stopping.abort();
    for (const timer of this.#timers) clearInterval(timer);
    await Promise.allSettled([...this.#runners.values()].map((runner) => runner.stop()));
    await this.#supervising;
    await this.#monitor.stop();
    await this.#pool?.end();
  }

  /**
   * Every process adds the same run at the next full interval, and a waiting run keeps its time, so there is one run per interval. The
   * serial key prevents concurrent runs.
   */
  async #tick(name: string, runAt: Date): Promise<void> {
    const key = `every:${name}`;
    try {
      await addJob(this.database.pool, { name, payload: {}, key, runAt, maxAttempts: 1, serialKey: key, keepTime: true });
    } catch (error) {
      this.logger.debug({ err: error, job: name }, 'a regular job was not added; the next interval adds it');
    }
  }

  /** The library stops after several failures in a row, for example while PostgreSQL restarts. This starts it again. */
  async #supervise(lane: Lane, pool: pg.Pool): Promise<void> {
    const tasks = this.#tasks(lane);
    if (Object.keys(tasks).length === 0) return;
    while (!this.#stopping.signal.aborted) {
      const names: string[] = [];
      try {
        const { runner, drained } = await this.#start(lane, pool, tasks, names);
        this.#runners.set(lane, runner);
        if (this.#stopping.signal.aborted) await runner.stop();
        await Promise.race([runner.promise, drained]);
      } catch (error) {
        if (!this.#stopping.signal.aborted) this.logger.warn({ err: error }, 'jobs stopped; they start again');
      }
      // Jobs that ended during a database outage are released as if their process had died.
      this.#monitor.forget(names);
      if (!this.#stopping.signal.aborted) await new Promise((resolve) => setTimeout(resolve, RESTART_MS));
    }
  }

  /**
   * `names` gets the names under which the runner holds jobs. `drained` resolves soon after its last job ended: after a failed query the promise
   * of the library never does (graphile-worker 0.17.3, `holdup` in main.js counts a call that nothing ends).
   */
  async #start(lane: Lane, pgPool: pg.Pool, taskList: TaskList, names: string[]): Promise<{ runner: Runner; drained: Promise<void> }> {
    const events = new EventEmitter() as WorkerEvents;
    const drained = new Promise<void>((resolve) => {
      for (const name of ['pool:gracefulShutdown:complete', 'pool:forcefulShutdown:complete', 'pool:forcefulShutdown:error'] as const)
        events.on(name, () => setTimeout(resolve, DRAINED_MS));
    });
    events.on('pool:create', ({ workerPool }) => {
      names.push(workerPool.id);
      this.#monitor.add(workerPool.id);
    });
    let failures = 0;
    const succeed = () => (failures = 0);
    events.on('job:start', succeed).on('worker:getJob:empty', succeed);
    events.on('worker:getJob:error', () => {
      failures += 1;
      if (failures === MOST_FAILURES) void runner.stop().catch(() => {});
    });
    const runner = await run({
      pgPool,
      schema: JOB_SCHEMA,
      concurrency: CONCURRENCY[lane],
      pollInterval: POLL_MS[lane],
      noHandleSignals: true,
      gracefulShutdownAbortTimeout: STOP_GRACE_MS,
      parsedCronItems: [],
      // Without these delays the library reports the end of a job in a promise without a handler, whose rejection ends the process.
      preset: { worker: { completeJobBatchDelay: 0, failJobBatchDelay: 0 } },
      taskList,
      events,
      logger: new JobLogger(() => (level, message, meta) => {
        if (level === 'error' || level === 'warning') this.logger.debug({ meta }, message);
      }),
    });
    return { runner, drained };
  }

  #tasks(lane: Lane): TaskList {
    return Object.fromEntries(
      [...this.#handlers]
        .filter(([, job]) => (job.lane ?? 'short') === lane)
        .map(([name, job]) => [
          name,
          (payload: unknown, helpers: { abortSignal: AbortSignal }) => this.#run(name, job, payload, helpers.abortSignal),
        ]),
    );
  }

  async #run(name: string, { handler, deadlineMs }: Registered, payload: unknown, stop: AbortSignal): Promise<void> {
    const started = performance.now();
    const deadline = AbortSignal.timeout(deadlineMs);
    let outcome = 'failed';
    try {
      await handler(payload as never, AbortSignal.any([stop, this.#stopping.signal, deadline]));
      outcome = deadline.aborted ? 'late' : 'done';
    } catch (error) {
      this.logger.warn({ err: error, job: name }, 'a job failed');
      throw error;
    } finally {
      this.#jobs.inc({ job: name, outcome });
      this.#durations.observe({ job: name }, (performance.now() - started) / 1000);
    }
  }
}

/** The next multiple of the interval, by the clock. */
const boundaryAfter = (now: number, everyMs: number): Date => new Date(Math.floor(now / everyMs + 1) * everyMs);
