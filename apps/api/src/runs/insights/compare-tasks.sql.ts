import type pg from 'pg';
import type { COMPARE_SORTS } from './compare-tasks.schema.ts';

export type CompareSort = (typeof COMPARE_SORTS)[number];

export interface ComparedTask {
  task_id: number;
  key: string;
  task_index: number | null;
  split: string | null;
  environment: string | null;
  /** By run, in the order asked for. */
  means: number[];
  scored: number[];
  successes: number[];
  sort_value: string;
}

export interface ComparedTasks {
  /** Tasks scored by each run. */
  counted: { at: number; tasks: number }[] | null;
  /** Differences of means to the first run, of the other runs: one entry a task that all have. */
  deltas: { at: number; values: number[] }[] | null;
  tasks: ComparedTask[] | null;
}

export interface ComparePage {
  runSeqs: readonly number[];
  phase: number | null;
  from: number;
  to: number;
  /** Position of the run that `sort` is about, from 1. */
  against: number;
  sort: CompareSort;
  order: 'asc' | 'desc';
  limit: number;
  after?: { value: string; taskId: string };
}

/** Rounded: a sum of floats may differ in its last bit from one page to the next, and a keyset must not. */
const sorts: Record<CompareSort, string> = {
  size: 'round(abs(means[$5 + 1] - means[1])::numeric, 9)::float8',
  delta: 'round((means[$5 + 1] - means[1])::numeric, 9)::float8',
  first: 'round(means[1]::numeric, 9)::float8',
  other: 'round(means[$5 + 1]::numeric, 9)::float8',
};

/**
 * Tasks that all runs scored. Tasks are of an organisation, so those of two runs have one id. Plan: per run an Index Scan using
 * rollout_groups_task_idx over its groups, hashed by task; all tasks are ordered, a page of them is named.
 */
export function compareTasksSql({ sort, order, after }: Pick<ComparePage, 'sort' | 'order' | 'after'>): string {
  const [direction, beyond] = order === 'asc' ? ['ASC', '>'] : ['DESC', '<'];
  const keyset = after ? `(sort_value, task_id) ${beyond} ($7::float8, $8::int)` : '$7::text IS NULL AND $8::text IS NULL';
  return `WITH own AS MATERIALIZED (
      SELECT g.task_id, o.at::int AS at, sum(g.scored)::int AS scored, sum(g.successes)::int AS successes, sum(g.sum) / sum(g.scored) AS mean
      FROM unnest($1::int[]) WITH ORDINALITY o(run_seq, at) JOIN rollout_groups g ON g.run_seq = o.run_seq
      WHERE g.task_id IS NOT NULL AND ($2::smallint IS NULL OR g.phase = $2) AND g.step >= $3 AND g.step <= $4
      GROUP BY 1, 2 HAVING sum(g.scored) > 0),
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
  const { runSeqs, phase, from, to, against, limit, after } = page;
  const values = [runSeqs, phase, from, to, against, limit, after?.value ?? null, after?.taskId ?? null];
  const { rows } = await pool.query<ComparedTasks>(compareTasksSql(page), values);
  return rows[0]!;
}
