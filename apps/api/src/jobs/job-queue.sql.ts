import type pg from 'pg';
import { JOB_SCHEMA } from './job-schema.ts';

export interface JobRow {
  name: string;
  payload: unknown;
  /** At most one job of a key waits; a later one replaces its payload. */
  key: string | null;
  runAt: Date | null;
  maxAttempts: number;
  /** Jobs with the same serial key run one after another, in all processes. */
  serialKey: string | null;
  /** Default 0. */
  priority?: number;
  /** Whether a waiting job of the key keeps its time instead of taking the new one. */
  keepTime: boolean;
}

/** In a transaction the job exists after the commit. */
export async function addJob(client: Pick<pg.Pool, 'query'>, job: JobRow): Promise<void> {
  await client.query(
    `SELECT FROM ${JOB_SCHEMA}.add_job($1, $2::json, queue_name => $3, run_at => $4::timestamptz, max_attempts => $5, job_key => $6, job_key_mode => $7, priority => $8)`,
    [
      job.name,
      JSON.stringify(job.payload ?? {}),
      job.serialKey,
      job.runAt?.toISOString() ?? null,
      job.maxAttempts,
      job.key,
      job.keepTime ? 'preserve_run_at' : 'replace',
      job.priority ?? 0,
    ],
  );
}

/** Due jobs that are not running, by name. */
export async function countDueJobs(client: Pick<pg.Pool, 'query'>): Promise<{ name: string; due: number }[]> {
  const { rows } = await client.query<{ name: string; due: number }>(
    `SELECT task_identifier AS name, count(*)::int AS due FROM ${JOB_SCHEMA}.jobs
     WHERE locked_at IS NULL AND run_at < now() AND attempts < max_attempts GROUP BY 1`,
  );
  return rows;
}

/** Deletes jobs without attempts left, some days after their failure. */
export async function deleteFailedJobs(client: Pick<pg.Pool, 'query'>, olderThanDays: number): Promise<void> {
  await client.query(
    `SELECT FROM ${JOB_SCHEMA}.complete_jobs(ARRAY(SELECT id FROM ${JOB_SCHEMA}.jobs
     WHERE locked_at IS NULL AND attempts >= max_attempts AND updated_at < now() - $1 * interval '1 day'))`,
    [olderThanDays],
  );
}

/** Class of the session-level locks that show that a runner lives; the object is the hash of its name. */
const ALIVE_LOCK = 1_883_456;

export async function lockAlive(client: pg.ClientBase, runner: string): Promise<void> {
  await client.query('SELECT pg_advisory_lock($1::int, hashtext($2))', [ALIVE_LOCK, runner]);
}

/** Runners that hold jobs and have no connection: their process was killed. */
export async function selectDeadRunners(client: pg.ClientBase): Promise<string[]> {
  const { rows } = await client.query<{ runner: string }>(
    `SELECT DISTINCT locked_by AS runner FROM ${JOB_SCHEMA}.jobs WHERE locked_by IS NOT NULL AND NOT EXISTS (
       SELECT FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 2 AND classid = $1::int::oid
         AND objid = (hashtext(locked_by)::bigint & 4294967295)::oid AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))`,
    [ALIVE_LOCK],
  );
  return rows.map(({ runner }) => runner);
}

/** Releases the jobs of dead runners. */
export async function releaseRunners(client: pg.ClientBase, runners: readonly string[]): Promise<void> {
  await client.query(`SELECT FROM ${JOB_SCHEMA}.force_unlock_workers($1::text[])`, [runners]);
}
