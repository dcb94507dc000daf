import type pg from 'pg';
import { GROUP_STD } from './group-std.ts';

export interface GroupRecord {
  group_key: string;
  phase: number;
  step: number;
  env_id: number;
  environment: string | null;
  task_id: number | null;
  task_key: string | null;
  task_index: number | null;
  split: string | null;
  n: number;
  n_expected: number | null;
  scored: number;
  errors: number;
  successes: number;
  sum: number;
  sum_squares: number;
  min: number | null;
  max: number | null;
  sort_value: string;
}

const COLUMNS = `g.group_key::text, g.phase, g.step, g.env_id, e.environment, g.task_id, t.key AS task_key, t.task_index, t.split, g.n, g.n_expected, g.scored, g.errors,
  g.successes, g.sum, g.sum_squares, g.min, g.max`;
const NAMES = 'JOIN rollout_environments e ON e.id = g.env_id LEFT JOIN rollout_tasks t ON t.id = g.task_id';

/** Groups without a value sort below every value. */
export const groupSorts = {
  step: { column: 'g.step', type: 'int' },
  mean: { column: `COALESCE(g.sum / NULLIF(g.scored, 0), '-Infinity')`, type: 'float8' },
  std: { column: `COALESCE(${GROUP_STD}, '-Infinity')`, type: 'float8' },
  n: { column: 'g.n', type: 'int' },
} as const;

export interface GroupPage {
  runSeq: number;
  from: number;
  to: number;
  phase: number | null;
  sort: keyof typeof groupSorts;
  order: 'asc' | 'desc';
  limit: number;
  after?: { value: string; key: string; phase: string; step: string };
  /** A condition on `r`, a rollout of the group, with parameters from `FIRST_GROUP_PARAMETER` on. */
  where?: { sql: string; values: readonly unknown[] };
}
export const FIRST_GROUP_PARAMETER = 10;

/**
 * A page of groups. One key can occur at several steps, when the group is reported and the step inferred. Plan: sorted by step, an Index Scan
 * (backwards) using rollout_groups_step_idx from the keyset on; by another sort the same index over the whole run, top-N. With a query one probe
 * of rollouts_run_group_idx per group.
 */
export function groupPageSql({ sort, order, after, where }: Pick<GroupPage, 'sort' | 'order' | 'after' | 'where'>): string {
  const { column, type } = groupSorts[sort];
  const [direction, beyond] = order === 'asc' ? ['ASC', '>'] : ['DESC', '<'];
  const keyset = after
    ? `AND (${column}, g.group_key, g.phase, g.step) ${beyond} ($5::${type}, $6::bigint, $7::smallint, $9::int)`
    : 'AND $5::text IS NULL AND $6::bigint IS NULL AND $7::smallint IS NULL AND $9::int IS NULL';
  const holds = where
    ? `AND EXISTS (SELECT FROM rollouts r WHERE r.run_seq = g.run_seq AND r.group_key = g.group_key AND r.phase = g.phase AND COALESCE(r.step, -1) = g.step AND (${where.sql}))`
    : '';
  const ordering = `${column} ${direction}, g.group_key ${direction}, g.phase ${direction}, g.step ${direction}`;
  return `SELECT ${COLUMNS}, g.sort_value FROM (
      SELECT g.*, (${column})::text AS sort_value FROM rollout_groups g
      WHERE g.run_seq = $1 AND g.step >= $2 AND g.step <= $3 AND ($4::smallint IS NULL OR g.phase = $4) ${keyset} ${holds}
      ORDER BY ${ordering} LIMIT $8) g ${NAMES}
    ORDER BY ${ordering}`;
}

export async function selectGroups(pool: pg.Pool, page: GroupPage): Promise<GroupRecord[]> {
  const after = page.after;
  const keyset = [after?.value ?? null, after?.key ?? null, after?.phase ?? null];
  const values = [page.runSeq, page.from, page.to, page.phase, ...keyset, page.limit, after?.step ?? null];
  const { rows } = await pool.query<GroupRecord>(groupPageSql(page), [...values, ...(page.where?.values ?? [])]);
  return rows;
}

/** The newest group with this key. Plan: rollout_groups_pkey. */
export async function selectGroup(
  pool: pg.Pool,
  runSeq: number,
  key: string,
  phase: number | null,
  step: number | null,
): Promise<GroupRecord | null> {
  const { rows } = await pool.query<GroupRecord>(
    `SELECT ${COLUMNS}, '' AS sort_value FROM rollout_groups g ${NAMES}
     WHERE g.run_seq = $1 AND g.group_key = $2 AND ($3::smallint IS NULL OR g.phase = $3) AND ($4::int IS NULL OR g.step = $4) ORDER BY g.step DESC, g.phase LIMIT 1`,
    [runSeq, key, phase, step],
  );
  return rows[0] ?? null;
}

/** The next task ids of a run after one. Each step of the recursion jumps to the next id in the index. Plan: one probe of rollout_groups_task_idx per task. */
export async function selectTaskIds(pool: pg.Pool, runSeq: number, after: number, limit: number): Promise<number[]> {
  const { rows } = await pool.query<{ task_id: number }>(
    `WITH RECURSIVE task AS (
       (SELECT task_id FROM rollout_groups WHERE run_seq = $1 AND task_id > $2 ORDER BY task_id LIMIT 1)
       UNION ALL
       SELECT (SELECT g.task_id FROM rollout_groups g WHERE g.run_seq = $1 AND g.task_id > task.task_id ORDER BY g.task_id LIMIT 1) FROM task WHERE task.task_id IS NOT NULL)
     SELECT task_id FROM task WHERE task_id IS NOT NULL LIMIT $3`,
    [runSeq, after, limit],
  );
  return rows.map(({ task_id }) => task_id);
}

/** The last groups of each task, newest step first, at most `limit`. Plan: per task an Index Scan backwards using rollout_groups_task_idx. */
export async function selectTaskGroups(
  pool: pg.Pool,
  runSeq: number,
  taskIds: readonly number[],
  phase: number | null,
  limit: number,
): Promise<GroupRecord[]> {
  const { rows } = await pool.query<GroupRecord>(
    `SELECT ${COLUMNS}, '' AS sort_value FROM unnest($2::int[]) AS wanted(id) CROSS JOIN LATERAL (
       SELECT * FROM rollout_groups o WHERE o.run_seq = $1 AND o.task_id = wanted.id AND ($3::smallint IS NULL OR o.phase = $3) ORDER BY o.step DESC LIMIT $4) g ${NAMES}
     ORDER BY g.task_id, g.step DESC, g.phase`,
    [runSeq, taskIds, phase, limit],
  );
  return rows;
}
