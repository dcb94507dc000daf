import { type CompareQuery, type Phase, PHASES } from '@palestra/protocol';
import type pg from 'pg';
import { codeOf, wordOf } from '../../store/vocabulary-codes.ts';
import { MAX_STEPS } from '../../store/figures/step-figures.sql.ts';
import type { RunScope } from '../run-scope.ts';

interface StepCount {
  phase: number;
  step: number;
  rollouts: number;
}

/** The rollouts that a comparison reads. */
export interface CompareScope {
  phase: Phase | null;
  /** The code of `phase`; null without rollouts. */
  phaseCode: number | null;
  /** Null: every rollout of the phase. */
  steps: number[] | null;
  /** Known steps of each run. */
  known: number[];
  described: {
    choice: 'common' | 'all' | 'range';
    common: boolean;
    count: number | null;
    from: number | null;
    to: number | null;
    words: string;
  };
}

/** Chooses phase and steps of a comparison: by default the steps that every run has, because reward depends on how far a run has come. */
export async function compareScopeOf(
  pool: pg.Pool,
  runs: readonly Pick<RunScope, 'seq'>[],
  { phase: requested, steps }: Pick<CompareQuery, 'phase' | 'steps'>,
): Promise<CompareScope> {
  const counts = await Promise.all(runs.map(({ seq }) => selectStepCounts(pool, seq)));
  const phaseCode = requested === undefined ? largestPhase(counts[0]!) : codeOf(PHASES, requested);
  const each = counts.map((rows) => rows.filter(({ phase, step }) => phase === phaseCode && step >= 0).map(({ step }) => step));
  const known = each.map((one) => one.length);
  const scope = { phase: wordOf(PHASES, phaseCode), phaseCode, known };
  if (steps === 'all')
    return { ...scope, steps: null, described: describe('all', false, null, `Every step of each run (${known.join(', ')}).`) };
  const range = steps === 'common' ? null : steps;
  const choice = range ? 'range' : 'common';
  const inRange = each.map((one) => one.filter((step) => range === null || (step >= range.from && step <= range.to)));
  const others = inRange.slice(1).map((one) => new Set(one));
  const common = inRange[0]!.filter((step) => others.every((one) => one.has(step)));
  if (common.length > 0) return { ...scope, steps: common, described: describe(choice, true, common, inWords(common, inRange)) };
  const where = range ? ' in this range' : '';
  if (known.every((count) => count === 0))
    return {
      ...scope,
      steps: range ? [] : null,
      described: describe(choice, false, range ? [] : null, 'The steps of these runs are unknown: every rollout counts.'),
    };
  const chosen = range ? [...new Set(inRange.flat())] : null;
  return {
    ...scope,
    steps: chosen,
    described: describe(choice, false, chosen, `The runs have no step in common${where}: all steps of each run${where} count.`),
  };
}

function describe(
  choice: 'common' | 'all' | 'range',
  common: boolean,
  steps: readonly number[] | null,
  words: string,
): CompareScope['described'] {
  return { choice, common, count: steps?.length ?? null, from: steps?.[0] ?? null, to: steps?.at(-1) ?? null, words };
}

/** Says how many steps are compared, of how many; `steps` increase. */
function inWords(steps: readonly number[], each: readonly (readonly number[])[]): string {
  const [from, to] = [steps[0]!, steps.at(-1)!];
  const which =
    from === to
      ? `Step ${from}`
      : to - from + 1 === steps.length
        ? `Steps ${from} to ${to}`
        : `${steps.length} steps between ${from} and ${to}`;
  const whole = each.every((one) => one.length === steps.length);
  return whole
    ? `${which}, which every run has.`
    : `${which}: the ${steps.length} that every run has (of ${each.map((one) => one.length).join(', ')}).`;
}

function largestPhase(rows: readonly StepCount[]): number | null {
  const counts = new Map<number, number>();
  for (const { phase, rollouts } of rows) counts.set(phase, (counts.get(phase) ?? 0) + rollouts);
  return [...counts].toSorted(([a, m], [b, n]) => n - m || a - b)[0]?.[0] ?? null;
}

/** Steps of a run in increasing order, at most the last 20 000. Plan: Index Scan using step_rollups_pkey; rollouts are not read. */
async function selectStepCounts(pool: pg.Pool, runSeq: number): Promise<StepCount[]> {
  const { rows } = await pool.query<StepCount>({
    name: 'compare-steps',
    text: 'SELECT phase, step, rollouts FROM step_rollups WHERE run_seq = $1 AND env_id = 0 ORDER BY step DESC, phase LIMIT $2',
    values: [runSeq, MAX_STEPS],
  });
  return rows.toReversed();
}
