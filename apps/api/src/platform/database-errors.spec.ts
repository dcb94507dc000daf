import { expect, test } from 'vitest';
import { isDatabaseAway } from './database-errors.ts';

const withCode = (code: string) => Object.assign(new Error('x'), { code });

test.each([
  withCode('57P03'),
  withCode('08006'),
  withCode('ECONNREFUSED'),
  withCode('P1017'),
  new Error('Connection terminated unexpectedly'),
  new Error('Client has encountered a connection error and is not queryable'),
  new Error('outer', { cause: { kind: 'DatabaseNotReachable' } }),
])('%s means that the database is away', (error) => {
  expect(isDatabaseAway(error)).toBe(true);
});

test.each([withCode('23505'), withCode('22P05'), withCode('42P01'), new Error('no such column'), null, 'text'])('%s does not', (error) => {
  expect(isDatabaseAway(error)).toBe(false);
});
