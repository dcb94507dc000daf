import { computeLens, isFailed, isFigure, type RolloutFacts } from '@palestra/metrics';
import { STOP_REASONS, UNSCORED_FAILURES } from '@palestra/protocol';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { wordOf } from '../../codes.ts';
import { rollUpStep, type StepFigures } from './rollup.figures.ts';
import { NO_FAILURE, NO_STOP, type StepPart } from './step-columns.ts';
import { full } from '../../../../../../tests/support/full.ts';

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

/** Of both environments. */
const SHARED = '0';
const groupOf = ({ group, env }: Pick<Stored, 'group' | 'env'>) => (group === null ? null : group === SHARED ? '30' : `${env}${group}`);
/** Half of the time no group has rollouts of both environments: sums of the whole are put together then, else made anew. */
const several = (minLength: number, maxLength: number) =>
  fc
    .tuple(fc.array(stored, { minLength, maxLength }), fc.boolean())
    .map(([rollouts, share]) => rollouts.map((one) => (share || one.group !== SHARED ? one : { ...one, group: null })));
const groupKeysOf = (rollouts: readonly Stored[]) => [...new Set(rollouts.map(groupOf).filter((group) => group !== null))];

function partsOf(rollouts: readonly Stored[], groupKeys = groupKeysOf(rollouts)): StepPart[] {
  const known = (values: (number | null)[]) => {
    const those = values.filter((value) => value !== null);
    return { sum: those.reduce((a, b) => a + b, 0), known: those.length };
  };
  return [1, 2].flatMap((env_id) => {
    const own = rollouts.filter(({ env }) => env === env_id);
    if (own.length === 0) return [];
    const weakestOf = (shift: number) => Math.min(...own.map(({ provenance }) => (provenance >> shift) & 3)) << shift;
    const totals = {
      rollouts: own.length,
      finished: 0,
      messages: own.length,
      calls: known(own.map(({ calls }) => calls)).sum,
      callErrors: known(own.map(({ errors }) => errors)).sum,
      gaps: 0,
      mismatches: 0,
      turns: known(own.map(({ turns }) => turns)),
      tokensOut: known(own.map(({ tokens }) => tokens)),
      tokensTool: { sum: 0, known: 0 },
      provenance: Array.from({ length: 9 }, (_, field) => weakestOf(2 * field)).reduce((packed, field) => packed | field, 0),
    };
    return {
      env_id,
      window: null,
      groupKeys,
      seq: Float64Array.from(own, (_, at) => at),
      group: Int32Array.from(own, (one) => groupKeys.indexOf(groupOf(one) ?? '')),
      reward: Float64Array.from(own, ({ reward }) => reward ?? Number.NaN),
      stop: Uint8Array.from(own, ({ stop }) => stop ?? NO_STOP),
      failure: Uint8Array.from(own, ({ failure }) => failure ?? NO_FAILURE),
      taskId: Int32Array.from(own, ({ task }) => task ?? -1),
      groupSize: Int32Array.from(own, ({ size }) => size ?? -1),
      totals,
    };
  });
}

const factsOf = (rollouts: readonly Stored[]): RolloutFacts[] =>
  rollouts.map(({ env, group, reward, stop, failure, turns, calls, errors, tokens }, at) => ({
    id: String(at),
    group: groupOf({ env, group }),
    reward,
    rewardPositive: null,
    lastReward: null,
    rewardSteps: 1,
    stop: wordOf(STOP_REASONS, stop),
    turns,
    assistantTurns: turns,
    toolTurns: null,
    calls,
    callErrors: errors,
    tokensOut: tokens,
    tokensTool: null,
    failure: wordOf(UNSCORED_FAILURES, failure),
    environment: String(env),
    phase: 'train',
  }));

/** Each reward with how many rollouts have it, and how many of these did not fail. */
function countsOf(facts: readonly RolloutFacts[]): StepFigures['rewards'] {
  const values = [...new Set(facts.flatMap(({ reward }) => reward ?? []))].toSorted((a, b) => a - b);
  const those = (value: number) => facts.filter(({ reward }) => reward === value);
  return values.length > 50
    ? null
    : values.map((value) => [value, those(value).length, those(value).filter((one) => !isFailed(one)).length]);
}

const rollUp = (rollouts: readonly Stored[]) => rollUpStep(STEP, partsOf(rollouts), () => RULE);

test('every canonical figure of a rollup is that of its rollouts, to the last bit, together and by environment', () => {
  fc.assert(
    fc.property(several(1, 120), (rollouts) => {
      const { rollups } = rollUp(rollouts);
      expect(rollups.map(({ env_id }) => env_id)).toEqual([0, ...new Set(partsOf(rollouts).map(({ env_id }) => env_id))]);
      for (const { env_id, figures } of rollups) {
        const facts = factsOf(rollouts.filter(({ env }) => env_id === 0 || env === env_id));
        const { canonical, rewards } = figures as StepFigures;
        expect(rewards).toEqual(countsOf(facts));
        const answers = computeLens('canonical', facts, { success: RULE });
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

test('nothing of a rollup or a group depends on the order of rows', () => {
  fc.assert(
    fc.property(several(2, 60), fc.infiniteStream(fc.nat()), (rollouts, keys) => {
      const shuffled = rollouts.map((one) => [keys.next().value!, one] as const).toSorted(([a], [b]) => a - b);
      const sorted = ({ rollups, groups }: ReturnType<typeof rollUp>) => ({
        rollups,
        groups: groups.toSorted((a, b) => Number(a.group_key) - Number(b.group_key)),
      });
      expect(sorted(rollUp(shuffled.map(([, one]) => one)))).toEqual(sorted(rollUp(rollouts)));
    }),
    RUNS,
  );
});

test('windows of arrival add up to the whole, each with its own figures', () => {
  fc.assert(
    fc.property(several(1, 40), several(1, 40), (early, late) => {
      const windowed = [early, late].flatMap((own, at) =>
        partsOf(own, groupKeysOf([...early, ...late])).map((part, n) => ({
          ...part,
          window: { from: 1_000 * at, to: 1_000 * at + 1_000, first_seq: String(9 + n), last_seq: String(10 + n) },
        })),
      );
      const { rollups } = rollUpStep({ ...STEP, step: -1 }, windowed.toReversed(), () => RULE);
      const { windows, ...whole } = rollups[0]!;
      expect(whole).toEqual({ ...rollUp([...early, ...late]).rollups[0]!, step: -1, windows: undefined });
      expect(windows).toMatchObject({ width_ms: 1_000, windows: [{ from: 0 }, { from: 1_000 }] });
      for (const [at, own] of [early, late].entries()) {
        const one = windows!.windows[at]!;
        expect(one).toMatchObject({ rollouts: own.length, first_seq: '9', last_seq: String(10 + partsOf(own).length - 1) });
        expect(one.reward_sum).toBe(rollUp(own).rollups[0]!.reward_sum);
      }
    }),
    RUNS,
  );
});
