import type pg from 'pg';
import { type Arrivals, type ArrivalWindow, windowWidth } from './arrival-windows.ts';
import type { StepKey } from './rollup.sql.ts';

/** Sum of what is known, and of how many rollouts it is known. */
export interface Known {
  sum: number;
  known: number;
}

/**
 * Rollouts of one environment at one step: what its figures are made of. Counts come as sums, which have no order; lists have one entry a
 * rollout, in any order, the same in all of them.
 */
export interface StepPart {
  env_id: number;
  /** Where the step is not known: of these parts there is one a window of arrival. */
  window: ArrivalWindow | null;
  groups: (string | null)[];
  rewards: (number | null)[];
  stops: (number | null)[];
  failures: (number | null)[];
  taskIds: (number | null)[];
  groupSizes: (number | null)[];
  /** Packed; each that there is, some more than once. */
  provenances: number[];
  rollouts: number;
  finished: number;
  messages: number;
  calls: number;
  callErrors: number;
  gaps: number;
  /** Rollouts whose upload disagrees with itself about the reward. */
  mismatches: number;
  turns: Known;
  tokensOut: Known;
  tokensTool: Known;
}

/** PostgreSQL's array as text. */
const list = (column: string) => `array_agg(${column})::text`;
/** Nothing where all are null, the value where all are the same, else the array: writing two thousand numbers costs more than reading their rows does. */
const fewValues = (column: string) =>
  `CASE WHEN count(${column}) = count(*) AND min(${column}) = max(${column}) THEN min(${column})::text WHEN count(${column}) > 0 THEN array_agg(${column})::text END`;
const LISTS = {
  groups: list('group_key'),
  rewards: list('reward'),
  stops: fewValues('stop'),
  failures: fewValues('failure'),
  taskIds: fewValues('task_id'),
  groupSizes: fewValues('group_size'),
  provenances: fewValues('provenance'),
} as const;
const SUMS = {
  rollouts: 'count(*)',
  finished: 'count(*) FILTER (WHERE finished)',
  messages: 'sum(messages)',
  calls: 'sum(calls)',
  callErrors: 'sum(call_errors)',
  gaps: 'sum(gaps)',
  mismatches: 'count(*) FILTER (WHERE flags & 1 = 1)',
  turns: 'sum(turns)',
  turnsKnown: 'count(turns)',
  tokensOut: 'sum(tokens_out)',
  tokensOutKnown: 'count(tokens_out)',
  tokensTool: 'sum(tokens_tool)',
  tokensToolKnown: 'count(tokens_tool)',
} as const;

type PartRow = Record<keyof typeof LISTS, string | null> &
  Record<keyof typeof SUMS, number | null> & { position: number; env_id: number; from: number | null; first_seq: string; last_seq: string };

const MILLISECONDS = `date_part('epoch', received_at) * 1000`;
const WITHIN = 'run_seq = s.run_seq AND COALESCE(step, -1) = s.step AND phase = s.phase';
/** One statement and so one snapshot for all steps: a rollout that moves from one to another is in one of them. */
const PARTS = `
SELECT s.position::int - 1 AS position, p.* FROM unnest($1::int[], $2::smallint[], $3::int[], $4::float8[]) WITH ORDINALITY AS s(run_seq, phase, step, width, position)
CROSS JOIN LATERAL (
  SELECT env_id, CASE WHEN s.width IS NOT NULL THEN floor(${MILLISECONDS} / s.width) * s.width END AS "from", min(seq)::text AS first_seq, max(seq)::text AS last_seq,
    ${Object.entries(LISTS)
      .map(([name, values]) => `${values} AS "${name}"`)
      .join(', ')},
    ${Object.entries(SUMS)
      .map(([name, sum]) => `${sum}::float8 AS "${name}"`)
      .join(', ')}
  FROM rollouts WHERE ${WITHIN} GROUP BY 1, 2) p
ORDER BY s.position, p."from", p.env_id`;

/** The parts of each step; none for a step without rollouts. Plan: per step an Index Scan using rollouts_run_step_idx, hashed by environment. */
export async function selectStepParts(client: Pick<pg.Pool, 'query'>, steps: readonly StepKey[]): Promise<StepPart[][]> {
  const widths = await selectWidths(client, steps);
  const { rows } = await client.query<PartRow>({
    name: 'rollups-parts',
    text: PARTS,
    values: [steps.map((s) => s.run_seq), steps.map((s) => s.phase), steps.map((s) => s.step), widths],
  });
  const parts: StepPart[][] = steps.map(() => []);
  for (const row of rows) parts[row.position]!.push(partOf(row, widths[row.position] ?? null));
  return parts;
}

/** Of steps that are not known the width of their windows in milliseconds. Plan: per step an Index Scan using rollouts_run_step_idx. */
async function selectWidths(client: Pick<pg.Pool, 'query'>, steps: readonly StepKey[]): Promise<(number | null)[]> {
  const unknown = steps.filter(({ step }) => step < 0);
  if (unknown.length === 0) return steps.map(() => null);
  const { rows } = await client.query<Arrivals>(
    `SELECT a.* FROM unnest($1::int[], $2::smallint[], $3::int[]) WITH ORDINALITY AS s(run_seq, phase, step, position) CROSS JOIN LATERAL (
       SELECT count(*)::float8 AS count, COALESCE(min(${MILLISECONDS}), 0) AS first, COALESCE(max(${MILLISECONDS}), 0) AS last FROM rollouts WHERE ${WITHIN}) a
     ORDER BY s.position`,
    [unknown.map((s) => s.run_seq), unknown.map((s) => s.phase), unknown.map((s) => s.step)],
  );
  return steps.map((step) => (step.step < 0 ? windowWidth(rows[unknown.indexOf(step)]!) : null));
}

function partOf(row: PartRow, width: number | null): StepPart {
  const count = row.rollouts!;
  const numbers = (text: string | null) => listOf(text, count).map((value) => (value === null ? null : Number(value)));
  const known = (sum: number | null, of: number | null): Known => ({ sum: sum ?? 0, known: of ?? 0 });
  const { from, first_seq, last_seq } = row;
  return {
    env_id: row.env_id,
    window: from === null || width === null ? null : { from, to: from + width, first_seq, last_seq },
    groups: listOf(row.groups, count),
    rewards: numbers(row.rewards),
    stops: numbers(row.stops),
    failures: numbers(row.failures),
    taskIds: numbers(row.taskIds),
    groupSizes: numbers(row.groupSizes),
    provenances: textsOf(row.provenances).map(Number),
    rollouts: count,
    finished: row.finished ?? 0,
    messages: row.messages ?? 0,
    calls: row.calls ?? 0,
    callErrors: row.callErrors ?? 0,
    gaps: row.gaps ?? 0,
    mismatches: row.mismatches ?? 0,
    turns: known(row.turns, row.turnsKnown),
    tokensOut: known(row.tokensOut, row.tokensOutKnown),
    tokensTool: known(row.tokensTool, row.tokensToolKnown),
  };
}

function listOf(text: string | null, count: number): (string | null)[] {
  if (text === null || !text.startsWith('{')) return Array.from({ length: count }, () => text);
  return textsOf(text).map((value) => (value === 'NULL' ? null : value));
}

const textsOf = (text: string | null): string[] => (text === null ? [] : text.startsWith('{') ? text.slice(1, -1).split(',') : [text]);
