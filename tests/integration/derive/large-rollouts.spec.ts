import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startServer, type TestServer } from '../../support/server.ts';
import { spawnWorker } from '../../support/worker.ts';

/** Rollouts that fill a batch or the memory of a worker by themselves, in one lane with small ones. */

const MB = 1024 * 1024;
/** A worker without work takes some 155 MB. */
const MOST_MEMORY = 1_000 * MB;
let server: TestServer;
/** Without the time limit of the service's statements: half a million rows take long on a busy machine. */
let client: pg.Client;
beforeAll(async () => {
  server = await startServer({ jobs: 'off' });
  client = new pg.Client({ connectionString: server.config.databaseUrl! });
  await client.connect();
});
afterAll(async () => {
  await client.end();
  await server.close();
});

const sql = async (text: string, ...values: unknown[]) => (await client.query(text, values)).rows;

/** Uploads rollouts without messages, and gives each of them so many messages of so many bytes. Returns their `seq`. */
async function upload(runName: string, rollouts: number, messages: number, bytes: number): Promise<string[]> {
  const ids = Array.from({ length: rollouts }, () => randomUUID());
  const events = ids.map((eventId) => ({
    eventType: 'rollout',
    eventId,
    timestamp: 1,
    runName,
    environment: 'a/b',
    split: 'train',
    step: 1,
    metadata: {},
  }));
  expect(await server.request('POST', '/v1/rollouts', { body: { events } })).toMatchObject({ status: 200 });
  await sql(
    `INSERT INTO rollout_messages (day, rollout_seq, event_id, index, bytes, is_finished, type, name, call_id, sent_at, content)
     SELECT day, seq, gen_random_uuid(), n, $3, n = $2::int - 1, CASE n % 2 WHEN 0 THEN 'tool_call' ELSE 'tool_result' END, 'bash', 'c' || n / 2, n, left(repeat('word' || n || ' ', 1 + $3 / 5), $3::int)
     FROM rollout_heads, generate_series(0, $2::int - 1) n WHERE id = ANY($1::uuid[])`,
    ids,
    messages,
    bytes,
  );
  const heads = await sql(
    `UPDATE rollout_heads SET messages = $2::int, calls = $2::int / 2, max_index = $2::int - 1, bytes = $2::bigint * $3::bigint, finished = true, revision = revision + 1, dirty = true, unsearched = $2::int < 100000
     WHERE id = ANY($1::uuid[]) RETURNING seq::text`,
    ids,
    messages,
    bytes,
  );
  return heads.map(({ seq }) => seq);
}

test('are derived in bounded memory, or left out, and do not hold up the others', { timeout: 600_000 }, async () => {
  const [vast] = await upload('vast', 1, 500_001, 10);
  const large = await upload('large', 1, 2_500, 16_000);
  const [many] = await upload('many', 1, 400_000, 10);
  const small = await upload('large', 400, 3, 100);
  const worker = await spawnWorker(server.config.databaseUrl!, server.config.dataDir);
  const left = async (mark: string) => (await sql(`SELECT seq::text FROM rollout_heads WHERE ${mark} ORDER BY seq`)).map(({ seq }) => seq);
  const within = { timeout: 240_000, interval: 200 };
  await expect.poll(() => left('dirty'), within).toEqual([vast]);
  await expect.poll(() => left('unsearched'), within).toEqual([]);
  await expect.poll(() => left('unverified AND NOT dirty'), within).toEqual([]);
  const rows = await sql('SELECT r.seq::text, messages, calls FROM rollouts r ORDER BY r.seq');
  expect(rows).toEqual([
    ...large.map((seq) => ({ seq, messages: 2_500, calls: 1_250 })),
    { seq: many, messages: 400_000, calls: 200_000 },
    ...small.map((seq) => ({ seq, messages: 3, calls: 2 })),
  ]);
  expect(worker.exitCode).toBeNull();
  const status = await readFile(`/proc/${worker.pid}/status`, 'utf8');
  const peak = Number(/^VmHWM:\s+(?<kb>\d+) kB$/m.exec(status)!.groups!['kb']) * 1024;
  expect(peak).toBeLessThan(MOST_MEMORY);
});
