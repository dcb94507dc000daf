import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createLogger } from '../../../apps/api/src/platform/telemetry/logger.ts';
import { Metrics } from '../../../apps/api/src/platform/telemetry/metrics.ts';
import { DeriveService } from '../../../apps/api/src/store/derive/derive.service.ts';
import { SearchIndex } from '../../../apps/api/src/store/derive/search/search-index.service.ts';
import { RollupService } from '../../../apps/api/src/store/figures/rollup.service.ts';
import { Quarantine } from '../../../apps/api/src/store/quarantine.ts';
import type { RunActivity } from '../../../apps/api/src/store/run-activity.service.ts';
import { TranscriptObjects } from '../../../apps/api/src/store/storage/transcript-objects.service.ts';
import { TranscriptReader } from '../../../apps/api/src/store/storage/transcript-reader.service.ts';
import { startServer, type TestServer } from '../../support/server.ts';

/** One item whose statement always times out: the others of its batch are done, and it is tried again after growing delays. */

const ROLLOUTS = 24;
const MINUTE_MS = 60_000;
let server: TestServer;
let metrics: Metrics;
let derive: DeriveService;
let rollups: RollupService;
let search: SearchIndex;
let start: number;

beforeEach(async () => {
  server = await startServer({ jobs: 'off' });
  metrics = new Metrics();
  const quarantine = new Quarantine(metrics, createLogger('silent'));
  const objects = new TranscriptObjects({} as never);
  rollups = new RollupService(server.database, { rolled: () => {} } as unknown as RunActivity, quarantine);
  derive = new DeriveService(server.database, rollups, quarantine, new TranscriptReader(server.database, objects), server.config);
  search = new SearchIndex(server.database, objects, quarantine, createLogger('silent'));
  start = Date.now();
});
afterEach(async () => {
  vi.useRealTimers();
  await server.close();
});

const sql = async (text: string, ...values: unknown[]) => (await server.database.pool.query(text, values)).rows;
const numbers = async (text: string) => (await sql(text)).map(({ n }) => Number(n));

/** Uploads rollouts of two messages, each at a different step. Returns the `seq` of one of them. */
async function upload(): Promise<number> {
  const events = Array.from({ length: ROLLOUTS }, (_, step) => {
    const id = randomUUID();
    const message = {
      eventType: 'message',
      rolloutEventId: id,
      timestamp: 2,
      type: 'tool_result',
      callId: 'c',
      isFinished: true,
      metadata: {},
    };
    return [
      {
        eventType: 'rollout',
        eventId: id,
        timestamp: 1,
        runName: 'r',
        environment: 'a/b',
        split: 'train',
        step,
        metadata: {},
      },
      ...[0, 1].map((index) => ({ ...message, eventId: randomUUID(), index, content: `text ${step}` })),
    ];
  }).flat();
  expect(await server.request('POST', '/v1/rollouts', { body: { events } })).toMatchObject({ status: 200 });
  const seqs = await numbers('SELECT seq AS n FROM rollout_heads ORDER BY seq');
  expect(seqs).toHaveLength(ROLLOUTS);
  return seqs[Math.floor(Math.random() * ROLLOUTS)]!;
}

/** Statements that insert such a row into the table fail as after a timeout. A sequence counts them, also those that are rolled back. */
async function poison(table: string, when: string): Promise<{ tries(): Promise<number>; end(): Promise<void> }> {
  await sql('CREATE SEQUENCE IF NOT EXISTS tries MINVALUE 0 START 0');
  await sql("SELECT setval('tries', 0)");
  await sql('GRANT ALL ON SEQUENCE tries TO PUBLIC');
  await sql(`CREATE OR REPLACE FUNCTION time_out() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    PERFORM nextval('tries'); RAISE EXCEPTION 'canceling statement due to statement timeout' USING ERRCODE = '57014'; END $$`);
  await sql(`CREATE TRIGGER poison BEFORE INSERT OR UPDATE ON ${table} FOR EACH ROW WHEN (${when}) EXECUTE FUNCTION time_out()`);
  return {
    tries: async () => (await numbers('SELECT last_value AS n FROM tries'))[0]!,
    end: async () => void (await sql(`DROP TRIGGER poison ON ${table}`)),
  };
}

/** As the loops do: some rounds, also when nothing is left. */
async function rounds(round: () => Promise<boolean>): Promise<void> {
  for (let idle = 0; idle < 3;) idle += (await round()) ? 0 : 1;
}

/** So many minutes after the start of the test, for the service. */
const at = (minutes: number) => vi.useFakeTimers({ toFake: ['Date'], now: start + minutes * MINUTE_MS, shouldAdvanceTime: true });

const setAside = async (kind: string) =>
  Number(new RegExp(`palestra_derive_set_aside\\{kind="${kind}"\\} (\\d+)`).exec(await metrics.registry.metrics())?.[1]);

async function expectSetAside(kind: string, round: () => Promise<boolean>, tries: () => Promise<number>): Promise<void> {
  expect(await setAside(kind)).toBe(1);
  // The delay began with the last failure, however long the round before it took.
  start = Date.now();
  const first = await tries();
  expect(first).toBeGreaterThan(0);
  await rounds(round);
  expect(await tries()).toBe(first);
  // After one minute, then after two more.
  at(1.5);
  await rounds(round);
  const second = await tries();
  expect(second).toBeGreaterThan(first);
  at(2.75);
  await rounds(round);
  expect(await tries()).toBe(second);
  at(6);
  await rounds(round);
  expect(await tries()).toBeGreaterThan(second);
  expect(await setAside(kind)).toBe(1);
  at(20);
}

test('a rollout that cannot be made searchable', async () => {
  const seq = await upload();
  const { tries, end } = await poison('rollout_search', `NEW.rollout_seq = ${seq}`);
  const waiting = () => numbers('SELECT seq AS n FROM rollout_heads WHERE unsearched');
  const round = () => search.round();
  await rounds(round);
  expect(await waiting()).toEqual([seq]);
  expect(await numbers('SELECT DISTINCT rollout_seq AS n FROM rollout_search')).toHaveLength(ROLLOUTS - 1);
  expect(await search.dueLanes(4)).toEqual([]);
  await expectSetAside('search', round, tries);
  await end();
  await rounds(round);
  expect(await waiting()).toEqual([]);
});

test('a block of the search index that cannot be collected', async () => {
  await upload();
  await rounds(() => search.round());
  await sql('UPDATE rollout_search SET block = rollout_seq');
  await sql('INSERT INTO rollout_search_marks SELECT DISTINCT block FROM rollout_search');
  await sql('TRUNCATE rollout_search_blocks');
  const blocks = await numbers('SELECT block AS n FROM rollout_search_marks ORDER BY 1');
  const bad = blocks[Math.floor(Math.random() * ROLLOUTS)]!;
  const { tries, end } = await poison('rollout_search_blocks', `NEW.block = ${bad}`);
  const marks = () => numbers('SELECT block AS n FROM rollout_search_marks');
  const round = () => search.round();
  await rounds(round);
  expect(await marks()).toEqual([bad]);
  expect(await numbers('SELECT DISTINCT block AS n FROM rollout_search_blocks ORDER BY 1')).toEqual(
    blocks.filter((block) => block !== bad),
  );
  await expectSetAside('block', round, tries);
  await end();
  await rounds(round);
  expect(await marks()).toEqual([]);
});

test('a rollout that cannot be derived', { timeout: 120_000 }, async () => {
  const seq = await upload();
  const { tries, end } = await poison('rollouts', `NEW.seq = ${seq}`);
  const waiting = () => numbers('SELECT seq AS n FROM rollout_heads WHERE dirty');
  const round = () => derive.deriveLane({ number: 0, of: 1 });
  await rounds(round);
  expect(await waiting()).toEqual([seq]);
  expect(await numbers('SELECT seq AS n FROM rollouts')).toHaveLength(ROLLOUTS - 1);
  // Readers see that one rollout is missing.
  const { headers } = await server.request('GET', '/v1/runs/r/summary');
  expect(headers.get('x-data-pending')).toBe('1');
  await expectSetAside('rollout', round, tries);
  await end();
  await rounds(round);
  expect(await waiting()).toEqual([]);
});

test('a step whose figures cannot be computed', { timeout: 120_000 }, async () => {
  await upload();
  await rounds(() => derive.deriveLane({ number: 0, of: 1 }));
  await sql('DELETE FROM dirty_steps WHERE step >= 4');
  const { tries, end } = await poison('step_rollups', 'NEW.step = 2');
  const round = () => rollups.round();
  await rounds(round);
  expect(await numbers('SELECT DISTINCT step AS n FROM dirty_steps')).toEqual([2]);
  expect(await numbers('SELECT DISTINCT step AS n FROM step_rollups ORDER BY 1')).toEqual([0, 1, 3]);
  await expectSetAside('step', round, tries);
  await end();
  await rounds(round);
  expect(await numbers('SELECT step AS n FROM dirty_steps')).toEqual([]);
});
