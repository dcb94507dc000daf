import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import path from 'node:path';
import { buffer } from 'node:stream/consumers';
import { gunzipSync } from 'node:zlib';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { FileBlobStore, UrlSigner } from '@palestra/blobs';
import { freePort } from '@palestra/hosting';
import { type Palestra, startPalestra } from '../../support/palestra.ts';
import { runtimeRole } from '../../support/runtime-role.ts';

const root = path.resolve(import.meta.dirname, '../../..');
const ROLLOUTS = 1_000;
const MESSAGES = 6;
/** One object has rollouts of one run: many runs are many steps at which a kill can come. */
const RUNS = 40;
const KILLS = 2;

let api: Palestra;
let client: pg.Client;
beforeAll(async () => {
  api = await startPalestra({ env: { PALESTRA_JOBS: 'off' } });
  client = new pg.Client({ connectionString: api.databaseUrl! });
  await client.connect();
});
afterAll(async () => {
  await client.end();
  await api.stop();
});

const query = async (sql: string, values: unknown[] = []) => (await client.query(sql, values)).rows;
const sealedNow = async (): Promise<number> => (await query('SELECT count(*)::int AS n FROM rollout_transcripts'))[0].n;
/** Every pack takes this time to be stored until the returned function is called, so that a kill comes before the last one on a busy machine too. */
async function slowPacks(seconds = 0.2): Promise<() => Promise<unknown>> {
  await query(`CREATE FUNCTION take_time() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(${seconds}); RETURN NEW; END $$`);
  await query('CREATE TRIGGER slow BEFORE INSERT ON transcript_packs FOR EACH ROW EXECUTE FUNCTION take_time()');
  return () => query('DROP FUNCTION take_time CASCADE');
}

interface Worker {
  child: ChildProcess;
  url: string;
  output(): string;
}

async function startWorker(env: Record<string, string> = {}): Promise<Worker> {
  const port = await freePort();
  const child = spawn(process.execPath, [path.join(root, 'apps/worker/dist/main.js')], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      ...process.env,
      NODE_OPTIONS: '',
      // Without a role that may migrate: the API has.
      DATABASE_URL: runtimeRole(api.databaseUrl!).runtime,
      DATABASE_POOL_SIZE: '6',
      PALESTRA_DATA_DIR: api.dataDir,
      PALESTRA_WORKER_PORT: String(port),
      PALESTRA_SEAL_FINISHED_S: '0',
      PALESTRA_SEAL_SILENT_S: '0',
      ...env,
    },
  });
  let output = '';
  const collect = (data: Buffer) => (output += data.toString());
  child.stdout.on('data', collect);
  child.stderr.on('data', collect);
  return { child, url: `http://127.0.0.1:${port}`, output: () => output };
}

async function end({ child }: Worker, signal: NodeJS.Signals): Promise<number | null> {
  if (child.exitCode === null && child.signalCode === null) {
    const ended = once(child, 'exit');
    child.kill(signal);
    await ended;
  }
  return child.exitCode;
}

/** Acknowledged: event ids by rollout. */
async function upload(): Promise<Map<string, string[]>> {
  const acknowledged = new Map<string, string[]>();
  const ids = Array.from({ length: ROLLOUTS }, () => randomUUID());
  for (let at = 0; at < ROLLOUTS; at += 50) {
    const events = ids.slice(at, at + 50).flatMap((id, n) => {
      const messages = Array.from({ length: MESSAGES }, (_, index) => ({
        eventType: 'message',
        eventId: randomUUID(),
        rolloutEventId: id,
        index,
        type: 'assistant_message',
        content: `message ${index} of ${id} `.repeat(20),
        isFinished: index === MESSAGES - 1,
      }));
      acknowledged.set(
        id,
        messages.map(({ eventId }) => eventId),
      );
      return [
        { eventType: 'rollout', eventId: id, runName: `killed ${n % RUNS}`, rolloutName: 'r', environment: 'acme/math' },
        ...messages,
      ];
    });
    const answer = await fetch(`${api.url}/v1/rollouts`, {
      method: 'POST',
      headers: { 'x-api-key': api.apiKey, 'content-type': 'application/json' },
      body: JSON.stringify({ events }),
    });
    expect(answer.status).toBe(200);
  }
  return acknowledged;
}

describe('a worker', () => {
  it('does not start without the database or the objects of an API', { timeout: 180_000 }, async () => {
    const homeless = await startWorker({ DATABASE_URL: '' });
    await once(homeless.child, 'close');
    expect(homeless.child.exitCode).toBe(1);
    expect(homeless.output()).toContain('palestra worker: DATABASE_URL: set it to the database of the API');
    const blind = await startWorker({ PALESTRA_DATA_DIR: '/nonexistent' });
    await once(blind.child, 'close');
    expect(blind.child.exitCode).toBe(1);
    expect(blind.output()).toContain('palestra worker: PALESTRA_DATA_DIR: /nonexistent is not the data directory of an API');
  });

  it('that is killed during sealing loses and duplicates nothing', { timeout: 420_000 }, async () => {
    const acknowledged = await upload();
    const fast = await slowPacks();
    for (let kill = 0; kill < KILLS; kill += 1) {
      const before = await sealedNow();
      const worker = await startWorker();
      // As soon as anything more is sealed: objects are in work in all their stages.
      await expect.poll(sealedNow, { timeout: 120_000, interval: 3 }).toBeGreaterThan(before);
      await end(worker, 'SIGKILL');
      expect(await sealedNow(), 'the kill came too late to prove anything').toBeLessThan(ROLLOUTS);
    }
    await fast();
    const worker = await startWorker();
    await expect.poll(sealedNow, { timeout: 120_000, interval: 200 }).toBe(ROLLOUTS);
    expect(await (await fetch(`${worker.url}/health`)).json()).toEqual({ status: 'ok' });
    await expect
      .poll(async () => (await fetch(`${worker.url}/metrics`)).text())
      .toMatch(/palestra_jobs_total\{job="seal",outcome="done"\} [1-9]/);
    expect(await (await fetch(`${worker.url}/metrics`)).text()).toMatch(/palestra_seals_total\{outcome="sealed"\} \d+/);
    expect(await end(worker, 'SIGTERM'), worker.output()).toBe(0);

    expect(await query('SELECT count(*)::int AS n FROM rollout_messages')).toEqual([{ n: 0 }]);
    expect(await query('SELECT sum(messages)::int AS n FROM rollout_transcripts')).toEqual([{ n: ROLLOUTS * MESSAGES }]);
    expect(await messagesOfRollouts()).toEqual(acknowledged);
    await everyObjectIsKnown();
  });

  it(
    'that is killed while it merges packs and removes erased bytes loses nothing and keeps nothing erased',
    { timeout: 300_000 },
    async () => {
      const kept = await messagesOfRollouts();
      const erased = [...kept.keys()].filter((_id, at) => at % 7 === 0);
      for (const id of erased) {
        const answer = await fetch(`${api.url}/v1/rollouts/${id}`, { method: 'DELETE', headers: { 'x-api-key': api.apiKey } });
        expect(answer.status).toBe(200);
        kept.delete(id);
      }
      // As if an hour had passed, and as if all were of a few runs, whose packs are merged.
      await query(
        `UPDATE transcript_packs SET run_seq = run_seq % 4, created_at = created_at - interval '2 hours', dirty_since = dirty_since - interval '1 hour'`,
      );
      const packs = async () =>
        (await query('SELECT count(*)::int AS n, count(dirty_since)::int AS dirty FROM transcript_packs'))[0] as {
          n: number;
          dirty: number;
        };
      const before = await packs();
      expect(before.dirty).toBeGreaterThan(10);
      const fast = await slowPacks();
      for (let kill = 1; kill <= KILLS; kill += 1) {
        const { dirty } = await packs();
        const worker = await startWorker();
        await expect.poll(async () => (await packs()).dirty, { timeout: 120_000, interval: 3 }).toBeLessThan(dirty);
        await end(worker, 'SIGKILL');
        expect((await packs()).n, 'the kill came too late to prove anything').toBeGreaterThan(4);
      }
      await fast();
      const worker = await startWorker();
      await expect.poll(packs, { timeout: 120_000, interval: 200 }).toEqual({ n: 4, dirty: 0 });
      expect(await end(worker, 'SIGTERM'), worker.output()).toBe(0);

      expect(await messagesOfRollouts()).toEqual(kept);
      await everyObjectIsKnown();
      const known = (await query('SELECT blob_key FROM transcript_packs')).map((row) => row.blob_key);
      const texts = await Promise.all(known.map(async (key) => gunzipSync(await buffer((await blobs().get(key)).body)).toString()));
      const lines = texts.flatMap((text) => text.trimEnd().split('\n'));
      expect(new Set(lines.map((line) => JSON.parse(line).rollout_id))).toEqual(new Set(kept.keys()));
      expect(lines).toHaveLength(kept.size * MESSAGES);
    },
  );
});

const blobs = () => new FileBlobStore(path.join(api.dataDir, 'blobs'), new UrlSigner(Buffer.from('x'), () => '', Date.now));

/** Event ids by rollout, as the API answers them. */
async function messagesOfRollouts(): Promise<Map<string, string[]>> {
  const ids = (await query('SELECT id FROM rollout_heads ORDER BY seq')).map((row) => row.id as string);
  const found = new Map<string, string[]>();
  const read = async () => {
    for (let id = ids.pop(); id !== undefined; id = ids.pop()) {
      const answer = await fetch(`${api.url}/v1/rollouts/${id}`, { headers: { 'x-api-key': api.apiKey } });
      const { messages } = (await answer.json()) as { messages: { eventId: string }[] };
      found.set(
        id,
        messages.map(({ eventId }) => eventId),
      );
    }
  };
  await Promise.all(Array.from({ length: 8 }, read));
  return found;
}

/** Every object is pointed at, or known as garbage that the next sweep takes. */
async function everyObjectIsKnown(): Promise<void> {
  const known = new Set(
    (await query('SELECT blob_key FROM transcript_packs UNION SELECT blob_key FROM rollout_garbage')).map((row) => row.blob_key),
  );
  const unknown: string[] = [];
  let pageToken: string | null = '';
  while (pageToken !== null) {
    const page = await blobs().list({ prefix: 'orgs/', ...(pageToken && { pageToken }) });
    unknown.push(...page.blobs.map(({ key }) => key).filter((key) => !known.has(key)));
    pageToken = page.nextPageToken;
  }
  expect(unknown).toEqual([]);
}
