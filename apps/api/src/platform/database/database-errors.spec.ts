import { expect, test } from 'vitest';
import { isDatabaseUnavailable, isRefusedValue, isUnstorableText, isRolledBack } from './database-errors.ts';

const withCode = (code: string) => Object.assign(new Error('x'), { code });

test.each([
  withCode('57P03'),
  withCode('08006'),
  withCode('ECONNREFUSED'),
  withCode('P1017'),
  new Error('Connection terminated unexpectedly'),
  // A process that shuts down has ended its pool.
  new Error('Cannot use a pool after calling end on the pool'),
  new Error('Client has encountered a connection error and is not queryable'),
  new Error('outer', { cause: { kind: 'DatabaseNotReachable' } }),
  withCode('EPIPE'),
  new Error('outer', { cause: withCode('57P01') }),
  Object.assign(withCode('P2039'), { meta: { driverAdapterError: { cause: { originalCode: '57P03', kind: 'postgres' } } } }),
])('%s means that the database is unavailable', (error) => {
  expect(isDatabaseUnavailable(error)).toBe(true);
});

/** The text of a user, in an error of PostgreSQL and of Prisma. */
const quoted = 'invalid input syntax for type uuid: "connection closed"';

test.each([
  withCode('23505'),
  withCode('22P05'),
  withCode('42P01'),
  new Error('no such column'),
  null,
  'text',
  Object.assign(new Error(quoted), { code: '22P02' }),
  Object.assign(new Error(quoted), { code: 'P2010', meta: { driverAdapterError: { message: quoted, cause: { originalCode: '22P02' } } } }),
])('%s does not mean that the database is unavailable', (error) => {
  expect(isDatabaseUnavailable(error)).toBe(false);
});

test('a deadlock means that the statement may be repeated, not that the database is unavailable', () => {
  expect([isRolledBack(withCode('40P01')), isDatabaseUnavailable(withCode('40P01'))]).toEqual([true, false]);
  expect([isRolledBack(withCode('23505')), isRolledBack(null)]).toEqual([false, false]);
});

test.each([
  ['22003', true],
  ['54000', true],
  ['23503', false],
  ['40P01', false],
  ['57P01', false],
])('code %s means that a value is refused: %s', (code, refused) => {
  expect(isRefusedValue(withCode(code))).toBe(refused);
});

test.each([
  [withCode('22021'), true],
  [withCode('22P05'), true],
  [Object.assign(new Error('invalid input syntax for type json'), { code: '22P02' }), true],
  [Object.assign(new Error('invalid input syntax for type uuid: "x"'), { code: '22P02' }), false],
  [Object.assign(withCode('P2010'), { meta: { driverAdapterError: { cause: { originalCode: '22021' } } } }), true],
  [withCode('22003'), false],
  [null, false],
])('%s means that a text cannot be stored: %s', (error, unstorable) => {
  expect(isUnstorableText(error)).toBe(unstorable);
});
