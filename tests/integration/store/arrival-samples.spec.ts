import { randomUUID } from 'node:crypto';
import { loadZstd } from '@palestra/kit/zstd';
import { parquetReadObjects } from 'hyparquet';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { expectSameFromNothing, settled } from '../../support/derived-rows.ts';
import { sharedServer, type TestServer } from '../../support/server.ts';

/** Samples without a reported number are numbered by their order of arrival in the group (docs/reference/metrics.md#fill-rules). */
let server: TestServer;
beforeAll(async () => {
  server = await sharedServer();
});
afterAll(() => server?.close());

const RUN = 'arrivals';
const get = async (path: string) => (await server.request('GET', path)).body;
const list = (q = '') => get(`/v1/runs/${RUN}/rollouts?sort=created_at&order=asc&q=${encodeURIComponent(q)}`);

async function upload(name: string, more: { metadata?: object } & Record<string, unknown>): Promise<string> {
  const eventId = randomUUID();
  const start = { eventType: 'rollout', eventId, timestamp: 1, runName: RUN, rolloutName: name, environment: 'acme/a', step: 1, ...more };
  const message = { eventType: 'message', eventId: randomUUID(), rolloutEventId: eventId, timestamp: 1, index: 0, metadata: {} };
  const events = [start, { ...message, type: 'assistant_message', content: name, reward: 1, isFinished: true }];
  expect((await server.request('POST', '/v1/rollouts', { body: { events } })).status).toBe(200);
  await settled(server.database.pool, server.orgName);
  return eventId;
}

test('in lists, groups, queries, pages and exports', async () => {
  const group = (group_id: string, more: object = {}) => ({ metadata: { group_id, ...more } });
  const first = await upload('g first', group('g'));
  await upload('h first', group('h'));
  const second = await upload('g second', group('g'));
  await upload('by task', { rollout_info: { task_index: 4 } });
  await upload('told', group('h', { sample_idx: 7 }));
  await upload('no group', { step: undefined });
  await upload('no step', { step: undefined, rollout_info: { task_index: 4 } });
  await upload('no step, told', { step: undefined, rollout_info: { task_index: 4 }, metadata: { sample_idx: 3 } });
  const third = await upload('g third', group('g'));

  const { rollouts } = await list();
  const shown = rollouts.map((row: any) => [row.rolloutName, row.sample, row.provenance.sample]);
  expect(shown).toEqual([
    ['g first', 0, 'inferred'],
    ['h first', 0, 'inferred'],
    ['g second', 1, 'inferred'],
    ['by task', 0, 'inferred'],
    ['told', 7, 'reported'],
    ['no group', null, 'unknown'],
    ['no step', 0, 'inferred'],
    ['no step, told', 3, 'reported'],
    ['g third', 2, 'inferred'],
  ]);
  const names = async (q: string) => (await list(q)).rollouts.map((row: any) => row.rolloutName);
  expect(await names('sample:>0')).toEqual(['g second', 'told', 'no step, told', 'g third']);
  expect(await names('sample:2')).toEqual(['g third']);
  expect(await names('prov.sample:inferred')).toEqual(['g first', 'h first', 'g second', 'by task', 'no step', 'g third']);

  const { neighbours } = await get(`/v1/rollouts/${second}/header`);
  expect(neighbours).toMatchObject({ previous_sample: { id: first, sample: 0 }, next_sample: { id: third, sample: 2 } });
  expect((await get(`/v1/rollouts/${third}/header`)).neighbours).toMatchObject({
    previous_sample: { id: second, sample: 1 },
    next_sample: null,
  });
  const [{ group_key: key }] = (await server.database.pool.query('SELECT group_key::text FROM rollouts WHERE id = $1', [first])).rows;
  const { rollouts: members } = await get(`/v1/runs/${RUN}/groups/${key}?step=1`);
  expect(members.map((row: any) => [row.rolloutName, row.sample])).toEqual([
    ['g first', 0],
    ['g second', 1],
    ['g third', 2],
  ]);
  const started = await server.request('POST', '/v1/exports', { body: { format: 'rollouts-parquet', run: RUN } });
  const exported = await vi.waitFor(
    async () => {
      const view = await get(`/v1/exports/${started.body.id}`);
      expect(view.state).toBe('complete');
      return view;
    },
    { timeout: 30_000 },
  );
  const bytes = await (await fetch(exported.files.find(({ name }: { name: string }) => name.startsWith('data/')).url)).arrayBuffer();
  const rows = await parquetReadObjects({ file: bytes, compressors: { ZSTD: (await loadZstd()).decompress } });
  expect(rows.map((row) => [row.rollout_name, row.sample_idx])).toEqual(shown.map(([name, sample]: unknown[]) => [name, sample]));

  await expectSameFromNothing(server.database.pool, server.orgName);
  expect((await list()).rollouts.map((row: any) => row.sample)).toEqual(shown.map(([, sample]: unknown[]) => sample));
});
