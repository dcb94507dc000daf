import type { StopReason } from '@palestra/protocol';
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { columnsOf, isFigure, type MetricAnswer, metric, resolveMetricName, type RolloutFigures } from './index.ts';

/**
 * Compares our lenses with the figures that the code of TRL, prime-rl, slime and rLLM prints for the same rewards, by printed name:
 * tests/conformance/python/trainer_goldens.json, recorded by trainer_goldens.py there. SkyRL, verl and tinker run in
 * tests/conformance/metrics.spec.ts, on the same rewards.
 */
interface Rewards {
  rewards: (number | null)[][];
  stops?: StopReason[][];
  calls?: number[][];
  callErrors?: number[][];
}
interface Run {
  set: string;
  settings: Record<string, string | boolean>;
  /** null: printed as none or NaN. */
  figures?: Record<string, number | null>;
  raised?: string;
}
const trainers = ['prime-rl', 'rllm', 'slime', 'trl'] as const;
type Trainer = (typeof trainers)[number];

const read = (name: string): unknown =>
  JSON.parse(readFileSync(new URL(`../../../tests/conformance/python/${name}.json`, import.meta.url), 'utf8'));
const sets = read('trainer_rewards') as Record<string, Rewards>;
const goldens = read('trainer_goldens') as Record<Trainer, { what: string; commit: string | null; runs: Run[] }>;

/** Relative to the figure, or to 1 where the figure is smaller. TRL sums up to a hundred values in single precision (6e-8); the others use double. */
const tolerance: Record<Trainer, number> = { trl: 1e-6, 'prime-rl': 1e-9, slime: 1e-9, rllm: 1e-9 };

const FAILURES: Partial<Record<StopReason, RolloutFigures['failure']>> = { env_error: 'environment', infra_error: 'infrastructure' };

function columnsFrom({ rewards, stops, calls, callErrors }: Rewards) {
  const rollouts = rewards.flatMap((group, index) =>
    group.map((reward, sample): RolloutFigures => {
      const stop = stops?.[index]![sample] ?? 'finished';
      return {
        group: String(index),
        reward,
        rewardPositive: reward,
        lastReward: reward,
        rewardSteps: reward === null ? 0 : 1,
        stop,
        turns: 1,
        assistantTurns: 1,
        toolTurns: 0,
        calls: calls?.[index]![sample] ?? 0,
        callErrors: callErrors?.[index]![sample] ?? 0,
        tokensOut: null,
        tokensTool: null,
        failure: FAILURES[stop] ?? null,
        environment: null,
      };
    }),
  );
  return columnsOf(rollouts);
}

/** The key of the lens for a printed name, as the parameter `m` resolves it. */
function keyOf(trainer: Trainer, printed: string): string {
  const [first] = resolveMetricName(printed, trainer).matches;
  if (first?.lens !== trainer) throw new Error(`${trainer} has no ${printed}`);
  return first.key;
}

const valueOf = (answer: MetricAnswer): number | null => (isFigure(answer) ? answer.value : null);

interface Compared {
  what: string;
  theirs: number | null;
  ours: number | null;
}

function compared(trainer: Trainer): Compared[] {
  return goldens[trainer].runs.flatMap(({ set, settings, figures }) => {
    const columns = columnsFrom(sets[set]!);
    return Object.entries(figures ?? {}).map(([printed, theirs]) => ({
      what: [set, ...Object.values(settings), printed].join(', '),
      theirs,
      ours: valueOf(metric(trainer, keyOf(trainer, printed))!.compute(columns)),
    }));
  });
}

const agree = (trainer: Trainer, { theirs, ours }: Compared) =>
  theirs === null || ours === null ? theirs === ours : Math.abs(theirs - ours) <= tolerance[trainer] * Math.max(1, Math.abs(theirs));

/** Intended differences: theirs, ours. */
const DIFFERENCES: Record<string, { because: string; figures: Record<string, [theirs: number, ours: number | null]> }> = {
  'groups of one': {
    because: 'TRL has them in evaluations alone, and calls them flat; the lens leaves them out and says so',
    figures: { 'groups of one, eval, eval_frac_reward_zero_std': [1, null], 'one rollout, eval, eval_frac_reward_zero_std': [1, null] },
  },
  'single precision': {
    because:
      'torch’s single-precision mean of equal fractions is rounded, here on a CPU, so that they deviate from it; ours is not, and another device may add in another order',
    figures: {
      'equal by three, train, frac_reward_zero_std': [5 / 6, 1],
      'equal by three, eval, eval_frac_reward_zero_std': [5 / 6, 1],
      'equal by three, train, none, frac_reward_zero_std': [5 / 6, 1],
      'equal by six, train, frac_reward_zero_std': [4 / 6, 1],
      'equal by six, eval, eval_frac_reward_zero_std': [4 / 6, 1],
      'equal by eight, train, frac_reward_zero_std': [3 / 6, 1],
      'equal by eight, eval, eval_frac_reward_zero_std': [3 / 6, 1],
    },
  },
  'scale_rewards = batch': {
    because: 'TRL then looks at the deviation of the batch; the setting is not in an upload, the lens has the default, groups',
    figures: { 'vector 8, train, batch, frac_reward_zero_std': [0, 0.75], 'equal by three, train, batch, frac_reward_zero_std': [0, 1] },
  },
};

describe('the figures of the trainers’ code', () => {
  test.each<[Trainer, number]>([
    ['prime-rl', 989],
    ['rllm', 111],
    ['slime', 355],
    ['trl', 134],
  ])('%s: our %i figures are equal except for the intended differences', (trainer, count) => {
    const all = compared(trainer);
    expect(all).toHaveLength(count);
    const different = all.filter((one) => !agree(trainer, one));
    const meant = trainer === 'trl' ? Object.values(DIFFERENCES).map(({ figures }) => figures) : [];
    const expected = meant.flatMap((figures) => Object.entries(figures).map(([what, [theirs, ours]]) => ({ what, theirs, ours })));
    const byName = (one: Compared, other: Compared) => (one.what < other.what ? -1 : 1);
    expect(different.toSorted(byName)).toEqual(
      expected.toSorted(byName).map(({ what, theirs, ours }) => ({ what, theirs: expect.closeTo(theirs, 6), ours })),
    );
  });

  test('the TRL lens notes the groups that it leaves out', () => {
    expect(metric('trl', 'frac_reward_zero_std')!.compute(columnsFrom(sets['groups of one']!))).toEqual({
      value: null,
      denominator: 0,
      of: 4,
      note: '4 groups of one left out',
    });
  });

  /** The runs for which a trainer prints a whole family, so that ours must have the same members. */
  const families: Record<Trainer, { keys: string[]; prints: (run: Run) => boolean }[]> = {
    'prime-rl': [{ keys: ['effective/pass@{k}', 'effective/pass^{k}'], prints: ({ settings }) => settings['plane'] === 'eval' }],
    rllm: [{ keys: ['pass@{k}'], prints: ({ set }) => set !== 'one rollout' }],
    slime: [
      { keys: ['pass@{k}'], prints: ({ settings }) => settings['logs'] === 'log_rollout_data of the train side' },
      { keys: ['zero_std/count_{value}'], prints: ({ settings }) => settings['logs'] === 'log_rollout_data' },
      { keys: ['pass@{k}', 'zero_std/count_{value}'], prints: ({ settings }) => settings['logs'] === 'log_eval_rollout_data' },
    ],
    trl: [],
  };
  test.each<[Trainer, number]>([
    ['prime-rl', 23],
    ['rllm', 14],
    ['slime', 70],
  ])('%s prints, in %i runs, the same members of a family as our lens', (trainer, count) => {
    let looked = 0;
    for (const { keys, prints } of families[trainer]) {
      for (const run of goldens[trainer].runs.filter((one) => one.figures !== undefined && prints(one))) {
        looked += 1;
        const columns = columnsFrom(sets[run.set]!);
        const ours = keys.flatMap((key) => metric(trainer, key)!.keysFor(columns));
        const theirs = Object.keys(run.figures!).map((printed) => keyOf(trainer, printed));
        const isMember = (key: string) => keys.some((family) => key.startsWith(family.slice(0, family.indexOf('{'))));
        expect(theirs.filter(isMember).toSorted(), `${trainer} ${run.set} ${JSON.stringify(run.settings)}`).toEqual(ours.toSorted());
      }
    }
    expect(looked).toBe(count);
  });

  test('slime fails on an unscored rollout, where the lens counts 0 and says so', () => {
    const raised = goldens.slime.runs.filter((run) => run.raised !== undefined).map(({ set, raised }) => `${set}: ${raised}`);
    expect(new Set(raised)).toEqual(
      new Set(['unscored: TypeError', 'nothing scored: TypeError', 'two functions: TypeError', 'uneven groups: AssertionError']),
    );
    const unscored = columnsFrom(sets['unscored']!);
    expect(metric('slime', 'raw_reward/mean')!.compute(unscored)).toMatchObject({
      value: 0.3,
      note: expect.stringContaining('null as 0 (10 of 20)'),
    });
    expect(metric('slime', 'pass@{k}')!.keysFor(columnsFrom(sets['uneven groups']!))).toEqual([]);
    for (const trainer of ['prime-rl', 'rllm', 'trl'] as const)
      expect(goldens[trainer].runs.filter((run) => run.raised !== undefined)).toEqual([]);
  });

  test('slime prints whole numbers without a decimal, which the lens always has', () => {
    const run = goldens.slime.runs.find(({ set, settings }) => set === 'vector 8' && settings['rewards'] === 'int')!;
    expect(Object.keys(run.figures!).filter((key) => key.includes('zero_std'))).toEqual(
      ['1', '0', '0.5'].map((value) => `eval/set/zero_std/count_${value}`),
    );
    expect(['1', '0', '0.5', '-2'].map((value) => keyOf('slime', `rollout/zero_std/count_${value}`))).toEqual(
      ['1.0', '0.0', '0.5', '-2.0'].map((value) => `zero_std/count_${value}`),
    );
  });

  test('rLLM prints no pass@k for single attempts, where the lens has pass@1, which is the score', () => {
    expect(goldens.rllm.runs.find(({ set }) => set === 'one rollout')!.figures).toEqual({ score: 0, errors: 0 });
    const columns = columnsFrom(sets['one rollout']!);
    expect(metric('rllm', 'pass@{k}')!.keysFor(columns)).toEqual(['pass@1']);
    expect(valueOf(metric('rllm', 'pass@1')!.compute(columns))).toBe(0);
  });

  test('every golden names its version', () => {
    expect(Object.fromEntries(trainers.map((trainer) => [trainer, [goldens[trainer].what, goldens[trainer].commit]]))).toEqual({
      'prime-rl': ['Python 3.12.1, verifiers 0.3.1.dev59', '559b44772e471d1538537b8805cc77f3824a5e64'],
      rllm: ['Python 3.12.1', '9beb6e0f676a46d38858991fd79ac5f8e0b16d4c'],
      slime: ['Python 3.11.7, torch 2.15.0, numpy 2.4.6', '624b824a898ab0ec1fcb4d373004c7f3852bf515'],
      trl: ['Python 3.11.7, trl 1.16.0, torch 2.15.0, transformers 5.23.0', null],
    });
  });
});
