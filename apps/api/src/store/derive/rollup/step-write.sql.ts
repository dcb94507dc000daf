import type pg from 'pg';
import type { GroupRow, StepKey, StepRollup } from './rollup.sql.ts';
import type { GroupChanges } from './stored-groups.sql.ts';
import type { ToolRollup } from './tool-figures.ts';

/** What is written of a step. */
export interface MadeStep {
  step: StepKey;
  /** Of its run. */
  version: string;
  rollups: readonly StepRollup[];
  groups: GroupChanges;
  tools: readonly ToolRollup[];
}

/** Columns of a group beside its step, with their types. */
const GROUP_COLUMNS = {
  group_key: 'bigint',
  env_id: 'int',
  task_id: 'int',
  n: 'int',
  n_expected: 'int',
  scored: 'int',
  errors: 'int',
  successes: 'int',
  sum: 'float8',
  sum_squares: 'float8',
  min: 'float8',
  max: 'float8',
} as const;
const GROUP_NAMES = Object.keys(GROUP_COLUMNS) as (keyof typeof GROUP_COLUMNS)[];
const STEP_TYPES = ['int', 'smallint', 'int'];
const unnested = (first: number, types: readonly string[]) => `unnest(${types.map((type, at) => `$${first + at}::${type}[]`).join(', ')})`;

/**
 * Rollups, changed groups and tools of some steps replace those that were there, in one statement: PostgreSQL has enough to do with it while the figures of other steps are
 * made, and between two it would wait for them. What is not there any more is told by NOT IN, which is hashed: PostgreSQL takes the lists for short ones, and a join would compare
 * each with each. Plan: primary keys.
 */
const WRITE = `
WITH made AS MATERIALIZED (SELECT * FROM ${unnested(1, STEP_TYPES)} AS s(run_seq, phase, step)),
rollup AS MATERIALIZED (SELECT * FROM jsonb_to_recordset($4::jsonb) AS s(run_seq int, phase smallint, step int, version bigint, env_id int, rollouts int, scored int, errors int,
  finished int, messages bigint, reward_sum float8, provenance int, figures jsonb, windows jsonb)),
fresh AS MATERIALIZED (SELECT * FROM jsonb_to_recordset($5::jsonb) AS t(run_seq int, phase smallint, step int, env_id int, tool text, figures jsonb)),
gone AS (DELETE FROM step_rollups r USING made m WHERE (r.run_seq, r.phase, r.step) = (m.run_seq, m.phase, m.step)
  AND (r.run_seq, r.phase, r.step, r.env_id) NOT IN (SELECT run_seq, phase, step, env_id FROM rollup)),
written AS (
  INSERT INTO step_rollups (run_seq, env_id, phase, step, rollouts, scored, errors, finished, messages, reward_sum, provenance, version, figures, windows)
  SELECT run_seq, env_id, phase, step, rollouts, scored, errors, finished, messages, reward_sum, provenance, version, figures, windows FROM rollup
  ON CONFLICT (run_seq, env_id, phase, step) DO UPDATE SET rollouts = excluded.rollouts, scored = excluded.scored, errors = excluded.errors,
    finished = excluded.finished, messages = excluded.messages, reward_sum = excluded.reward_sum, provenance = excluded.provenance,
    version = excluded.version, figures = excluded.figures, windows = excluded.windows),
ungrouped AS (DELETE FROM rollout_groups g USING ${unnested(6, [...STEP_TYPES, 'bigint'])} AS o(run_seq, phase, step, group_key)
  WHERE (g.run_seq, g.group_key, g.phase, g.step) = (o.run_seq, o.group_key, o.phase, o.step)),
grouped AS (INSERT INTO rollout_groups (run_seq, phase, step, ${GROUP_NAMES.join(', ')}) SELECT * FROM ${unnested(10, [...STEP_TYPES, ...Object.values(GROUP_COLUMNS)])}
  ON CONFLICT (run_seq, group_key, phase, step) DO UPDATE SET ${GROUP_NAMES.map((name) => `${name} = excluded.${name}`).join(', ')}),
toolless AS (DELETE FROM tool_rollups r USING made m WHERE (r.run_seq, r.phase, r.step) = (m.run_seq, m.phase, m.step)
  AND (r.run_seq, r.phase, r.step, r.env_id, r.tool) NOT IN (SELECT run_seq, phase, step, env_id, tool FROM fresh))
INSERT INTO tool_rollups AS old (run_seq, phase, step, env_id, tool, figures) SELECT run_seq, phase, step, env_id, tool, figures FROM fresh
ON CONFLICT (run_seq, phase, step, env_id, tool) DO UPDATE SET figures = excluded.figures WHERE old.figures <> excluded.figures`;

/** A PostgreSQL array of numbers. */
const numbers = (values: readonly (number | string | null)[]): string => `{${values.map((value) => value ?? 'NULL').join(',')}}`;
const stepColumns = (steps: readonly StepKey[]) => [
  numbers(steps.map((s) => s.run_seq)),
  numbers(steps.map((s) => s.phase)),
  numbers(steps.map((s) => s.step)),
];

export async function writeSteps(client: Pick<pg.Pool, 'query'>, made: readonly MadeStep[]): Promise<void> {
  if (made.length === 0) return;
  const changed = made.flatMap(({ step, groups }) => groups.changed.map((group) => ({ step, group })));
  const gone = made.flatMap(({ step, groups }) => groups.gone.map((key) => ({ step, key })));
  const column = (name: keyof GroupRow) => numbers(changed.map(({ group }) => group[name]));
  await client.query({
    name: 'rollups-write',
    text: WRITE,
    values: [
      ...stepColumns(made.map(({ step }) => step)),
      JSON.stringify(made.flatMap(({ rollups, version }) => rollups.map((rollup) => ({ ...rollup, version })))),
      JSON.stringify(made.flatMap(({ step, tools }) => tools.map((tool) => ({ ...step, ...tool })))),
      ...stepColumns(gone.map(({ step }) => step)),
      numbers(gone.map(({ key }) => key)),
      ...stepColumns(changed.map(({ step }) => step)),
      ...GROUP_NAMES.map(column),
    ],
  });
}
