import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { outliveGrace, settled } from '../../support/derived-rows.ts';
import { sharedServer, type TestServer } from '../../support/server.ts';

/**
 * Batches of a rollout arrive in any order over several connections, so that a message counts as missing only after a while
 * (docs/reference/metrics.md#messages).
 */
let server: TestServer;
beforeAll(async () => {
  server = await sharedServer();
});
afterAll(() => server?.close());

const said = (rollout: string, index: number) => ({
  eventType: 'message',
  eventId: randomUUID(),
  rolloutEventId: rollout,
  timestamp: 2 + index,
  index,
  type: 'assistant_message',
  content: `word ${index}`,
  isFinished: false,
  metadata: {},
});

async function post(events: object[]): Promise<void> {
  const { status, body } = await server.request('POST', '/v1/rollouts', { body: { events } });
  expect({ status, body }).toMatchObject({ status: 200, body: { rejected: [] } });
}

/** A rollout of a run of its own, of which these messages are here. */
async function upload(run: string, indexes: readonly number[]): Promise<string> {
  const id = randomUUID();
  const start = {
    eventType: 'rollout',
    eventId: id,
    timestamp: 1,
    runName: run,
    step: 0,
    environment: 'a/b',
    split: 'train',
    metadata: {},
  };
  await post([start, ...indexes.map((index) => said(id, index))]);
  return id;
}

/** What a reader is told to be missing, wherever it is told. */
async function told(run: string, id: string) {
  const get = async (path: string) => (await server.request('GET', path)).body;
  await settled(server.database.pool, server.orgName);
  const { gaps, flags, missing_indexes } = await get(`/v1/rollouts/${id}`);
  const { missing } = await get(`/v1/rollouts/${id}/outline`);
  const { advisories, gaps: ofRun } = await get(`/v1/runs/${run}/summary`);
  const { total } = await get(`/v1/runs/${run}/rollouts?q=has%3Agap`);
  const advisory = advisories.find(({ rule }: { rule: string }) => rule === 'gaps')?.value ?? null;
  return { gaps, flagged: flags.includes('gap'), missing_indexes, missing, ofRun, advisory, found: total };
}
const NOTHING = { gaps: 0, flagged: false, missing_indexes: [], missing: [], ofRun: 0, advisory: null, found: 0 };
const due = async (id: string) =>
  (await server.database.pool.query<{ due: boolean }>('SELECT gaps_at IS NOT NULL AS due FROM rollout_heads WHERE id = $1', [id])).rows[0]!
    .due;

test('a late message is not missing while it may still arrive, nor after its arrival', async () => {
  const id = await upload('late', [0, 1, 3, 4]);
  expect(await told('late', id)).toEqual(NOTHING);
  expect(await due(id)).toBe(true);
  await post([said(id, 2)]);
  expect(await told('late', id)).toEqual(NOTHING);
  expect(await due(id)).toBe(false);
  await outliveGrace(server.database.pool, server.orgName);
  expect(await told('late', id)).toEqual(NOTHING);
});

test('a message counts as missing after its time, without another event, until it arrives', async () => {
  const id = await upload('lost', [0, 2, 5]);
  expect(await told('lost', id)).toEqual(NOTHING);
  await outliveGrace(server.database.pool, server.orgName);
  expect(await told('lost', id)).toEqual({
    gaps: 3,
    flagged: true,
    missing_indexes: [1, 3, 4],
    missing: [
      [1, 1],
      [3, 4],
    ],
    ofRun: 3,
    advisory: 3,
    found: 1,
  });
  await post([said(id, 1), said(id, 3), said(id, 4)]);
  expect(await told('lost', id)).toEqual(NOTHING);
});

test('a missing message stays missing when the rollout is normalised again', async () => {
  const id = await upload('again', [0, 2]);
  await outliveGrace(server.database.pool, server.orgName);
  await server.database.pool.query('UPDATE rollout_heads SET dirty = true, revision = revision + 1 WHERE id = $1', [id]);
  expect(await told('again', id)).toMatchObject({ gaps: 1, missing_indexes: [1] });
});
