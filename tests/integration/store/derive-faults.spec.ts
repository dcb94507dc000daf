import { buffer } from 'node:stream/consumers';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { BlobError, type BlobStore } from '@palestra/blobs';
import { createLogger } from '../../../apps/api/src/platform/telemetry/logger.ts';
import { Metrics } from '../../../apps/api/src/platform/telemetry/metrics.ts';
import { holdLanes, releaseLanes } from '../../support/lanes.ts';
import { DeriveService } from '../../../apps/api/src/store/derive/derive.service.ts';
import { RollupService } from '../../../apps/api/src/store/figures/rollup.service.ts';
import { Quarantine } from '../../../apps/api/src/store/quarantine.ts';
import type { RunActivity } from '../../../apps/api/src/store/run-activity.service.ts';
import { startStore, type StoreWorld } from './sealing.world.ts';

/** One rollout, step or run that cannot be derived: everything else is, as if it were not there. */
let world: StoreWorld;
beforeEach(async () => {
  world = await startStore('files');
});
afterEach(async () => {
  vi.useRealTimers();
  await world.server.close();
});

const sql = async (text: string, ...values: unknown[]) => (await world.server.database.pool.query(text, values)).rows;
const eventually = (check: () => Promise<void>) => vi.waitFor(check, { timeout: 30_000, interval: 100 });
const list = (run: string) => world.server.request('GET', `/v1/runs/${run}/rollouts`);

async function scored(run: string, more: object = {}): Promise<string> {
  const id = await world.upload(2, { runName: run, ...more });
  await world.post([world.message(id, 2, { reward: 1, isFinished: true, type: 'tool_result' })]);
  return id;
}

const turnsOf = async (ids: readonly string[]) => {
  const turns = new Map((await sql('SELECT id, turns FROM rollouts')).map((row) => [row.id, row.turns]));
  return ids.map((id) => turns.get(id));
};

/** Seals this rollout alone, deletes its object, and seals the others. */
async function sealedWithout(lost: string): Promise<{ restore(): Promise<void> }> {
  await world.settled();
  await sql('UPDATE rollout_heads SET unsealed = (id = $1)', lost);
  expect(await world.seal()).toMatchObject({ sealed: 1, failed: 0, away: false });
  await sql('UPDATE rollout_heads SET unsealed = true WHERE id <> $1 AND sealed_at IS NULL', lost);
  expect(await world.seal()).toMatchObject({ failed: 0, away: false });
  const key = (await world.packOf(lost))!;
  const { body, contentType } = await world.blobs.get(key);
  const bytes = await buffer(body);
  await world.blobs.delete(key);
  return { restore: async () => void (await world.blobs.put(key, bytes, { contentType })) };
}

/** In the mind of the service it is later: what was set aside is tried again. */
function wait(): void {
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 11 * 60_000 });
}

test('a rollout with a lost transcript keeps its row, and others are derived', async () => {
  const ids = [await scored('lost'), await scored('lost'), await scored('lost')];
  const { restore } = await sealedWithout(ids[1]!);
  await sql('UPDATE rollouts SET turns = 77');
  // All of the run is made again from its messages.
  expect((await world.server.request('PATCH', '/v1/runs/lost', { body: { settings: { nameRegex: '^(?<task>.*)$' } } })).status).toBe(200);
  const other = await scored('other');
  await eventually(async () => expect(await turnsOf([...ids, other])).toEqual([1, 77, 1, 1]));
  expect((await list('lost')).body.rollouts).toHaveLength(3);
  expect((await list('other')).body.rollouts).toHaveLength(1);
  expect((await world.server.request('GET', '/metrics')).body).toContain('palestra_derive_set_aside{kind="rollout"} 1');

  await restore();
  wait();
  await eventually(async () => expect(await turnsOf(ids)).toEqual([1, 1, 1]));
});

test('a row that PostgreSQL refuses is skipped, and others are written', async () => {
  await sql('ALTER TABLE rollouts ADD CONSTRAINT odd CHECK (task_index <> 13)');
  const ids: string[] = [];
  for (let task = 8; task < 18; task += 1) ids.push(await scored('odd', { rollout_info: { task_index: task }, step: 0 }));
  await eventually(async () => expect(await turnsOf(ids)).toEqual(ids.map((_, at) => (at === 5 ? undefined : 1))));
  expect((await list('odd')).body.rollouts).toHaveLength(9);

  await sql('ALTER TABLE rollouts DROP CONSTRAINT odd');
  wait();
  await eventually(async () => expect(await turnsOf(ids)).toEqual(ids.map(() => 1)));
  expect((await list('odd')).body.rollouts).toHaveLength(10);
});

test('a run whose samples cannot be inferred is readable, and other runs are inferred', async () => {
  const wave = (run: string) => Promise.all([0, 0, 1, 1].map((task) => scored(run, { rollout_info: { task_index: task } })));
  const samplesOf = async (ids: readonly string[]) =>
    (await sql('SELECT sample_idx FROM rollouts WHERE id = ANY($1) ORDER BY 1', ids)).map((row) => row.sample_idx);
  const inferred = [0, 0, 1, 1];
  const odd = await wave('odd');
  const other = await wave('other');
  await world.settled();
  const [{ run_seq: runSeq }] = await sql('SELECT run_seq FROM rollouts WHERE id = $1', odd[0]);
  await sql(`ALTER TABLE rollouts ADD CONSTRAINT odd CHECK (run_seq <> ${runSeq} OR sample_idx IS NULL)`);
  const settings = { n: 2 };
  for (const run of ['odd', 'other'])
    expect((await world.server.request('PATCH', `/v1/runs/${run}`, { body: { settings } })).status).toBe(200);
  await eventually(async () => expect(await samplesOf(other)).toEqual(inferred));
  expect((await list('odd')).status).toBe(200);
  expect(await samplesOf(odd)).toEqual([null, null, null, null]);

  await sql('ALTER TABLE rollouts DROP CONSTRAINT odd');
  wait();
  await eventually(async () => expect(await samplesOf(odd)).toEqual(inferred));
});

test('a run whose inference ends because PostgreSQL restarts is inferred later', async () => {
  const id = await scored('restarted', { rollout_info: { task_index: 0 } });
  await world.settled();
  const { pool } = world.server.database;
  const held = await pool.connect();
  try {
    await holdLanes(held);
    const [{ run_seq: runSeq }] = await sql('SELECT run_seq FROM rollouts WHERE id = $1', id);
    await sql('UPDATE runs SET inference_due = true WHERE seq = $1', runSeq);
    const starting = () => Promise.reject(Object.assign(new Error('the database system is starting up'), { code: '57P03' }));
    const failing = <T extends object>(target: T, isFailing: (text: string) => boolean, more: Record<string, unknown> = {}): T =>
      new Proxy(target, {
        get: (_target, name: string) => {
          if (name in more) return more[name];
          const value = (target as any)[name];
          if (typeof value !== 'function') return value;
          return (...args: any[]) => (name === 'query' && isFailing(String(args[0])) ? starting() : value.apply(target, args));
        },
      });
    let refused = 0;
    const connect = async () => failing(await pool.connect(), (text) => text.includes('json_agg(json_build_array('));
    const away = failing(pool, (text) => text.startsWith('UPDATE runs SET inference_due = true') && (refused += 1) <= 2, { connect });
    const quarantine = new Quarantine(new Metrics(), createLogger('silent'));
    const derive = new DeriveService({ pool: away } as never, {} as never, quarantine, {} as never, world.server.config);
    await expect(derive.infer(runSeq)).rejects.toThrow('starting up');
    expect(refused).toBe(3);
    expect(await sql('SELECT inference_due FROM runs WHERE seq = $1', runSeq)).toEqual([{ inference_due: true }]);
  } finally {
    await releaseLanes(held);
    held.release();
  }
});

test('a rollout that cannot be compared with the ledger does not block others', async () => {
  const ids = [await scored('lost'), await scored('lost')];
  await sealedWithout(ids[0]!);
  await sql('UPDATE rollout_heads SET unverified = true, verify_at = now()');
  await eventually(async () => {
    const heads = await sql('SELECT id, unverified, verify_at > now() AS later FROM rollout_heads');
    expect(heads.toSorted((a, b) => ids.indexOf(a.id) - ids.indexOf(b.id))).toEqual([
      { id: ids[0], unverified: true, later: true },
      { id: ids[1], unverified: false, later: false },
    ]);
  });
});

test('while the object store is unavailable, rollouts that need it wait, and others do not', async () => {
  const sealed = await scored('sealed');
  expect(await world.seal()).toMatchObject({ sealed: 1 });
  const { database, config } = world.server;
  const held = await database.pool.connect();
  try {
    await holdLanes(held);
    let away = true;
    let asked = 0;
    const store = new Proxy(world.blobs, {
      get: (blobs, name: keyof BlobStore) => {
        if (away) return () => Promise.reject(new BlobError('unavailable', `the object store is away: ${(asked += 1)}`));
        return (blobs[name] as (...args: unknown[]) => unknown).bind(blobs);
      },
    });
    const quarantine = new Quarantine(new Metrics(), createLogger('silent'));
    const rollups = new RollupService(database, { rolled: () => {} } as unknown as RunActivity, quarantine);
    const derive = new DeriveService(database, rollups, quarantine, world.services(store).reader, config);
    await sql('UPDATE rollout_heads SET dirty = true, revision = revision + 1');
    await sql('UPDATE rollouts SET turns = 77');
    const live = await scored('live');
    await derive.round();
    await derive.round();
    expect(await turnsOf([sealed, live])).toEqual([77, 1]);
    expect(asked).toBe(1);
    expect(quarantine.members('rollout')).toEqual([]);

    away = false;
    wait();
    await derive.round();
    expect(await turnsOf([sealed, live])).toEqual([1, 1]);
  } finally {
    await releaseLanes(held);
    held.release();
  }
});
