import { histogram, rewardPercentile, type RolloutFacts } from '@palestra/metrics';
import { expect, test } from 'vitest';
import type { Database } from '../../platform/database/database.ts';
import { rollUpStep } from '../../store/derive/rollup/rollup.figures.ts';
import { NO_FAILURE, NO_STOP, type StepPart } from '../../store/derive/rollup/step-columns.ts';
import { RewardPercentiles } from './reward-percentiles.service.ts';
import { StepFiguresService } from './step-figures.service.ts';
import type { StepRow } from './step-figures.sql.ts';

/** Nothing here may ask the database. */
const database = {} as Database;
const percentiles = new RewardPercentiles(database, new StepFiguresService(database));
const STEPS = 60;
const PER_STEP = 400;

/** Of no task, no stop, no failure; in groups of eight. */
function partOf(rewards: (number | null)[], first: number): StepPart {
  const unknown = { sum: 0, known: 0 };
  const columnOf = (value: number) => rewards.map(() => value);
  return {
    env_id: 1,
    window: null,
    groupKeys: Array.from({ length: Math.ceil(rewards.length / 8) }, (_, group) => String(first / 8 + group)),
    seq: Float64Array.from(rewards, (_, at) => first + at),
    group: Int32Array.from(rewards, (_, at) => Math.floor(at / 8)),
    reward: Float64Array.from(rewards, (reward) => reward ?? Number.NaN),
    stop: Uint8Array.from(columnOf(NO_STOP)),
    failure: Uint8Array.from(columnOf(NO_FAILURE)),
    taskId: Int32Array.from(columnOf(-1)),
    groupSize: Int32Array.from(columnOf(-1)),
    totals: {
      rollouts: rewards.length,
      finished: rewards.length,
      messages: 0,
      calls: 0,
      callErrors: 0,
      gaps: 0,
      mismatches: 0,
      turns: unknown,
      tokensOut: unknown,
      tokensTool: unknown,
      provenance: 0,
    },
  };
}

function rolledUp(rewardOf: (at: number) => number | null): { rows: StepRow[]; facts: RolloutFacts[] } {
  const rewards = Array.from({ length: STEPS * PER_STEP }, (_, at) => rewardOf(at));
  const rows = Array.from({ length: STEPS }, (_, step) => {
    const own = partOf(rewards.slice(step * PER_STEP, (step + 1) * PER_STEP), step * PER_STEP);
    const { rollups } = rollUpStep({ run_seq: 1, phase: 0, step }, [own], () => ({ threshold: 1, strict: false }));
    return { ...rollups[0], version: '1' } as unknown as StepRow;
  });
  // Percentiles read no more than this of a rollout.
  return { rows, facts: rewards.map((reward) => ({ reward, stop: null, failure: null }) as RolloutFacts) };
}

test('of few different rewards are exact, however many rollouts', async () => {
  const { rows, facts } = rolledUp((at) => (at % 11 === 0 ? null : (at * at) % 13));
  for (const den of ['scored', 'all', 'effective'] as const) {
    const found = await percentiles.of(rows, { runSeq: 1, envIds: null, den });
    expect(found.note).toBeNull();
    expect(found.values).toEqual([0.1, 0.25, 0.5, 0.75, 0.9].map((q) => rewardPercentile(facts, q, { denominator: den }).value));
  }
});

test('of many different rewards of many rollouts come from histograms, and say how far off they may be', async () => {
  const { rows, facts } = rolledUp((at) => (at % 7 === 0 ? null : Math.sin(at) * 3));
  for (const den of ['scored', 'all'] as const) {
    const found = await percentiles.of(rows, { runSeq: 1, envIds: null, den });
    expect(found.note).toBe('from histograms: within 0.16 of the exact value');
    found.values.forEach((value, at) => {
      const exact = rewardPercentile(facts, [0.1, 0.25, 0.5, 0.75, 0.9][at]!, { denominator: den }).value!;
      expect(Math.abs(value! - exact)).toBeLessThanOrEqual(0.16);
    });
  }
  for (const row of rows) row.figures.histograms = { effective: histogram([0.5, 0.5]) };
  expect((await percentiles.of(rows, { runSeq: 1, envIds: null, den: 'effective' })).values[2]).toBeCloseTo(0.5, 1);
});
