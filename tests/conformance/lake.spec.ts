import path from 'node:path';
import { CreateBucketCommand, S3Client } from '@aws-sdk/client-s3';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { GROUPS, type Sample, upload, uploadOf } from '../support/exported-rollouts.ts';
import { type Palestra, startPalestra } from '../support/palestra.ts';
import { runScript } from './support/python.ts';

/** A whole organisation read from a real S3 server by DuckDB and pyarrow, while neither Palestra nor anything that knows PostgreSQL runs. */
const endpoint = process.env['PALESTRA_TEST_S3_ENDPOINT'] ?? '';
const accessKeyId = process.env['PALESTRA_TEST_S3_ACCESS_KEY'] ?? '';
const secretAccessKey = process.env['PALESTRA_TEST_S3_SECRET_KEY'] ?? '';
const bucket = `lake-${Date.now()}`;
const document = path.resolve(import.meta.dirname, '../../docs/lake.md');
const RUNS = ['lake one', 'Lake/twö "2"'];

let palestra: Palestra;
let database: pg.Client;
const samples: Sample[] = [];

beforeAll(async () => {
  // A proof that could not run is a failure, never a skip.
  if (endpoint === '') throw new Error('PALESTRA_TEST_S3_ENDPOINT must name an S3 server');
  const s3 = new S3Client({ endpoint, region: 'us-east-1', forcePathStyle: true, credentials: { accessKeyId, secretAccessKey } });
  await s3.send(new CreateBucketCommand({ Bucket: bucket }));
  palestra = await startPalestra({
    env: {
      S3_ENDPOINT: endpoint,
      S3_BUCKET: bucket,
      S3_REGION: 'us-east-1',
      S3_ACCESS_KEY_ID: accessKeyId,
      S3_SECRET_ACCESS_KEY: secretAccessKey,
      PALESTRA_SEAL_FINISHED_S: '0',
    },
  });
  database = new pg.Client({ connectionString: palestra.databaseUrl! });
  await database.connect();
  for (const run of RUNS) {
    const made = uploadOf(run);
    samples.push(...made.samples);
    await upload(async (events) => {
      const headers = { 'x-api-key': palestra.apiKey, 'content-type': 'application/json' };
      const answer = await fetch(`${palestra.url}/v1/rollouts`, { method: 'POST', headers, body: JSON.stringify({ events }) });
      return { status: answer.status, body: await answer.json() };
    }, made.events);
  }
}, 180_000);
afterAll(async () => {
  await database?.end();
  await palestra?.stop();
});

const count = async (sql: string) => Number((await database.query(sql)).rows[0].n);
async function until(what: string, reached: () => Promise<boolean>): Promise<void> {
  const deadline = Date.now() + 100_000;
  while (!(await reached())) {
    if (Date.now() > deadline) throw new Error(`${what} did not happen; ${JSON.stringify(await stateOfLake())}\n${palestra.output()}`);
    await new Promise((resolve) => setTimeout(resolve, 250));
  }
}
async function stateOfLake(): Promise<unknown> {
  const all = async (sql: string) => (await database.query(sql)).rows;
  return {
    parts: await all('SELECT run_seq, step, part, rows FROM lake_parts ORDER BY 1, 2, 3'),
    looks: await all('SELECT l.*, r.version AS now FROM lake_runs l LEFT JOIN runs r ON r.seq = l.run_seq'),
    sealed: await all('SELECT run_seq, count(*) FROM rollout_heads WHERE NOT unsealed GROUP BY 1'),
  };
}
const inLake = (rows: number) =>
  until(`${rows} rows in the lake`, async () => (await count('SELECT COALESCE(sum(rows), 0) AS n FROM lake_parts')) === rows);
const read = () =>
  runScript('v167', 'read_lake.py', [new URL(endpoint).host, bucket, accessKeyId, secretAccessKey, document], {}) as Promise<any>;

describe('the lake', () => {
  test('is written by itself, and the worked queries of docs/lake.md answer from S3 alone', async () => {
    await inLake(40);
    await palestra.terminate();
    const { answers, types, everything, files, arrow } = await read();
    const [, , means, groups, one, , calls] = answers;
    expect(everything).toHaveLength(40);
    expect(everything.map(([id, org, run, step, reward]: unknown[]) => [id, org, run, step, reward])).toEqual(
      samples.toSorted((a, b) => (a.id < b.id ? -1 : 1)).map(({ id, run, step, reward }) => [id, palestra.namespace, run, step, reward]),
    );
    expect(files).toBe(4);
    expect(types).toMatchObject({
      org: 'VARCHAR',
      run: 'VARCHAR',
      step: 'INTEGER',
      reward: 'DOUBLE',
      transcript_key: 'VARCHAR',
      step_prov: 'VARCHAR',
    });
    expect(means.columns).toEqual(['run_name', 'step', 'step_prov', 'received', 'scored', 'mean_reward']);
    const first = GROUPS.slice(0, 4).flatMap(({ rewards }) => rewards.filter((reward) => reward !== null));
    expect(means.rows).toEqual(
      RUNS.toSorted().flatMap((run) => [
        [run, 1, 'reported', 16, first.length, first.reduce((a, b) => a + b, 0) / first.length],
        [run, 2, 'reported', 4, 3, 0.75],
      ]),
    );
    expect(groups.rows.map(([run, step, task, n, best]: unknown[]) => [run, step, task, n, best])).toEqual(
      RUNS.toSorted().flatMap((run) => [
        [run, 1, 0, 4, 1],
        [run, 2, 4, 3, 3],
      ]),
    );
    expect(groups.rows[0][5]).toBeCloseTo(0.5 / (0.577350269 + 1e-6), 6);
    expect(one.rows).toEqual([[4]]);
    // The two rollouts with reward 3 are sample 3 of each run, and one of reward 1.
    expect(calls.rows.reduce((sum: number, [, , n]: number[]) => sum + n!, 0)).toBe(3);
    expect(calls.rows.map(([tool]: string[]) => tool)).toContain('accuse');
    expect(arrow).toMatchObject({ rows: 40, codec: 'ZSTD' });
    expect(arrow.schema).toMatchObject({ step: 'int32', reward: 'double' });
  });

  test('forgets what is erased: a rollout from its file, a run with its files', async () => {
    await palestra.restart();
    const headers = { 'x-api-key': palestra.apiKey };
    const { runs } = (await (await fetch(`${palestra.url}/v1/runs`, { headers })).json()) as { runs: { id: string; name: string }[] };
    const other = runs.find(({ name }) => name === RUNS[1])!;
    const [gone] = samples.filter(({ run }) => run === RUNS[0]);
    expect((await fetch(`${palestra.url}/v1/rollouts/${gone!.id}`, { method: 'DELETE', headers })).status).toBe(200);
    expect((await fetch(`${palestra.url}/v1/runs/${other.id}`, { method: 'DELETE', headers })).status).toBe(200);
    await inLake(19);
    const { everything, files } = await read();
    expect(everything.map(([id]: string[]) => id)).toEqual(
      samples
        .filter(({ id, run }) => run === RUNS[0] && id !== gone!.id)
        .map(({ id }) => id)
        .toSorted(),
    );
    expect(files).toBe(2);
  });
});
