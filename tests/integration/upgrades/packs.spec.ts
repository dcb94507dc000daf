import { randomUUID } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import path from 'node:path';
import type pg from 'pg';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { applyMigrations } from '../../../apps/api/src/platform/database/migrations.ts';
import type { TestServer } from '../../support/server.ts';
import { type OldRollout, type OldStore, onPostgres, restoreStore, type UpgradedStore, upgradeStore } from './old-store.world.ts';

/**
 * A store of the last version that kept an object per sealed transcript (migration 0030): its rows, its objects, and what it answered for each
 * rollout. That version wrote it, from uploads over its API. Sealed: short-0 to short-7, other-0, other-1, long. `grown` was sealed and got a
 * message since; `live` is not sealed. One rollout of `other` was erased. Two messages wait for the start event of `headless`.
 */
let old: OldStore;
const LAST_MIGRATION = '0030_ledger_tasks';
const MIGRATIONS = path.resolve(import.meta.dirname, '../../../apps/api/prisma/migrations');
const perRollout = /\/transcript-[^/]*\.jsonl\.gz\.blob$/;
vi.setConfig({ testTimeout: 120_000 });

let folder: string;
let store: UpgradedStore<OldStore>;
let server: TestServer;

/** Their runs are quiet, whatever the clock says, so that all of their transcripts move. */
async function quieten(client: pg.Client): Promise<void> {
  for (const table of ['rollout_heads', 'rollout_transcripts'])
    await client.query(`UPDATE ${table} SET sealed_at = sealed_at - interval '1 day' WHERE sealed_at IS NOT NULL`);
}

beforeAll(async () => {
  store = await upgradeStore({ fixture: 'store-0030.json', lastMigration: LAST_MIGRATION, change: quieten });
  ({ old, server, folder } = store);
}, 120_000);
afterAll(() => store?.close());

const get = async (address: string): Promise<any> => {
  const { status, body } = await server.request('GET', address);
  if (status !== 200) throw new Error(`GET ${address}: ${status} ${JSON.stringify(body)}`);
  return body;
};
const post = (events: object[]) => server.request('POST', '/v1/rollouts', { body: { events } });
const viewOf = ({ id, reward, messages }: OldRollout): OldRollout => ({
  id,
  reward,
  messages: messages.map(({ index, type, content }) => ({ index, type, content })),
});
const readAll = async (): Promise<Record<string, OldRollout>> =>
  Object.fromEntries(
    await Promise.all(Object.entries(old.rollouts).map(async ([name, { id }]) => [name, viewOf(await get(`/v1/rollouts/${id}`))])),
  );
const found = async (scope: string, query: string): Promise<string[]> => {
  const { hits } = (await get(`${scope}?${query}&limit=100`)) as { hits: { rollout: string; index: number }[] };
  return hits.map(({ rollout, index }) => `${rollout} ${index}`).toSorted();
};
const needle = () => [`${old.rollouts['long']!.id} 237`];

/** What must hold before, while and after transcripts move. */
async function expectEverything(): Promise<void> {
  expect(await readAll()).toEqual(old.rollouts);
  expect(await get('/v1/runs/upgraded')).toMatchObject({ num_rollouts: 11, num_scored: 10, num_finished: 10, last_step: 1 });
  expect(await get('/v1/runs/other')).toMatchObject({ num_rollouts: 2, num_scored: 2 });
  const { id, messages } = old.rollouts['long']!;
  const page = await get(`/v1/rollouts/${id}/messages?from=195&limit=10`);
  expect(page.messages.map(({ content }: { content: string }) => content)).toEqual(messages.slice(195, 205).map(({ content }) => content));
  expect(await found('/v1/runs/upgraded/search', 'q=needle')).toEqual(needle());
  expect(await found('/v1/search', 'q=late%20words')).toEqual([`${old.rollouts['grown']!.id} 3`]);
  expect(await found('/v1/runs/upgraded/search', 'mode=regex&q=needle-[0-9]{3}')).toEqual(needle());
  expect((await get(`/v1/annotations?rollout=${old.rollouts['short-1']!.id}`)).annotations).toMatchObject([{ tag: 'kept' }]);
}

/** Names of objects of the old layout. */
const perRolloutObjects = async (): Promise<string[]> =>
  (await readdir(path.join(folder, 'blobs'), { recursive: true })).filter((name) => perRollout.test(name));

test('everything is readable and searchable as before, while transcripts move', async () => {
  await expectEverything();
});

test('transcripts move into packs, and the objects of the old layout are deleted', async () => {
  // `grown` is sealed again meanwhile: its replaced object is deleted within minutes, and a run with a new pack keeps a single large one.
  const later = ['grown', 'long'].map((name) => `/${old.rollouts[name]!.id}/`);
  const remaining = async () => (await perRolloutObjects()).filter((name) => !later.some((id) => name.includes(id)));
  await vi.waitUntil(async () => (await remaining()).length === 0, { timeout: 110_000, interval: 200 });
  await expectEverything();
});

test('an export has every rollout with its messages', async () => {
  const { body } = await server.request('POST', '/v1/exports', { body: { run: 'upgraded', format: 'jsonl' } });
  await vi.waitUntil(async () => (await get(`/v1/exports/${body.id}`)).state === 'complete', { timeout: 60_000, interval: 100 });
  const { files } = (await get(`/v1/exports/${body.id}`)) as { files: { name: string; url: string }[] };
  const { url } = files.find(({ name }) => name.endsWith('.jsonl'))!;
  const lines = (await (await fetch(new URL(url, server.url))).text()).trim().split('\n');
  const rows = lines.map((line) => JSON.parse(line) as { rollout_id: string; messages: { content: string }[] });
  const texts = (messages: { content: string }[]) => messages.map(({ content }) => content);
  const expected = Object.entries(old.rollouts).filter(([name]) => !name.startsWith('other'));
  expect(Object.fromEntries(rows.map((row) => [row.rollout_id, texts(row.messages)]))).toEqual(
    Object.fromEntries(expected.map(([, { id, messages }]) => [id, texts(messages)])),
  );
});

test('a rollout of the old store still grows, repeats nothing, and can be erased', async () => {
  const { id, messages } = old.rollouts['short-2']!;
  const late = { eventType: 'message', eventId: randomUUID(), rolloutEventId: id, timestamp: 1, index: 3, type: 'user_message' };
  const more = { ...late, content: 'after the upgrade', isFinished: false, metadata: {} };
  expect((await post([more])).body).toMatchObject({ accepted: 1, duplicates: 0 });
  expect((await post([more])).body).toMatchObject({ accepted: 0, duplicates: 1 });
  const texts = async () => (await get(`/v1/rollouts/${id}`)).messages.map(({ content }: { content: string }) => content);
  expect(await texts()).toEqual([...messages.map(({ content }) => content), 'after the upgrade']);

  const other = old.rollouts['other-1']!.id;
  expect((await server.request('DELETE', `/v1/rollouts/${other}`)).status).toBe(200);
  expect((await server.request('GET', `/v1/rollouts/${other}`)).status).toBe(404);
  await vi.waitUntil(async () => (await get('/v1/runs/other')).num_rollouts === 1, { timeout: 60_000, interval: 100 });
});

test('messages that waited for their start event find it', async () => {
  const head = old.tables['rollout_heads']!.map((row) => JSON.parse(row) as { id: string; run_seq: number | null }).find(
    ({ run_seq: run }) => run === null,
  )!;
  const start = {
    eventType: 'rollout',
    eventId: head.id,
    timestamp: 1,
    runName: 'upgraded',
    rolloutName: 'headless',
    environment: 'acme/math',
  };
  expect((await post([start])).body).toMatchObject({ accepted: 1 });
  const { messages } = await get(`/v1/rollouts/${head.id}`);
  expect(messages.map(({ index }: { index: number }) => index)).toEqual([0, 1]);
});

test('a transcript that an older process seals during the upgrade is kept', async () => {
  const database = `sealing_${randomUUID().replaceAll('-', '')}`;
  await onPostgres('postgres', async (client) => void (await client.query(`CREATE DATABASE ${database}`)));
  try {
    await onPostgres(database, (client) => restoreStore(client, old, folder, LAST_MIGRATION));
    await onPostgres(database, async (older) => {
      await older.query('BEGIN');
      const { rows } = await older.query<{ seq: string }>(
        `INSERT INTO rollout_transcripts (rollout_seq, blob_key, chunks, messages, bytes)
         SELECT seq, 'sealed-meanwhile', '[{"first": 0, "last": 0, "count": 1, "at": 0, "bytes": 9}]', 1, 9 FROM rollout_heads h
         WHERE NOT EXISTS (SELECT FROM rollout_transcripts t WHERE t.rollout_seq = h.seq) ORDER BY seq LIMIT 1 RETURNING rollout_seq AS seq`,
      );
      await onPostgres(database, async (upgrade) => {
        const applied = applyMigrations(upgrade, MIGRATIONS);
        // On a connection of its own: a transaction sees the activity of its first look only.
        await onPostgres(database, async (observer) => {
          const waiting = `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`;
          await vi.waitUntil(async () => (await observer.query(waiting)).rowCount === 1, { timeout: 60_000, interval: 50 });
        });
        await older.query('COMMIT');
        await applied;
        const kept = await upgrade.query(
          'SELECT p.blob_key FROM rollout_transcripts t JOIN transcript_packs p ON p.id = t.pack WHERE t.rollout_seq = $1',
          [rows[0]!.seq],
        );
        expect(kept.rows).toEqual([{ blob_key: 'sealed-meanwhile' }]);
      });
    });
  } finally {
    await onPostgres('postgres', async (client) => void (await client.query(`DROP DATABASE IF EXISTS ${database} WITH (FORCE)`)));
  }
});
