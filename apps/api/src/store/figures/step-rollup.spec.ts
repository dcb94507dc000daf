import { computeLens, isFailed, isFigure } from '@palestra/metrics';
import { STOP_REASONS, UNSCORED_FAILURES } from '@palestra/protocol';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { full } from '../../../../../tests/support/full.ts';
import { type StepColumns, stepColumns } from './step-columns.ts';
import { rollUpStep, type StepFigures } from './step-rollup.ts';

const RULE = { threshold: 0.5, strict: false };
const STEP = { run_seq: 1, phase: 0, step: 3 };

const RUNS = { numRuns: full ? 40 : 20 };

/** One rollout as the store has it. */
const stored = fc.record({
  env: fc.integer({ min: 1, max: 2 }),
  group: fc.option(fc.nat(5).map(String)),
  // A few values many times, or many. Zero has one sign: it is kept as JSON.
  reward: fc.option(fc.oneof(fc.constantFrom(0, 1, 0.1, -0.5), fc.double({ min: -2, max: 2, noNaN: true })).map((reward) => reward + 0)),
  stop: fc.option(fc.nat(STOP_REASONS.length - 1)),
  failure: fc.option(fc.nat(UNSCORED_FAILURES.length - 1), { freq: 5 }),
  task: fc.option(fc.nat(9)),
  size: fc.option(fc.integer({ min: 1, max: 8 })),
  provenance: fc.nat(2 ** 18 - 1),
  turns: fc.option(fc.nat(50)),
  calls: fc.nat(9),
  errors: fc.nat(3),
  tokens: fc.option(fc.nat(9_000)),
});
type Stored = typeof stored extends fc.Arbitrary<infer One> ? One : never;

/** The group that both environments may share. */
const SHARED = '0';
const groupOf = ({ group, env }: Pick<Stored, 'group' | 'env'>) => (group === null ? null : group === SHARED ? '30' : `${env}${group}`);
/** Half of the time no group has rollouts of both environments. */
const several = (minLength: number, maxLength: number) =>
  fc
    .tuple(fc.array(stored, { minLength, maxLength }), fc.boolean())
    .map(([rollouts, share]) => rollouts.map((one) => (share || one.group !== SHARED ? one : { ...one, group: null })));

function columnsFrom(rollouts: readonly Stored[], receivedAt: (at: number) => number = () => 0): StepColumns {
  const column = <T>(valueOf: (one: Stored) => T): T[] => rollouts.map(valueOf);
  return stepColumns({
    seq: rollouts.map((_, at) => 9 + at),
    envId: column(({ env }) => env),
    taskId: column(({ task }) => task),
    group: column(groupOf),
    groupSize: column(({ size }) => size),
    reward: column(({ reward }) => reward),
    rewardPositive: column(() => null),
    lastReward: column(() => null),
    rewardSteps: column(() => 1),
    stop: column(({ stop }) => stop),
    failure: column(({ failure }) => failure),
    turns: column(({ turns }) => turns),
    toolTurns: column(() => null),
    messages: column(() => 1),
    calls: column(({ calls }) => calls),
    callErrors: column(({ errors }) => errors),
    tokensOut: column(({ tokens }) => tokens),
    tokensTool: column(() => null),
    gaps: column(() => 0),
    flags: column(() => 0),
    provenance: column(({ provenance }) => provenance),
    finished: column(() => false),
    receivedAt: rollouts.map((_, at) => receivedAt(at)),
  });
}

/** Each reward with how many rollouts have it, and how many of these did not fail. */
function countsOf({ reward, failure, stop }: StepColumns): StepFigures['rewards'] {
  const values = [...new Set(reward.filter((value) => value !== null))].toSorted((a, b) => a - b);
  if (values.length > 50) return null;
  const placesOf = (value: number) => reward.flatMap((one, at) => (one === value ? [at] : []));
  const isEffective = (at: number) => !isFailed({ failure: failure[at]!, stop: stop[at]! });
  return values.map((value) => [value, placesOf(value).length, placesOf(value).filter(isEffective).length]);
}

const rollUp = (rollouts: readonly Stored[]) => rollUpStep(STEP, columnsFrom(rollouts), () => RULE);

test('every canonical figure of a rollup equals that of its rollouts to the last bit, together and by environment', () => {
  fc.assert(
    fc.property(several(1, 120), (rollouts) => {
      const { rollups } = rollUp(rollouts);
      expect(rollups.map(({ env_id }) => env_id)).toEqual([0, ...new Set(rollouts.map(({ env }) => env))]);
      for (const { env_id, figures } of rollups) {
        const columns = columnsFrom(rollouts.filter(({ env }) => env_id === 0 || env === env_id));
        const { canonical, rewards } = figures as StepFigures;
        expect(rewards).toEqual(countsOf(columns));
        const answers = computeLens('canonical', columns, { success: RULE });
        expect(Object.keys(canonical).length).toBeGreaterThan(25);
        expect(Object.keys(canonical).toSorted()).toEqual([...answers.keys()].filter((key) => !/^pass@\d+_ci_/.test(key)).toSorted());
        for (const [key, value] of Object.entries(canonical)) {
          const answer = answers.get(key)!;
          if (!isFigure(answer)) expect(value, key).toBeNull();
          else expect(value, key).toEqual([answer.value, answer.denominator, answer.of, ...(answer.note ? [answer.note] : [])]);
        }
      }
    }),
    RUNS,
  );
});

test('rollups and groups do not depend on the order of rollouts', () => {
  fc.assert(
    fc.property(several(2, 60), fc.infiniteStream(fc.nat()), (rollouts, keys) => {
      const shuffled = rollouts.map((one) => [keys.next().value!, one] as const).toSorted(([a], [b]) => a - b);
      const sorted = ({ rollups, groups }: ReturnType<typeof rollUp>) => ({
        rollups: rollups.toSorted((a, b) => a.env_id - b.env_id),
        groups: groups.toSorted((a, b) => Number(a.group_key) - Number(b.group_key) || a.env_id - b.env_id),
      });
      expect(sorted(rollUp(shuffled.map(([, one]) => one)))).toEqual(sorted(rollUp(rollouts)));
    }),
    RUNS,
  );
});

test('arrival windows add up to the whole, each with its own figures', () => {
  fc.assert(
    fc.property(several(1, 40), several(1, 40), (early, late) => {
      const rollouts = [...early, ...late];
      const columns = columnsFrom(rollouts, (at) => (at < early.length ? 1_800_000_500 : 3_600_000_500));
      const { rollups } = rollUpStep({ ...STEP, step: -1 }, columns, () => RULE);
      const { windows, ...whole } = rollups[0]!;
      expect(whole).toEqual({ ...rollUp(rollouts).rollups[0]!, step: -1, windows: undefined });
      const { windows: shown } = windows!;
      expect(shown.reduce((total, one) => total + one.rollouts, 0)).toBe(rollouts.length);
      expect(shown).toHaveLength(2);
      for (const [at, own] of [early, late].entries()) {
        const one = shown[at]!;
        const first = at === 0 ? 9 : 9 + early.length;
        expect(one).toMatchObject({ rollouts: own.length, first_seq: String(first), last_seq: String(first + own.length - 1) });
        expect(one.to - one.from).toBe(windows!.width_ms);
        expect(one.reward_sum).toBe(rollUp(own).rollups[0]!.reward_sum);
      }
    }),
    RUNS,
  );
});
