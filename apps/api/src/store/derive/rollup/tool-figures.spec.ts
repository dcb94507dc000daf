import { expect, test } from 'vitest';
import { GroupKeys, NO_FAILURE, NO_STOP, unpackParts } from './step-columns.ts';
import { membersOf, toolRollups } from './tool-figures.ts';

/** The bytes of `rollouts.facts`, by hand: what the migration says of the layout. */
function factsOf(one: {
  seq: bigint;
  env: number;
  group: bigint | null;
  reward: number | null;
  bits?: number;
  size?: number;
  task?: number;
  turns?: number;
}): Buffer {
  const facts = Buffer.alloc(66);
  const known = one.group === null ? 0 : 1 << 26;
  facts.writeBigInt64BE(one.seq, 0);
  facts.writeInt32BE(one.env, 8);
  facts.writeInt32BE((one.bits ?? (15 << 18) | (3 << 22)) | known, 12);
  facts.writeInt16BE(one.size ?? -1, 16);
  facts.writeBigInt64BE(one.group ?? 0n, 18);
  facts.writeDoubleBE(one.reward ?? Number.NaN, 26);
  [one.task ?? -1, 20, 8, 1, 0, one.turns ?? -1, 900, -1].forEach((value, at) => facts.writeInt32BE(value, 34 + 4 * at));
  return facts;
}

const FAR = 2n ** 40n + 7n;

test('packed facts come out as they went in: numbers beyond 32 bits, groups that differ in one half, what is not known', () => {
  const groups = new GroupKeys();
  const [one, other] = [-(2n ** 63n) + 5n, 5n];
  const facts = [
    factsOf({
      seq: 1n,
      env: 7,
      group: one,
      reward: 0.1,
      bits: (2 << 18) | (1 << 22) | (1 << 24) | (1 << 25) | 0b1110,
      size: 8,
      task: 3,
      turns: 4,
    }),
    factsOf({ seq: 3n, env: -8, group: other, reward: 1, bits: 0b10 | (15 << 18) | (3 << 22) }),
    factsOf({ seq: 2n, env: 7, group: other, reward: null, bits: (15 << 18) | (3 << 22) | 0b1011 }),
    factsOf({ seq: FAR, env: 7, group: null, reward: -2.5 }),
    factsOf({ seq: 4n, env: 7, group: one, reward: 0 }),
  ];
  const [part, beside, ...more] = unpackParts(Buffer.concat(facts), groups);
  if (part === undefined) throw new Error('no part');
  expect(more).toEqual([]);
  expect(beside).toMatchObject({ env_id: -8, seq: Float64Array.of(3), group: Int32Array.of(1), totals: { rollouts: 1, provenance: 2 } });
  expect(part.env_id).toBe(7);
  expect(groups.keys).toEqual([String(one), String(other)]);
  expect([...part.group]).toEqual([0, 1, -1, 0]);
  expect([...part.seq]).toEqual([1, 2, Number(FAR), 4]);
  expect([...part.reward]).toEqual([0.1, Number.NaN, -2.5, 0]);
  expect([...part.stop]).toEqual([2, NO_STOP, NO_STOP, NO_STOP]);
  expect([...part.failure]).toEqual([1, NO_FAILURE, NO_FAILURE, NO_FAILURE]);
  expect([[...part.taskId], [...part.groupSize]]).toEqual([
    [3, -1, -1, -1],
    [8, -1, -1, -1],
  ]);
  expect(part.totals).toEqual({
    rollouts: 4,
    finished: 1,
    mismatches: 1,
    messages: 80,
    calls: 32,
    callErrors: 4,
    gaps: 0,
    turns: { sum: 4, known: 1 },
    tokensOut: { sum: 3_600, known: 4 },
    tokensTool: { sum: 0, known: 0 },
    // The weakest of each two bits.
    provenance: 0,
  });
  expect(() => unpackParts(Buffer.alloc(67), groups)).toThrow('67 bytes of facts');
});

test('tools count rollouts of the step alone, by environment, with the latency of PostgreSQL', () => {
  const partsOf = (env: number, seqs: bigint[], rewards: (number | null)[]) =>
    unpackParts(Buffer.concat(seqs.map((seq, at) => factsOf({ seq, env, group: null, reward: rewards[at]! }))), new GroupKeys());
  const members = membersOf([...partsOf(1, [9n, 1n, FAR], [0.3, 0.1, 0.2]), ...partsOf(2, [5n], [null])]);
  expect([...members.seq]).toEqual([1, 5, 9, Number(FAR)]);
  expect([...members.envId]).toEqual([1, 2, 1, 1]);
  const use = (seq: bigint) => {
    const entry = Buffer.alloc(24);
    entry.writeBigInt64BE(seq, 0);
    entry.writeInt32BE(4, 8);
    entry.writeInt32BE(1, 12);
    entry.writeBigInt64BE(2n ** 33n, 16);
    return entry;
  };
  const call = (seq: bigint, ms: number | null, failure: number) => {
    const entry = Buffer.alloc(14);
    entry.writeBigInt64BE(seq, 0);
    entry.writeFloatBE(ms ?? Number.NaN, 8);
    entry.writeInt16BE(failure, 12);
    return entry;
  };
  // 3 is another run's, between those of this step.
  const uses = [{ tool: 'look', entries: Buffer.concat([FAR, 3n, 9n, 1n, 5n].map(use)) }];
  const calls = [
    { tool: 'look', entries: Buffer.concat([call(1n, 10, 0), call(1n, null, 3), call(3n, 99, 1), call(9n, 30, 1), call(FAR, 20, 2)]) },
    { tool: 'never', entries: call(1n, 10, 0) },
  ];
  const found = toolRollups(members, { uses, calls }).toSorted((a, b) => a.env_id - b.env_id);
  const first = { rollouts: 3, calls: 12, errors: 3, result_bytes: 3 * 2 ** 33, scored: 3, reward_sum: 0.1 + 0.2 + 0.3 };
  const latency = { timed: 4, p50_ms: 20, p95_ms: 29, policy: 1, environment: 1, infrastructure: 1 };
  const none = { timed: 0, p50_ms: null, p95_ms: null, policy: 0, environment: 0, infrastructure: 0 };
  expect(found).toEqual([
    { env_id: 1, tool: 'look', figures: { ...first, ...latency } },
    { env_id: 2, tool: 'look', figures: { rollouts: 1, calls: 4, errors: 1, result_bytes: 2 ** 33, scored: 0, reward_sum: null, ...none } },
  ]);
});
