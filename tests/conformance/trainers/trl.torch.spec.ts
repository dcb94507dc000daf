import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type SharedPalestra, sharedPalestra } from '../../support/palestra.ts';
import { assertNoSession, drive, groupsOf, hostFragile, ordered, rolloutsOf } from './contract.ts';
import { hostColours, trainTrl } from './colours.ts';

/** TRL's real trainers on a CPU, with the code of docs/trainers/trl.md. */
const program = { python: 'trl-torch', program: 'trl_trainers.py' };
let palestra: SharedPalestra;
beforeAll(async () => {
  palestra = await sharedPalestra();
});

describe('GRPOTrainer', () => {
  test('plays whodunit with a scripted generation, and its groups are recorded with their step', async () => {
    const run = 'trl-grpo';
    const played = await drive<{ rewards: number[]; columns: string[] }>(palestra, {
      ...program,
      args: ['grpo', 'palestra/whodunit'],
      run,
    });
    expect(played.rewards).toHaveLength(2);
    expect(played.columns).toContain('rewards/whodunit/mean');
    const rows = await rolloutsOf(palestra, run, 8);
    expect(ordered(rows.map(({ step }) => step))).toEqual([0, 0, 0, 0, 1, 1, 1, 1]);
    expect(rows.map(({ turns, stop }) => [turns, stop])).toEqual(Array(8).fill([3, 'finished']));
    expect(groupsOf(rows).map((group) => ordered(group.map(({ sample }) => sample)))).toEqual(Array(4).fill([0, 1]));
    for (const [step, mean] of played.rewards.entries()) {
      const rewards = rows.filter((row) => row.step === step).map(({ reward }) => reward!);
      expect(rewards.reduce((sum, reward) => sum + reward, 0) / rewards.length).toBeCloseTo(mean, 5);
    }
    await assertNoSession(palestra);
  });

  test('leaves episodes of a server that disappears out of the step', async () => {
    const fragile = await hostFragile(palestra, 'fragile-grpo');
    const run = 'trl-grpo-fail';
    const played = await drive<{ rewards: number[] }>(palestra, { ...program, args: ['grpo-fail', fragile.environment], run }).finally(
      fragile.close,
    );
    // Two of four samples are scored, and the mean is theirs.
    expect(played.rewards).toEqual([1.25]);
    const rows = await rolloutsOf(palestra, run, 4);
    expect(rows.map((row) => [row.task_index, row.reward, row.failure_class])).toEqual([
      [0, 1.25, null],
      [0, 1.25, null],
      [1, null, 'infrastructure'],
      [1, null, 'infrastructure'],
    ]);
    await assertNoSession(palestra);
  });
});

describe("the loops of AsyncGRPOTrainer's workers", () => {
  interface RolledOut {
    ended: boolean;
    samples: Record<string, [reward: number, tokens: number][]>;
  }

  test.each([
    ['environments', 'async'],
    ["OpenEnv's harness", 'harness'],
  ])('play with %s', async (_, mode) => {
    const run = `trl-${mode}`;
    const played = await drive<RolledOut>(palestra, { ...program, args: [mode, 'palestra/whodunit'], run });
    expect(played.ended).toBe(true);
    const rewards = Object.values(played.samples).map((samples) => samples.map(([reward]) => reward));
    expect(
      Object.values(played.samples)
        .flat()
        .every(([, trained]) => trained > 0),
    ).toBe(true);
    await expect.poll(async () => (await fetchRollouts(run)).length).toBeGreaterThanOrEqual(4);
    const finished = (await fetchRollouts(run)).filter(({ stop }) => stop === 'finished');
    for (const task of [0, 1]) {
      const rows = finished.filter(({ task_index }) => task_index === task);
      expect(new Set(rows.map(({ reward }) => reward))).toEqual(new Set(rewards[task]));
      expect(new Set(rows.map((row) => row.turns))).toEqual(new Set([2]));
      expect(ordered(rows.filter(({ group }) => group === rows[0]!.group).map(({ sample }) => sample))).toEqual([0, 1]);
    }
    await assertNoSession(palestra);
  });
});

/** The rollouts of a run, whose number depends on how far a loop came. */
async function fetchRollouts(name: string) {
  const headers = { 'x-api-key': palestra.apiKey };
  const read = async (route: string) => (await (await fetch(`${palestra.url}${route}`, { headers })).json()) as any;
  const { runs } = await read(`/v1/runs?search=${name}`);
  const run = runs.find((one: { name: string }) => one.name === name);
  return run === undefined
    ? []
    : ((await read(`/v1/runs/${run.id}/rollouts?limit=200`)).rollouts as Awaited<ReturnType<typeof rolloutsOf>>);
}

describe('examples/train-trl', () => {
  let colours: Awaited<ReturnType<typeof hostColours>>;
  beforeAll(async () => {
    colours = await hostColours(palestra, 'colours');
  });
  afterAll(() => colours?.close());

  test('trains a real model for some steps, whose rollouts are those of the trainer', async () => {
    const run = 'train-trl';
    const played = await drive<{ rewards: number[]; rollouts: number }>(palestra, {
      ...program,
      program: path.relative(import.meta.dirname, path.join(trainTrl, 'train.py')),
      args: [colours.environment, '--steps', '3'],
      run,
    });
    expect(played.rollouts).toBe(96);
    const rows = await rolloutsOf(palestra, run, 96);
    for (const [step, mean] of played.rewards.entries()) {
      const rewards = rows.filter((row) => row.step === step).map(({ reward }) => reward!);
      expect(rewards).toHaveLength(32);
      expect(rewards.reduce((sum, reward) => sum + reward, 0) / 32).toBeCloseTo(mean, 2);
    }
    expect(new Set(groupsOf(rows).map(({ length }) => length))).toEqual(new Set([8]));
    await assertNoSession(palestra);
  });
});
