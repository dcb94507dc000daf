import { histogram, rewardPercentile } from '@palestra/metrics';
import { expect, test } from 'vitest';
import type { Database } from '../../platform/database/database.ts';
import { rollUpStep } from '../../store/figures/step-rollup.ts';
import { type StepColumns, stepColumns } from '../../store/figures/step-columns.ts';
import { RewardPercentiles } from './reward-percentiles.service.ts';
import { StepFiguresService } from '../../store/figures/step-figures.service.ts';
import type { StepRow } from '../../store/figures/step-figures.sql.ts';

/** These tests never query the database. */
const database = {} as Database;
const percentiles = new RewardPercentiles(database, new StepFiguresService(database));
const STEPS = 60;
const PER_STEP = 400;

/** Rollouts in groups of eight, without a task, stop or failure. */
function columnsFrom(rewards: (number | null)[], first = 0): StepColumns {
  const filled = <T>(value: T): T[] => rewards.map(() => value);
  return stepColumns({
    seq: rewards.map((_, at) => first + at),
    envId: filled(1),
    taskId: filled(null),
    group: rewards.map((_, at) => String(Math.floor((first + at) / 8))),
    groupSize: filled(null),
    reward: rewards,
    rewardPositive: filled(null),
    lastReward: filled(null),
    rewardSteps: filled(1),
    stop: filled(null),
    failure: filled(null),
    turns: filled(null),
    toolTurns: filled(null),
    messages: filled(0),
    calls: filled(0),
    callErrors: filled(0),
    tokensOut: filled(null),
    tokensTool: filled(null),
    gaps: filled(0),
    flags: filled(0),
    provenance: filled(0),
    finished: filled(true),
    receivedAt: filled(0),
  });
}

function rolledUp(rewardOf: (at: number) => number | null): { rows: StepRow[]; columns: StepColumns } {
  const rewards = Array.from({ length: STEPS * PER_STEP }, (_, at) => rewardOf(at));
  const rows = Array.from({ length: STEPS }, (_, step) => {
    const columns = columnsFrom(rewards.slice(step * PER_STEP, (step + 1) * PER_STEP), step * PER_STEP);
    const { rollups } = rollUpStep({ run_seq: 1, phase: 0, step }, columns, () => ({ threshold: 1, strict: false }));
    return { ...rollups[0], version: '1' } as unknown as StepRow;
  });
  return { rows, columns: columnsFrom(rewards) };
}

test('of few different rewards are exact, however many rollouts', async () => {
  const { rows, columns } = rolledUp((at) => (at % 11 === 0 ? null : (at * at) % 13));
  for (const den of ['scored', 'all', 'effective'] as const) {
    const found = await percentiles.of(rows, { runSeq: 1, envIds: null, den });
    expect(found.note).toBeNull();
    expect(found.values).toEqual([0.1, 0.25, 0.5, 0.75, 0.9].map((q) => rewardPercentile(columns, q, { denominator: den }).value));
  }
});

test('of many different rewards of many rollouts come from histograms, and say how far off they may be', async () => {
  const { rows, columns } = rolledUp((at) => (at % 7 === 0 ? null : Math.sin(at) * 3));
  for (const row of rows) row.figures.histograms = { scored: row.figures.histogram };
  for (const den of ['scored', 'all', 'effective'] as const) {
    const found = await percentiles.of(rows, { runSeq: 1, envIds: null, den });
    expect(found.note).toBe('from histograms: within 0.16 of the exact value');
    found.values.forEach((value, at) => {
      const exact = rewardPercentile(columns, [0.1, 0.25, 0.5, 0.75, 0.9][at]!, { denominator: den }).value!;
      expect(Math.abs(value! - exact)).toBeLessThanOrEqual(0.16);
    });
  }
  for (const row of rows) row.figures.histograms = { scored: histogram([0.5, 0.5]) };
  expect((await percentiles.of(rows, { runSeq: 1, envIds: null, den: 'scored' })).values[2]).toBeCloseTo(0.5, 1);
});
