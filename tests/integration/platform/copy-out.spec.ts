import type pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { arrayOf, copyOut } from '../../../apps/api/src/platform/database/copy-out.ts';
import { openPool } from '../../../apps/api/src/platform/database/pool.ts';
import { createDatabase } from '../../support/server.ts';

let database: Awaited<ReturnType<typeof createDatabase>>;
beforeAll(async () => {
  database = await createDatabase();
});
afterAll(() => database?.drop());

describe.each([
  ['that is pipelined', true],
  ['that is not', false],
])('COPY on a connection %s', (_, pipeline) => {
  let pool: pg.Pool;
  let client: pg.PoolClient;
  beforeAll(async () => {
    pool = openPool({ connectionString: database.url, max: 1, pipeline });
    client = await pool.connect();
  });
  afterAll(async () => {
    client?.release();
    await pool?.end();
  });

  test('rows come as bytes: every byte, nothing, NULL, text, numbers', async () => {
    const bytes = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte));
    const [first, second, ...more] = await copyOut(
      client,
      `SELECT * FROM (VALUES (1::int4, '\\x${bytes.toString('hex')}'::bytea, 'schön'::text, 0.5::float8), (2, ''::bytea, NULL, 'NaN')) v ORDER BY 1`,
    );
    expect(more).toEqual([]);
    expect([first![0]!.readInt32BE(), first![1], first![2]!.toString(), first![3]!.readDoubleBE()]).toEqual([1, bytes, 'schön', 0.5]);
    expect([second![0]!.readInt32BE(), second![1]!.length, second![2], second![3]!.readDoubleBE()]).toEqual([2, 0, null, Number.NaN]);
    expect(await copyOut(client, 'SELECT 1 WHERE false')).toEqual([]);
  });

  test('many rows, and one that is larger than what a socket gives at once, are whole', async () => {
    const long = await copyOut(client, `SELECT decode(repeat('00ff10', 2000000), 'hex')`);
    expect(long[0]![0]!.equals(Buffer.from('00ff10'.repeat(2_000_000), 'hex'))).toBe(true);
    const many = await copyOut(client, 'SELECT n, int8send(n) FROM generate_series(1, 20000) n');
    expect(many.map(([n]) => n!.readInt32BE())).toEqual(Array.from({ length: 20_000 }, (_, at) => at + 1));
    expect(many.every(([n, packed]) => Number(packed!.readBigInt64BE()) === n!.readInt32BE())).toBe(true);
  });

  test('answers belong to their questions, before and after one that fails in the middle of its rows', async () => {
    const asked = await Promise.allSettled([
      copyOut(client, 'SELECT 1'),
      client.query('SELECT 2 AS two'),
      copyOut(client, 'SELECT 10 / (5 - n) FROM generate_series(1, 9) n'),
      copyOut(client, 'SELECT nothing'),
      client.query('SELECT $1::int AS four', [4]),
      copyOut(client, 'SELECT 5'),
    ]);
    expect(asked.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected', 'rejected', 'fulfilled', 'fulfilled']);
    const [one, two, byZero, unknown, four, five] = asked as [never, never, PromiseRejectedResult, PromiseRejectedResult, never, never];
    expect([byZero.reason.code, unknown.reason.code]).toEqual(['22012', '42703']);
    expect([two, four]).toMatchObject([{ value: { rows: [{ two: 2 }] } }, { value: { rows: [{ four: 4 }] } }]);
    expect([one, five]).toEqual([1, 5].map((n) => ({ status: 'fulfilled', value: [[Buffer.from([0, 0, 0, n])]] })));
  });
});

test('a connection that breaks in the middle rejects what was asked of it', async () => {
  const pool = openPool({ connectionString: database.url, max: 2, pipeline: true });
  try {
    const client = await pool.connect();
    const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
    // Settled, so that they are waited for before they fail: on a busy machine they do while the next statement is on its way.
    const asked = Promise.allSettled([
      copyOut(client, 'SELECT n, pg_sleep(0.01) FROM generate_series(1, 100000) n'),
      copyOut(client, 'SELECT 1'),
    ]);
    await pool.query('SELECT pg_terminate_backend($1)', [rows[0]!.pid]);
    const answers = await asked;
    expect(answers.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    client.release(true);
  } finally {
    await pool.end();
  }
});

test('an array in the text of a statement holds numbers and nothing else', async () => {
  expect(arrayOf('float8', [1, -2.5, 1e-7, 2 ** 53])).toBe(`'{1,-2.5,1e-7,9007199254740992}'::float8[]`);
  expect(arrayOf('int', [])).toBe(`'{}'::int[]`);
  for (const wrong of [Number.NaN, Number.POSITIVE_INFINITY, `0}'; DROP TABLE runs; --` as unknown as number])
    expect(() => arrayOf('bigint', [1, wrong])).toThrow(RangeError);
});
