import type { Lens } from '@palestra/protocol';
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { columnsOf, isFigure, metric, type RolloutColumns } from '@palestra/metrics';
import { beforeAll, describe, expect, test } from 'vitest';
import { pythonFolder, runScript } from './support/python.ts';

/** Our lenses against the trainers' own Python functions, out of their published wheels. */
function trainerWheels(): string {
  const folder = process.env['PALESTRA_TRAINERS_DIR'] ?? '';
  if (!existsSync(path.join(folder, 'verl')))
    throw new Error(`PALESTRA_TRAINERS_DIR must hold the unpacked wheels; it is ${folder || 'not set'}`);
  return folder;
}

/** Rewards that trainer_goldens.json has the figures of other trainers of, too; without unscored rollouts, which these functions do not know. */
const given = JSON.parse(readFileSync(path.join(pythonFolder, 'trainer_rewards.json'), 'utf8')) as Record<
  string,
  { rewards: (number | null)[][] }
>;
const sets = Object.fromEntries(
  Object.entries(given).flatMap(([name, { rewards }]) => (rewards.flat().includes(null) ? [] : [[name, rewards as number[][]]])),
);

function columnsFrom(groups: number[][]): RolloutColumns {
  const rollouts = groups.flatMap((rewards, group) =>
    rewards.map((reward) => ({
      group: String(group),
      reward,
      rewardPositive: Math.max(0, reward),
      lastReward: reward,
      rewardSteps: 1,
      stop: 'finished' as const,
      turns: 1,
      assistantTurns: 1,
      toolTurns: 0,
      calls: 1,
      callErrors: 0,
      tokensOut: null,
      tokensTool: null,
      failure: null,
      environment: null,
    })),
  );
  return columnsOf(rollouts);
}

function ours(lens: Lens, key: string, columns: RolloutColumns): number {
  const found = metric(lens, key);
  if (found === null) throw new Error(`${lens} has no ${key}`);
  const answer = found.compute(columns);
  if (!isFigure(answer) || answer.value === null) throw new Error(`${lens} ${key} gave ${JSON.stringify(answer)}`);
  return answer.value;
}

/** What verl prints of tasks with `n` samples. */
function verlKeys(n: number): string[] {
  if (n === 1) return ['mean@1'];
  const draws = [...[2, 4, 8, 16].filter((size) => size < n), n];
  return [
    `mean@${n}`,
    `std@${n}`,
    ...draws.flatMap((size) => ['best', 'worst'].flatMap((end) => [`${end}@${size}/mean`, `${end}@${size}/std`])),
  ];
}

describe('metric parity with the trainers', () => {
  let everyone: Record<string, Record<'skyrl' | 'verl' | 'tinker', Record<string, number>>>;
  beforeAll(async () => {
    everyone = (await runScript('v167', 'trainer_metrics.py', [trainerWheels(), JSON.stringify(sets)], {})) as typeof everyone;
  });

  test('covers twenty-one sets of rewards', () => expect(Object.keys(sets)).toHaveLength(21));

  test.each(Object.keys(sets))('%s', (name) => {
    const groups = sets[name]!;
    const columns = columnsFrom(groups);
    const theirs = everyone[name]!;
    // `best@N/mean` of verl is the drawn estimate, which we keep beside the exact expectation.
    const printed = (lens: Lens, key: string) => (lens === 'verl' && key.includes('/') ? `${key}/bootstrap` : key.replace('at_n', 'at_4'));
    const compared = (['skyrl', 'verl', 'tinker'] as const).flatMap((lens) =>
      Object.entries(theirs[lens]).map(([key, value]) => ({
        name: `${lens} ${key}`,
        theirs: value,
        ours: ours(lens, printed(lens, key), columns),
      })),
    );
    expect(Object.keys(theirs.skyrl)).toHaveLength(4);
    expect(Object.keys(theirs.tinker)).toHaveLength(3);
    expect(Object.keys(theirs.verl).toSorted()).toEqual([...new Set(groups.flatMap(({ length }) => verlKeys(length)))].toSorted());
    expect(compared.filter((one) => !(Math.abs(one.theirs - one.ours) <= 1e-9))).toEqual([]);
  });
});
