import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { selectPartsOfDeleted } from '../../../apps/api/src/exports/lake.sql.ts';
import { DUE_STAGES } from '../../../apps/api/src/store/derive/due-stages.sql.ts';
import { selectDueRuns } from '../../../apps/api/src/store/derive/infer.sql.ts';
import { clearMergeDue, selectDirtyPacks, selectMergeable, selectOldPacks } from '../../../apps/api/src/store/storage/pack.sql.ts';
import { createDatabase } from '../../support/server.ts';

/** Background passes of an idle store with many runs, packs and files read what changed, not what exists. */

const RUNS = 20_000;
const PACKS_OF_RUN = 5;
/** Pages of the tables above are some thousands. */
const MOST_PAGES = 200;
const RULE = { targetBytes: 32 * 1024 * 1024, factor: 8, quietMs: 3_600_000, without: [] };
const org = randomUUID();
let database: Awaited<ReturnType<typeof createDatabase>>;
let client: pg.Client;

beforeAll(async () => {
  database = await createDatabase();
  client = new pg.Client({ connectionString: database.url, options: '-c enable_seqscan=off -c jit=off' });
  await client.connect();
  await client.query(`INSERT INTO organisations (id, name) VALUES ($1, 'others')`, [org]);
  await client.query(
    `INSERT INTO runs (org_id, name, name_hash) SELECT $1::uuid, 'run ' || n, sha256(convert_to('run ' || n, 'UTF8')) FROM generate_series(1, $2::int) n`,
    [org, RUNS],
  );
  await client.query(
    `INSERT INTO transcript_packs (blob_key, org_id, run_seq, bytes, created_at, merge_due)
     SELECT 'orgs/' || $1 || '/packs/' || seq || '-' || n || '.jsonl.gz', $1::uuid, seq, 1000000, now() - interval '1 day', false FROM runs, generate_series(1, $2::int) n`,
    [org, PACKS_OF_RUN],
  );
  await client.query(
    `INSERT INTO lake_parts (run_seq, step, part, blob_key, fingerprint, rows, bytes) SELECT seq, n, 0, 'lake/' || seq || n, 'f', 1, 1 FROM runs, generate_series(1, 5) n`,
  );
  await client.query('VACUUM ANALYZE runs, transcript_packs, lake_parts');
}, 120_000);
afterAll(async () => {
  await client.end();
  await database.drop();
});

/** Pages that the statements of `work` read, which all run in one transaction that is undone. */
async function pagesOf(work: (queryable: Pick<pg.Pool, 'query'>) => Promise<unknown>): Promise<number> {
  let pages = 0;
  const query = async (statement: string | { text: string; values?: unknown[] }, values: unknown[] = []) => {
    const { text, values: given } = typeof statement === 'string' ? { text: statement, values } : statement;
    const { rows } = await client.query(`EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ${text}`, given ?? []);
    const { Plan: plan } = rows[0]['QUERY PLAN'][0];
    pages += plan['Shared Hit Blocks'] + plan['Shared Read Blocks'];
    return { rows: [], rowCount: 0 };
  };
  await client.query('BEGIN');
  await work({ query } as never).finally(() => client.query('ROLLBACK'));
  return pages;
}

describe('without a change', () => {
  test.each<[string, (queryable: Pick<pg.Pool, 'query'>) => Promise<unknown>]>([
    ['dirty packs', (queryable) => selectDirtyPacks(queryable, 600_000, 500, [])],
    ['packs to merge', (queryable) => selectMergeable(queryable, RULE)],
    ['the end of a merge', (queryable) => clearMergeDue(queryable, RULE, 1_000)],
    ['objects from before packs', (queryable) => selectOldPacks(queryable, 500, [])],
    ['files of deleted runs', (queryable) => selectPartsOfDeleted(queryable, 500)],
    ['stages of derivation', (queryable) => queryable.query(DUE_STAGES)],
    ['runs whose steps are inferred', (queryable) => selectDueRuns(queryable as pg.Pool, 20, [])],
  ])('%s read few pages', async (_name, work) => {
    expect(await pagesOf(work)).toBeLessThan(MOST_PAGES);
  });
});

test('the check sees a scan', async () => {
  expect(await pagesOf((queryable) => queryable.query('SELECT count(bytes) FROM transcript_packs'))).toBeGreaterThan(MOST_PAGES);
  expect(await pagesOf((queryable) => queryable.query('SELECT count(name) FROM runs'))).toBeGreaterThan(MOST_PAGES);
});

test('only runs with a new pack are looked at, with all of their packs, until they are quiet', async () => {
  const { rows } = await client.query('SELECT seq FROM runs ORDER BY seq LIMIT 2');
  const [quiet, busy] = rows.map(({ seq }) => seq as number);
  const add = (seq: number | null, age: string) =>
    client.query(
      `INSERT INTO transcript_packs (blob_key, org_id, run_seq, bytes, created_at) VALUES ($1, $2, $3, 1000000, now() - $4::interval)`,
      [`orgs/${org}/packs/${randomUUID()}.jsonl.gz`, org, seq, age],
    );
  const mergeable = async () =>
    (await selectMergeable(client as never, RULE)).map(({ run_seq, size_class }) => [run_seq, size_class !== null]);
  const due = async () =>
    (await client.query('SELECT DISTINCT run_seq FROM transcript_packs WHERE merge_due ORDER BY 1')).rows.map(({ run_seq }) => run_seq);

  expect(await mergeable()).toEqual([]);
  await add(quiet!, '61 minutes');
  for (let pack = PACKS_OF_RUN; pack < RULE.factor - 1; pack += 1) await add(busy!, '10 minutes');
  for (let pack = 0; pack < 2; pack += 1) await add(null, '61 minutes');
  expect(new Set(await mergeable())).toEqual(
    new Set([
      [quiet, false],
      [null, false],
    ]),
  );
  await add(busy!, '0 minutes');
  expect(await mergeable()).toContainEqual([busy, true]);

  await clearMergeDue(client as never, RULE, 1_000);
  expect(await due()).toEqual([busy]);
  // Damaged packs stay due: the next start of the process tries them again.
  const { rows: damaged } = await client.query('SELECT id::text FROM transcript_packs WHERE run_seq = $1 AND merge_due LIMIT 1', [busy]);
  await client.query(`UPDATE transcript_packs SET created_at = now() - interval '61 minutes' WHERE run_seq = $1`, [busy]);
  await clearMergeDue(client as never, { ...RULE, without: [damaged[0].id] }, 1_000);
  expect(await due()).toEqual([busy]);
  await clearMergeDue(client as never, RULE, 1_000);
  expect(await due()).toEqual([]);
});
