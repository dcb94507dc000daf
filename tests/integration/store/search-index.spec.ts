import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createLogger } from '../../../apps/api/src/platform/telemetry/logger.ts';
import { Metrics } from '../../../apps/api/src/platform/telemetry/metrics.ts';
import { SearchIndex } from '../../../apps/api/src/store/derive/search/search-index.service.ts';
import { Quarantine } from '../../../apps/api/src/store/quarantine.ts';
import type { TranscriptObjects } from '../../../apps/api/src/store/storage/transcript-objects.service.ts';
import { startServer, type TestServer } from '../../support/server.ts';

/** Indexing is bounded by bytes of text, and goes on where the last statement ended. */

const KB = 'k'.repeat(1_023);
let server: TestServer;
let index: SearchIndex;

async function upload(messages: number, textOf: (index: number) => string): Promise<string> {
  const id = randomUUID();
  const start = {
    eventType: 'rollout',
    eventId: id,
    timestamp: 1,
    runName: 'large',
    environment: 'acme/large',
    split: 'train',
    metadata: {},
  };
  for (let at = 0; at < messages; at += 50) {
    const events: object[] = at === 0 ? [start] : [];
    for (let one = at; one < Math.min(messages, at + 50); one += 1)
      events.push({
        eventType: 'message',
        eventId: randomUUID(),
        rolloutEventId: id,
        timestamp: 2,
        index: one,
        type: 'tool_result',
        callId: 'c',
        content: textOf(one),
        isFinished: false,
        metadata: {},
      });
    expect(await server.request('POST', '/v1/rollouts', { body: { events } })).toMatchObject({ status: 200 });
  }
  return id;
}
const indexed = async (id: string) =>
  Number(
    (
      await server.database.pool.query(
        'SELECT count(*) AS n FROM rollout_search s JOIN rollout_heads h ON h.seq = s.rollout_seq WHERE h.id = $1',
        [id],
      )
    ).rows[0].n,
  );
const waiting = async () =>
  (await server.database.pool.query('SELECT id FROM rollout_heads WHERE unsearched ORDER BY seq')).rows.map(({ id }) => id);

beforeAll(async () => {
  server = await startServer({ jobs: 'off' });
  index = new SearchIndex(server.database, {} as TranscriptObjects, new Quarantine(new Metrics(), createLogger('silent')), undefined!);
}, 60_000);
afterAll(() => server.close());

it('a rollout of more text than one statement takes is indexed in parts, and those behind it then', async () => {
  const large = await upload(300, (at) => `part${at} ${KB.repeat(20)}`);
  const small = await upload(3, () => 'behind');
  expect(await index.round()).toBe(true);
  const first = await indexed(large);
  expect(first).toBeGreaterThan(100);
  expect(first).toBeLessThan(300);
  expect(await waiting()).toEqual([large, small]);

  // A process that begins anew goes on behind what is there.
  index = new SearchIndex(server.database, {} as TranscriptObjects, new Quarantine(new Metrics(), createLogger('silent')), undefined!);
  expect(await index.round()).toBe(true);
  expect(await indexed(large)).toBe(300);
  while (await index.round());
  expect(await indexed(small)).toBe(3);
  expect(await waiting()).toEqual([]);
}, 60_000);

it('a message that comes while its rollout is indexed is indexed with the next batch', async () => {
  const large = await upload(250, (at) => `part${at} ${KB.repeat(20)}`);
  expect(await index.round()).toBe(true);
  const { rows } = await server.database.pool.query('UPDATE rollout_heads SET revision = revision + 1 WHERE id = $1 RETURNING seq, day', [
    large,
  ]);
  await server.database.pool.query(
    `INSERT INTO rollout_messages (day, rollout_seq, event_id, index, bytes, is_finished, type, sent_at, content) VALUES ($1, $2, gen_random_uuid(), 1000, 4, false, 'tool_result', 1, 'last')`,
    [rows[0].day, rows[0].seq],
  );
  while (await index.round());
  expect(await indexed(large)).toBe(251);
  expect(await waiting()).toEqual([]);
}, 60_000);

it('many large rollouts are indexed some at a time', async () => {
  const ids: string[] = [];
  for (let one = 0; one < 6; one += 1) ids.push(await upload(60, (at) => `part${at} ${KB.repeat(20)}`));
  expect(await index.round()).toBe(true);
  expect((await waiting()).length).toBe(3);
  while (await index.round());
  expect(await Promise.all(ids.map(indexed))).toEqual(ids.map(() => 60));
}, 60_000);
