import { histogram, rewardPercentile } from '@palestra/metrics';
import { expect, test } from 'vitest';
import type { Database } from '../../platform/database.ts';
import { rollUpStep } from '../../rollouts/derive/rollup.figures.ts';
import type { RollupTuple } from '../../rollouts/derive/rollup.sql.ts';
import { factsOf } from '../../rollouts/derive/rollup.figures.ts';
import { RewardPercentiles } from './reward-percentiles.service.ts';
import { StepFiguresService } from './step-figures.service.ts';
import type { StepRow } from './step-figures.sql.ts';

/** Nothing here may ask the database. */
const database = {} as Database;
const percentiles = new RewardPercentiles(database, new StepFiguresService(database));
const STEPS = 60;
const PER_STEP = 400;

function rolledUp(rewardOf: (at: number) => number | null): { rows: StepRow[]; tuples: RollupTuple[] } {
  const tuples: RollupTuple[] = Array.from({ length: STEPS * PER_STEP }, (_, at) => {
    const reward = rewardOf(at);
    const head: [string, number, null, string] = [String(at), 1, null, String(Math.floor(at / 8))];
    return [...head, reward, reward, reward, 1, 8, 0, null, 2, 4, 1, 0, 9, 9, 0, 0, 0, true] as unknown as RollupTuple;
  });
  const rows = Array.from({ length: STEPS }, (_, step) => {
    const own = tuples.slice(step * PER_STEP, (step + 1) * PER_STEP);
    const { rollups } = rollUpStep({ run_seq: 1, phase: 0, step }, own, () => ({ threshold: 1, strict: false }));
    return { ...rollups[0], version: '1' } as unknown as StepRow;
  });
  return { rows, tuples };
}

test('of few different rewards are exact, however many rollouts', async () => {
  const { rows, tuples } = rolledUp((at) => (at % 11 === 0 ? null : (at * at) % 13));
  for (const den of ['scored', 'all', 'effective'] as const) {
    const found = await percentiles.of(rows, { runSeq: 1, envIds: null, den });
    expect(found.note).toBeNull();
    expect(found.values).toEqual(
      [0.1, 0.25, 0.5, 0.75, 0.9].map((q) => rewardPercentile(tuples.map(factsOf), q, { denominator: den }).value),
    );
  }
});

test('of many different rewards of many rollouts come from histograms, and say how far off they may be', async () => {
  const { rows, tuples } = rolledUp((at) => (at % 7 === 0 ? null : Math.sin(at) * 3));
  for (const den of ['scored', 'all'] as const) {
    const found = await percentiles.of(rows, { runSeq: 1, envIds: null, den });
    expect(found.note).toBe('from histograms: within 0.16 of the exact value');
    found.values.forEach((value, at) => {
      const exact = rewardPercentile(tuples.map(factsOf), [0.1, 0.25, 0.5, 0.75, 0.9][at]!, { denominator: den }).value!;
      expect(Math.abs(value! - exact)).toBeLessThanOrEqual(0.16);
    });
  }
  for (const row of rows) row.figures.histograms = { effective: histogram([0.5, 0.5]) };
  expect((await percentiles.of(rows, { runSeq: 1, envIds: null, den: 'effective' })).values[2]).toBeCloseTo(0.5, 1);
});
