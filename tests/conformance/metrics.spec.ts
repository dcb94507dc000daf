import { existsSync } from 'node:fs';
import path from 'node:path';
import { isFigure, type Lens, metric, type RolloutFacts } from '@palestra/metrics';
import { describe, expect, test } from 'vitest';
import { runScript } from './support/python.ts';

/** Our lenses against the trainers' own Python functions, out of their published wheels. */
function trainerWheels(): string {
  const folder = process.env['PALESTRA_TRAINERS_DIR'] ?? '';
  if (!existsSync(path.join(folder, 'verl')))
    throw new Error(`PALESTRA_TRAINERS_DIR must hold the unpacked wheels; it is ${folder || 'not set'}`);
  return folder;
}

const sets: Record<string, number[][]> = {
  'vector 8': [
    [1, 1, 1, 1],
    [0, 0, 0, 0],
    [1, 0, 0, 0],
    [0.5, 0.5, 0.5, 0.5],
  ],
  'vector 9': [[1, 0, 0, 0]],
  'uneven groups': [[1, 1, 1, 1, 1, 1, 1, 1], [0, 0], [1, 0, 0], [0.3]],
  'any numbers': [
    [-1.5, 2.25, 0.1, 0.7, 3],
    [0.1, 0.1, 0.1],
    [0.5, 0.5000005],
    [-1, 1],
  ],
  'sixteen samples': [Array.from({ length: 16 }, (_, i) => Math.sin(i)), Array.from({ length: 16 }, () => 0.1)],
};

function rowsOf(groups: number[][]): RolloutFacts[] {
  return groups.flatMap((rewards, group) =>
    rewards.map((reward, sample) => ({
      id: `${group}-${sample}`,
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
      phase: null,
    })),
  );
}

function ours(lens: Lens, key: string, rows: RolloutFacts[]): number {
  const found = metric(lens, key);
  if (found === null) throw new Error(`${lens} has no ${key}`);
  const answer = found.compute(rows);
  if (!isFigure(answer) || answer.value === null) throw new Error(`${lens} ${key} gave ${JSON.stringify(answer)}`);
  return answer.value;
}

describe('metric parity with the trainers', () => {
  test.each(Object.keys(sets))('%s', async (name) => {
    const groups = sets[name]!;
    const rows = rowsOf(groups);
    const theirs = (await runScript('v167', 'trainer_metrics.py', [trainerWheels(), JSON.stringify(groups)], {})) as Record<
      'skyrl' | 'verl' | 'tinker',
      Record<string, number>
    >;
    // `best@N/mean` of verl is the drawn estimate, which we keep beside the exact expectation.
    const printed = (lens: Lens, key: string) => (lens === 'verl' && key.includes('/') ? `${key}/bootstrap` : key.replace('at_n', 'at_4'));
    const compared = (['skyrl', 'verl', 'tinker'] as const).flatMap((lens) =>
      Object.entries(theirs[lens]).map(([key, value]) => ({
        name: `${lens} ${key}`,
        theirs: value,
        ours: ours(lens, printed(lens, key), rows),
      })),
    );
    expect(Object.keys(theirs.skyrl)).toHaveLength(4);
    expect(Object.keys(theirs.tinker)).toHaveLength(3);
    expect(Object.keys(theirs.verl).length).toBeGreaterThanOrEqual(10);
    expect(compared.filter((one) => !(Math.abs(one.theirs - one.ours) <= 1e-9))).toEqual([]);
  });
});
