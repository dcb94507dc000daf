import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createLogger } from '../../../apps/api/src/platform/telemetry/logger.ts';
import { Metrics } from '../../../apps/api/src/platform/telemetry/metrics.ts';
import { DeriveService } from '../../../apps/api/src/store/derive/derive.service.ts';
import { SearchIndex } from '../../../apps/api/src/store/derive/search/search-index.service.ts';
import { Quarantine } from '../../../apps/api/src/store/quarantine.ts';
import { TranscriptObjects } from '../../../apps/api/src/store/storage/transcript-objects.service.ts';
import { TranscriptReader } from '../../../apps/api/src/store/storage/transcript-reader.service.ts';
import { startServer, type TestServer } from '../../support/server.ts';

/** Runs that wait in a lane get their batches in rounds: neither new runs nor large ones delay the others without a bound. */

const LANE = { number: 0, of: 1 };
let server: TestServer;
let stages: Record<'dirty' | 'unsearched', () => Promise<boolean>>;
beforeAll(async () => {
  server = await startServer({ jobs: 'off' });
  const quarantine = new Quarantine(new Metrics(), createLogger('silent'));
  const objects = new TranscriptObjects({} as never);
  const derive = new DeriveService(server.database, {} as never, quarantine, new TranscriptReader(server.database, objects), server.config);
  const search = new SearchIndex(server.database, objects, quarantine, createLogger('silent'));
  stages = { dirty: () => derive.deriveLane(LANE), unsearched: () => search.round(LANE) };
});
afterAll(() => server.close());

/** Uploads rollouts of one message. */
async function upload(runName: string, rollouts: number): Promise<void> {
  const events = Array.from({ length: rollouts }, () => {
    const id = randomUUID();
    const metadata = { phase: 'train', current_step: 1 };
    const message = { type: 'user_message', index: 0, content: 'a word', isFinished: true, metadata: {} };
    return [
      { eventType: 'rollout', eventId: id, timestamp: 1, runName, environment: 'acme/rounds', split: 'train', metadata },
      { eventType: 'message', eventId: randomUUID(), rolloutEventId: id, timestamp: 2, ...message },
    ];
  }).flat();
  expect(await server.request('POST', '/v1/rollouts', { body: { events } })).toMatchObject({ status: 200 });
}

const waiting = async (stage: string, run: string) =>
  Number(
    (
      await server.database.pool.query(
        `SELECT count(*) AS n FROM rollout_heads h JOIN runs r ON r.seq = h.run_seq WHERE r.name = $1 AND h.${stage}`,
        [run],
      )
    ).rows[0].n,
  );
const clear = () => server.database.pool.query('UPDATE rollout_heads SET dirty = false, unsearched = false');

test.each([
  ['dirty', 400],
  ['unsearched', 200],
] as const)('a stream of new runs does not delay an older one: %s', async (stage, batch) => {
  await clear();
  await upload(`old ${stage}`, batch + 1);
  await stages[stage]();
  expect(await waiting(stage, `old ${stage}`)).toBe(1);
  for (let round = 0; round < 3; round += 1) {
    await upload(`new ${stage} ${round}`, 1);
    await stages[stage]();
  }
  expect(await waiting(stage, `old ${stage}`)).toBe(0);
});

test.each([
  ['dirty', 400],
  ['unsearched', 200],
] as const)('a run whose part of a batch is small gets the next one: %s', async (stage, batch) => {
  await clear();
  for (const [run, rollouts] of [
    ['first', batch - 1],
    ['second', batch - 1],
    ['third', batch],
  ] as const)
    await upload(`${run} ${stage}`, rollouts);
  const left = () => Promise.all(['first', 'second', 'third'].map((run) => waiting(stage, `${run} ${stage}`)));
  await stages[stage]();
  expect(await left()).toEqual([0, batch - 2, batch]);
  await stages[stage]();
  expect(await left()).toEqual([0, 0, batch - 2]);
  await stages[stage]();
  expect(await left()).toEqual([0, 0, 0]);
});
