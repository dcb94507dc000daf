import pg from 'pg';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { ExportJobs } from '../../../apps/api/src/exports/export-jobs.ts';
import { openJobPool } from '../../../apps/api/src/jobs/job-pool.ts';
import { JobQueue } from '../../../apps/api/src/jobs/job-queue.service.ts';
import { readConfig } from '../../../apps/api/src/platform/config.ts';
import { Database } from '../../../apps/api/src/platform/database/database.ts';
import { createLogger } from '../../../apps/api/src/platform/telemetry/logger.ts';
import { Metrics } from '../../../apps/api/src/platform/telemetry/metrics.ts';
import { StoreJobs } from '../../../apps/api/src/store/storage/store-jobs.ts';
import { createDatabase } from '../../support/server.ts';

let database: Database;
let drop: () => Promise<void>;
const queues: JobQueue[] = [];
const metrics: Metrics[] = [];
beforeAll(async () => {
  const created = await createDatabase();
  database = new Database(created.url, 8);
  drop = created.drop;
});
afterAll(async () => {
  await database.close();
  await drop();
});
afterEach(async () => {
  await Promise.all(queues.splice(0).map((queue) => queue.beforeApplicationShutdown()));
  await database.pool.query('DELETE FROM palestra_jobs._private_jobs');
});

/** One more process, as far as the database can tell. */
function queueOf(prepare: (queue: JobQueue) => void, jobs = true): JobQueue {
  const counted = new Metrics();
  metrics.push(counted);
  const queue = new JobQueue(database, counted, { ...readConfig({}, (file) => file), jobs: jobs ? 'here' : 'off' }, createLogger('silent'));
  prepare(queue);
  queue.onApplicationBootstrap();
  queues.push(queue);
  return queue;
}
const waiting = async () =>
  (await database.pool.query(`SELECT task_identifier FROM palestra_jobs.jobs WHERE task_identifier = 'work'`)).rows;
const WITHIN = { timeout: 60_000, interval: 50 };

describe('the job queue', () => {
  it('runs jobs of a process that runs none, once', async () => {
    const done: number[] = [];
    const handler = (queue: JobQueue) =>
      queue.handle('work', { deadlineMs: 5_000 }, async (payload: { n: number }) => void done.push(payload.n));
    const producer = queueOf(handler, false);
    await producer.add('work', { n: 1 });
    await producer.add('work', { n: 2 }, { key: 'same', runAt: new Date(Date.now() + 500) });
    await producer.add('work', { n: 3 }, { key: 'same', runAt: new Date(Date.now() + 500) });
    queueOf(handler);
    queueOf(handler);
    await expect.poll(() => done.toSorted((a, b) => a - b), WITHIN).toEqual([1, 3]);
    await expect.poll(async () => (await waiting()).length, WITHIN).toBe(0);
    expect(done).toHaveLength(2);
  });

  it('adds in the transaction of its caller', async () => {
    const queue = queueOf((other) => other.handle('work', { deadlineMs: 1_000 }, async () => {}), false);
    const client = await database.pool.connect();
    await client.query('BEGIN');
    await queue.add('work', {}, {}, client);
    await client.query('ROLLBACK');
    client.release();
    expect(await waiting()).toEqual([]);
    await expect(queue.add('unknown', {})).rejects.toThrow('no handler');
  });

  it('repeats a failed job, and counts it', async () => {
    let tries = 0;
    queueOf((queue) =>
      queue.handle('work', { deadlineMs: 5_000 }, async () => {
        tries += 1;
        if (tries === 1) throw new Error('not yet');
      }),
    );
    await queues[0]!.add('work');
    await expect.poll(() => tries, WITHIN).toBe(2);
    await expect
      .poll(() => metrics.at(-1)!.registry.getSingleMetricAsString('palestra_jobs_total'), WITHIN)
      .toContain('{job="work",outcome="done"} 1');
    expect(await metrics.at(-1)!.registry.getSingleMetricAsString('palestra_jobs_total')).toContain('{job="work",outcome="failed"} 1');
  });

  it('a regular job that fails runs again at its next time, without a limit', async () => {
    let tries = 0;
    queueOf((queue) =>
      queue.handle('work', { deadlineMs: 5_000, everyMs: 500 }, async () => {
        tries += 1;
        throw new Error('the object store is away');
      }),
    );
    await expect.poll(() => tries, WITHIN).toBeGreaterThanOrEqual(4);
  });

  it('runs a regular job once per interval, for any number of processes', async () => {
    const runs: number[] = [];
    let running = 0;
    let most = 0;
    const prepare = (queue: JobQueue) =>
      queue.handle('work', { deadlineMs: 5_000, everyMs: 1_000 }, async () => {
        runs.push(Date.now());
        running += 1;
        most = Math.max(most, running);
        await new Promise((resolve) => setTimeout(resolve, 50));
        running -= 1;
      });
    for (let process = 0; process < 3; process += 1) queueOf(prepare);
    const started = Date.now();
    await expect.poll(() => runs.length, WITHIN).toBeGreaterThanOrEqual(4);
    const intervals = (Date.now() - started) / 1_000;
    expect(runs.length).toBeLessThanOrEqual(Math.ceil(intervals) + 3);
    expect(most).toBe(1);
  });

  it('begins with the jobs of the smallest priority', async () => {
    const done: number[] = [];
    const handler = (queue: JobQueue) =>
      queue.handle('work', { deadlineMs: 5_000 }, async (payload: { n: number }) => {
        done.push(payload.n);
        await new Promise((resolve) => setTimeout(resolve, 200));
      });
    const producer = queueOf(handler, false);
    for (const n of [3, 2, 9, 0, 1, 8]) await producer.add('work', { n }, { priority: n });
    queueOf(handler);
    await expect.poll(() => done.length, WITHIN).toBe(6);
    // Three run at a time.
    expect(done.slice(0, 3).toSorted((a, b) => a - b)).toEqual([0, 1, 2]);
    expect(done.slice(3).toSorted((a, b) => a - b)).toEqual([3, 8, 9]);
  });

  it('runs short jobs although exports and sweeps of hours run', async () => {
    let over = () => {};
    const end = new Promise<void>((resolve) => (over = resolve));
    let running = 0;
    const service = { maintain: async () => {} };
    const endless = new Proxy(service, {
      get: (target, name) => (name === 'maintain' ? target.maintain : () => ((running += 1), end)),
    }) as never;
    let done = 0;
    const queue = queueOf((other) => {
      new StoreJobs(other, endless, endless, endless, endless, endless, endless).onModuleInit();
      new ExportJobs(other, database, endless, endless).onModuleInit();
      other.handle('work', { deadlineMs: 5_000 }, async () => void (done += 1));
    });
    try {
      await new ExportJobs(queue, database, endless, endless).wake();
      await expect.poll(() => running, WITHIN).toBeGreaterThanOrEqual(3);
      await queue.add('work');
      await expect.poll(() => done, { ...WITHIN, timeout: 15_000 }).toBe(1);
    } finally {
      over();
    }
  });

  it('aborts the signal of a job at its deadline and when the process ends', async () => {
    const aborted: string[] = [];
    const queue = queueOf((other) => {
      const untilAborted = (name: string) => (_payload: never, signal: AbortSignal) =>
        new Promise<void>((resolve) => {
          const hear = () => {
            aborted.push(name);
            resolve();
          };
          // A job is locked a moment before its handler runs: it may have been told by then.
          if (signal.aborted) hear();
          else signal.addEventListener('abort', hear);
        });
      other.handle('work', { deadlineMs: 200 }, untilAborted('deadline'));
      other.handle('long', { deadlineMs: 60_000 }, untilAborted('stop'));
    });
    await queue.add('work');
    await expect.poll(() => aborted, WITHIN).toEqual(['deadline']);
    await queue.add('long');
    await expect
      .poll(
        async () =>
          (await database.pool.query(`SELECT FROM palestra_jobs.jobs WHERE task_identifier = 'long' AND locked_at IS NOT NULL`)).rowCount,
        WITHIN,
      )
      .toBe(1);
    const started = performance.now();
    queues.splice(queues.indexOf(queue), 1);
    await queue.beforeApplicationShutdown();
    expect(aborted).toEqual(['deadline', 'stop']);
    expect(performance.now() - started).toBeLessThan(20_000);
  });

  it('continues after PostgreSQL closed every connection', async () => {
    let runs = 0;
    const queue = queueOf((other) => other.handle('work', { deadlineMs: 5_000 }, async () => void (runs += 1)));
    await queue.add('work');
    await expect.poll(() => runs, WITHIN).toBe(1);
    // Its end is reported after it ran.
    await expect.poll(async () => (await waiting()).length, WITHIN).toBe(0);
    await database.pool.query(
      'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()',
    );
    await expect
      .poll(
        () =>
          queue.add('work', {}, { key: 'after' }).then(
            () => true,
            () => false,
          ),
        WITHIN,
      )
      .toBe(true);
    await expect.poll(() => runs, WITHIN).toBe(2);
  });

  it('lets the library release its listening connection twice', async () => {
    const pool = openJobPool({ connectionString: database.connectionString, max: 1 });
    await new Promise<void>((resolve, reject) => {
      pool.connect((error, _client, release) => {
        release();
        release();
        if (error) reject(error);
        else resolve();
      });
    });
    expect((await pool.query('SELECT 1 AS n')).rows).toEqual([{ n: 1 }]);
    await pool.end();
  });

  it('continues after connections ended again and again while jobs ran, and stops', async () => {
    let runs = 0;
    const queue = queueOf((other) => other.handle('work', { deadlineMs: 5_000 }, async () => void (runs += 1)));
    for (let turn = 0; turn < 10; turn += 1) {
      const added = Promise.allSettled(Array.from({ length: 40 }, () => queue.add('work')));
      await new Promise((resolve) => setTimeout(resolve, turn * 6));
      await database.pool.query(
        'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()',
      );
      await added;
    }
    const before = runs;
    const isAdded = () =>
      queue.add('work').then(
        () => true,
        () => false,
      );
    await expect.poll(isAdded, WITHIN).toBe(true);
    await expect.poll(async () => (await waiting()).length, { timeout: 100_000 }).toBe(0);
    expect(runs).toBeGreaterThan(before);
    queues.splice(queues.indexOf(queue), 1);
    const started = performance.now();
    await queue.beforeApplicationShutdown();
    expect(performance.now() - started).toBeLessThan(20_000);
  }, 150_000);

  it.each(['ends', 'fails'])('continues when PostgreSQL is unavailable while a job %s', async (how) => {
    let runs = 0;
    let release = () => {};
    const held = new Promise<void>((resolve) => (release = resolve));
    const queue = queueOf((other) =>
      other.handle('work', { deadlineMs: 60_000 }, async () => {
        runs += 1;
        if (runs > 1) return;
        await held;
        if (how === 'fails') throw new Error('the object store is away');
      }),
    );
    await queue.add('work', {}, { serialKey: 'one' });
    await expect.poll(() => runs, WITHIN).toBe(1);
    const url = new URL(database.connectionString);
    const name = url.pathname.slice(1);
    url.pathname = '/postgres';
    const server = new pg.Client({ connectionString: url.href });
    await server.connect();
    await server.query(`ALTER DATABASE ${name} ALLOW_CONNECTIONS false`);
    await server.query('SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1', [name]);
    release();
    await expect.poll(() => metrics.at(-1)!.registry.getSingleMetricAsString('palestra_jobs_total'), WITHIN).toContain('job="work"');
    // Time to report the end, which fails.
    await new Promise((resolve) => setTimeout(resolve, 2_000));
    await server.query(`ALTER DATABASE ${name} ALLOW_CONNECTIONS true`);
    await server.end();
    await expect.poll(() => runs, { timeout: 40_000 }).toBe(2);
    await expect.poll(async () => (await waiting()).length, WITHIN).toBe(0);
  });

  it('releases the jobs of a dead runner, and of no other', async () => {
    // What a killed process leaves: a job that is locked by a name behind which nobody is.
    let runs = 0;
    const producer = queueOf((queue) => queue.handle('work', { deadlineMs: 5_000 }, async () => {}), false);
    await producer.add('work', {}, { serialKey: 'one' });
    await database.pool.query(`UPDATE palestra_jobs._private_jobs SET locked_by = 'pool-gone', locked_at = now(), attempts = attempts + 1`);
    await database.pool.query(`UPDATE palestra_jobs._private_job_queues SET locked_by = 'pool-gone', locked_at = now()`);
    let release = () => {};
    const held = new Promise<void>((resolve) => (release = resolve));
    const busy = queueOf((queue) => {
      queue.handle('work', { deadlineMs: 5_000 }, async () => void (runs += 1));
      queue.handle('held', { deadlineMs: 60_000 }, () => held);
    });
    await busy.add('held');
    queueOf((queue) => queue.handle('other', { deadlineMs: 5_000 }, async () => {}));
    await expect.poll(() => runs, WITHIN).toBe(1);
    const { rows } = await database.pool.query(
      `SELECT attempts FROM palestra_jobs.jobs WHERE task_identifier = 'held' AND locked_at IS NOT NULL`,
    );
    expect(rows).toEqual([{ attempts: 1 }]);
    release();
  });
});
