import type { Lens } from '@palestra/protocol';
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { columnsOf, computeLens, isFigure, metric, type RolloutColumns, type RolloutFigures } from '@palestra/metrics';
import fc from 'fast-check';
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

/** A rollout of one prompt: rewards of its steps, null where a step has none. */
interface Played {
  group: number;
  environment: string;
  steps: (number | null)[];
  stop: 'finished' | 'max_turns' | 'infra_error' | 'timeout';
}

/** Ids of environments, as the store has them, and their names. */
const NAMES = new Map([
  ['1', 'palestra/whodunit'],
  ['2', 'acme/deep/math'],
]);
const OFTEN = 4;

/** Batches with interrupted rollouts, rollouts without any reward, groups of other sizes than most, and several data sources. */
const played = fc
  .array(
    fc.record({
      size: fc.constantFrom(OFTEN, OFTEN, OFTEN, OFTEN, 1, 3, 8),
      environment: fc.constantFrom('1', '2'),
      rollouts: fc.array(
        fc.record({
          steps: fc.array(fc.option(fc.constantFrom(-1, -0.25, 0, 0.05, 0.9, 1)), { minLength: 1, maxLength: 4 }),
          stop: fc.constantFrom('finished' as const, 'max_turns' as const, 'infra_error' as const, 'timeout' as const),
        }),
        { minLength: 8, maxLength: 8 },
      ),
    }),
    { minLength: 5, maxLength: 12 },
  )
  .map((groups) =>
    groups.flatMap(({ size, environment, rollouts }, group): Played[] =>
      rollouts.slice(0, size).map((rollout) => ({ group, environment, ...rollout })),
    ),
  )
  .filter((rollouts) => commonSize(rollouts) === OFTEN);

function commonSize(rollouts: readonly Played[]): number | null {
  const sizes = new Map<number, number>();
  for (const group of new Set(rollouts.map((one) => one.group))) {
    const size = rollouts.filter((one) => one.group === group).length;
    sizes.set(size, (sizes.get(size) ?? 0) + 1);
  }
  const most = Math.max(...sizes.values());
  const common = [...sizes].filter(([, count]) => count === most).map(([size]) => size);
  return common.length === 1 ? common[0]! : null;
}

function figuresOf({ group, environment, steps, stop }: Played): RolloutFigures {
  const known = steps.filter((step) => step !== null);
  const isScored = known.length > 0;
  return {
    group: String(group),
    environment,
    reward: isScored ? known.reduce((sum, step) => sum + step, 0) : null,
    rewardPositive: isScored ? known.reduce((sum, step) => sum + Math.max(step, 0), 0) : null,
    lastReward: isScored ? (steps.at(-1) ?? 0) : null,
    rewardSteps: known.length,
    stop,
    failure: stop === 'infra_error' ? 'infrastructure' : null,
    turns: steps.length,
    assistantTurns: steps.length,
    toolTurns: steps.length,
    calls: steps.length,
    callErrors: 0,
    tokensOut: null,
    tokensTool: null,
  };
}

describe('the names and figures that SkyRL prints', () => {
  const batches = Object.fromEntries(fc.sample(played, { numRuns: 60, seed: 27 }).map((rollouts, at) => [`batch ${at}`, rollouts]));
  let theirs: Record<string, Record<'train' | 'eval', Record<string, number>>>;
  beforeAll(async () => {
    const given = Object.entries(batches).map(([name, rollouts]) => [
      name,
      {
        rewards: rollouts.map(({ steps }) => steps.map((step) => step ?? 0)),
        uids: rollouts.map(({ group }) => String(group)),
        sources: rollouts.map(({ environment }) => NAMES.get(environment)!),
        n: OFTEN,
      },
    ]);
    const args = [trainerWheels(), '-', JSON.stringify(Object.fromEntries(given))];
    theirs = (await runScript('v167', 'trainer_metrics.py', args, {})) as typeof theirs;
  });

  test.each(['train', 'eval'] as const)('%s: equal ours, for broken and unscored rollouts and odd groups', (phase) => {
    const context = { phase, environments: NAMES };
    for (const [name, rollouts] of Object.entries(batches)) {
      const answers = computeLens('skyrl', columnsOf(rollouts.map(figuresOf)), context);
      const ours = [...answers].flatMap(([key, answer]) => (isFigure(answer) ? [[key, answer.value] as const] : []));
      // What an environment reports of itself comes from the environment, and a count of filtered groups from the trainer's settings.
      const printed = ours.filter(([key]) => !/environment\/|num_zero_variance/.test(key));
      expect(printed.map(([key]) => key).toSorted(), name).toEqual(Object.keys(theirs[name]![phase]).toSorted());
      for (const [key, value] of printed) expect(value, `${name} ${key}`).toBeCloseTo(theirs[name]![phase][key]!, 9);
    }
  });
});
