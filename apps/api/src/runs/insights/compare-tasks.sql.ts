import { type COMPARE_SORTS, type Denominator, INTERRUPTED_STOPS } from '@palestra/protocol';
import type pg from 'pg';
import { solved } from '../solved.sql.ts';

export type CompareSort = (typeof COMPARE_SORTS)[number];

export interface ComparedTask {
  task_id: number;
  key: string;
  task_index: number | null;
  split: string | null;
  environment: string | null;
  /** One entry per run, in the order of the request. */
  means: number[];
  scored: number[];
  successes: number[];
  sort_value: string;
}

export interface ComparedTasks {
  /** How many tasks each run scored. */
  counted: { at: number; tasks: number }[] | null;
  /** For each other run, the differences of its means to the first run's: one entry per shared task. */
  deltas: { at: number; values: number[] }[] | null;
  tasks: ComparedTask[] | null;
}

export interface ComparePage {
  runSeqs: readonly number[];
  phase: number | null;
  /** Name of the environment; null for all. */
  env: string | null;
  den: Denominator;
  /** Null: every step, and rollouts without one. */
  steps: readonly number[] | null;
  /** The run that `sort` compares with the first: its position, from 1. */
  against: number;
  sort: CompareSort;
  order: 'asc' | 'desc';
  limit: number;
  after?: { value: string; taskId: string };
}

/** Rounded, because a sum of floats can differ in its last bit between two pages, and a keyset must not. */
const sorts: Record<CompareSort, string> = {
  size: 'round(abs(means[$5 + 1] - means[1])::numeric, 9)::float8',
  delta: 'round((means[$5 + 1] - means[1])::numeric, 9)::float8',
  first: 'round(means[1]::numeric, 9)::float8',
  other: 'round(means[$5 + 1]::numeric, 9)::float8',
};

/** $4: name of the environment, which has an id for each variant. */
const envOf = (row: string) =>
  `($4::text IS NULL OR ${row}.env_id = ANY(ARRAY(SELECT e.id FROM rollout_environments e WHERE e.environment = $4)))`;

const EFFECTIVE = `SELECT task_id, at, scored, successes, sum / scored AS mean FROM grouped WHERE scored > 0 AND $9::text[] IS NOT NULL`;
/**
 * Adds the partial sums of interrupted rollouts; with `all` the others without a reward count as 0. Plan: step_rollups_pkey finds the steps with
 * interrupted rollouts, an Index Scan using rollouts_run_step_idx their rollouts; runs and run_environments are small. $9: the stops.
 */
const withPartial = (den: 'scored' | 'all') => `SELECT task_id, at, counted AS scored, solved AS successes, total / counted AS mean
      FROM (SELECT w.task_id, w.at, ${den === 'all' ? 'w.n' : 'w.scored + COALESCE(b.counted, 0)'} AS counted, w.successes + COALESCE(b.successes, 0) AS solved, w.sum + COALESCE(b.sum, 0) AS total
      FROM grouped w LEFT JOIN (
        SELECT r.task_id, o.at::int AS at, count(*)::int AS counted, (count(*) FILTER (WHERE ${solved('r.partial_reward')}))::int AS successes, sum(r.partial_reward) AS sum
        FROM unnest($1::int[]) WITH ORDINALITY o(run_seq, at)
        JOIN step_rollups s ON s.run_seq = o.run_seq AND s.env_id = 0 AND ($2::smallint IS NULL OR s.phase = $2) AND ($3::int[] IS NULL OR s.step = ANY($3))
          AND (s.errors > 0 OR s.figures->'stops' ?| $9::text[])
        JOIN rollouts r ON r.run_seq = o.run_seq AND COALESCE(r.step, -1) = s.step AND r.phase = s.phase
        JOIN runs u ON u.seq = o.run_seq LEFT JOIN run_environments x ON x.run_seq = r.run_seq AND x.env_id = r.env_id
        WHERE r.task_id IS NOT NULL AND r.group_key IS NOT NULL AND r.partial_reward IS NOT NULL AND ${envOf('r')}
        GROUP BY 1, 2) b USING (task_id, at)) w WHERE counted > 0`;

/**
 * The tasks that all runs scored. A task has one id in all runs of an organisation. Plan: per run an Index Scan using rollout_groups_task_idx over
 * its groups, hashed by task; all tasks are sorted, and only those of the page are joined with their names.
 */
export function compareTasksSql({ sort, order, after, den }: Pick<ComparePage, 'sort' | 'order' | 'after' | 'den'>): string {
  const [direction, beyond] = order === 'asc' ? ['ASC', '>'] : ['DESC', '<'];
  const keyset = after ? `(sort_value, task_id) ${beyond} ($7::float8, $8::int)` : '$7::text IS NULL AND $8::text IS NULL';
  return `WITH grouped AS MATERIALIZED (
      SELECT g.task_id, o.at::int AS at, sum(g.n)::int AS n, sum(g.scored)::int AS scored, sum(g.successes)::int AS successes, COALESCE(sum(g.sum), 0) AS sum
      FROM unnest($1::int[]) WITH ORDINALITY o(run_seq, at) JOIN rollout_groups g ON g.run_seq = o.run_seq
      WHERE g.task_id IS NOT NULL AND ($2::smallint IS NULL OR g.phase = $2) AND ($3::int[] IS NULL OR g.step = ANY($3)) AND ${envOf('g')}
      GROUP BY 1, 2),
    own AS MATERIALIZED (${den === 'effective' ? EFFECTIVE : withPartial(den)}),
    shared AS MATERIALIZED (
      SELECT task_id, array_agg(mean ORDER BY at) AS means, array_agg(scored ORDER BY at) AS scored, array_agg(successes ORDER BY at) AS successes
      FROM own GROUP BY 1 HAVING count(*) = cardinality($1::int[])),
    page AS (
      SELECT * FROM (SELECT *, ${sorts[sort]} AS sort_value FROM shared) s WHERE ${keyset}
      ORDER BY sort_value ${direction}, task_id ${direction} LIMIT $6)
    SELECT
      (SELECT json_agg(c) FROM (SELECT at, count(*)::int AS tasks FROM own GROUP BY at) c) AS counted,
      (SELECT json_agg(d) FROM (SELECT at, json_agg(means[at] - means[1] ORDER BY task_id) AS values
        FROM shared, generate_series(2, cardinality($1::int[])) AS at GROUP BY at) d) AS deltas, $5::int AS against,
      (SELECT json_agg(p ORDER BY p.at) FROM (
        SELECT row_number() OVER (ORDER BY page.sort_value ${direction}, page.task_id ${direction}) AS at, page.task_id, page.means, page.scored, page.successes,
          page.sort_value::text, t.key, t.task_index, t.split, e.environment
        FROM page JOIN rollout_tasks t ON t.id = page.task_id LEFT JOIN rollout_environments e ON e.id = t.env_id) p) AS tasks`;
}

export async function selectComparedTasks(pool: pg.Pool, page: ComparePage): Promise<ComparedTasks> {
  const { runSeqs, phase, steps, against, limit, after, env } = page;
  const values = [runSeqs, phase, steps, env, against, limit, after?.value ?? null, after?.taskId ?? null, INTERRUPTED_STOPS];
  const { rows } = await pool.query<ComparedTasks>(compareTasksSql(page), values);
  return rows[0]!;
}
