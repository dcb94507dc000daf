import { expect, test } from 'vitest';
import type { GroupRow } from './rollup.sql.ts';
import { groupChanges } from './stored-groups.sql.ts';

const GROUP: GroupRow = {
  group_key: '-9223372036854775803',
  env_id: 1,
  task_id: 2,
  n: 8,
  n_expected: 16,
  scored: 7,
  errors: 1,
  successes: 3,
  sum: 0.1 + 0.2,
  sum_squares: 1.5,
  min: -0.5,
  max: 1,
};
const UNKNOWN: GroupRow = {
  ...GROUP,
  group_key: '5',
  task_id: null,
  n_expected: null,
  scored: 0,
  sum: 0,
  sum_squares: 0,
  min: null,
  max: null,
};

/** The bytes of a group as the statement packs them, by hand. */
function packed(group: GroupRow): Buffer {
  const bytes = Buffer.alloc(68);
  bytes.writeBigInt64BE(BigInt(group.group_key), 0);
  const whole = [group.env_id, group.task_id, group.n, group.n_expected, group.scored, group.errors, group.successes];
  whole.forEach((value, at) => bytes.writeInt32BE(value ?? -1, 8 + 4 * at));
  [group.sum, group.sum_squares, group.min, group.max].forEach((value, at) => bytes.writeDoubleBE(value ?? Number.NaN, 36 + 8 * at));
  return bytes;
}

test('groups that stand as they should are not written, whatever is not known of them', () => {
  const stored = Buffer.concat([packed(GROUP), packed(UNKNOWN)]);
  expect(groupChanges(stored, [UNKNOWN, GROUP])).toEqual({ changed: [], gone: [] });
});

test.each(Object.keys(GROUP).filter((name) => name !== 'group_key') as (keyof GroupRow)[])('a group with another %s is written', (name) => {
  const changed = { ...GROUP, [name]: Number(GROUP[name]) + 1 };
  expect(groupChanges(packed(GROUP), [changed])).toEqual({ changed: [changed], gone: [] });
  if (UNKNOWN[name] !== null) return;
  expect(groupChanges(packed(GROUP), [{ ...GROUP, [name]: null }]).changed).toHaveLength(1);
  expect(groupChanges(packed({ ...GROUP, [name]: null }), [GROUP]).changed).toHaveLength(1);
});

test('a group that is new is written, and one that is gone is named', () => {
  expect(groupChanges(packed(UNKNOWN), [GROUP])).toEqual({ changed: [GROUP], gone: ['5'] });
  expect(groupChanges(Buffer.alloc(0), [GROUP, UNKNOWN])).toEqual({ changed: [GROUP, UNKNOWN], gone: [] });
  expect(groupChanges(packed(GROUP), [])).toEqual({ changed: [], gone: [GROUP.group_key] });
});
