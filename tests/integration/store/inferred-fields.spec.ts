import { randomUUID } from 'node:crypto';
import { unpackProvenance } from '@palestra/rollouts';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { expectSameFromNothing, settled } from '../../support/derived-rows.ts';
import { sharedServer, type TestServer } from '../../support/server.ts';

/** What step inference found stays as found, and gives way to what is told later. */
let server: TestServer;
beforeAll(async () => {
  server = await sharedServer();
});
afterAll(() => server?.close());

const RUN = 'inferred fields';
/** Two tasks, two samples of each; only the owner says how many there are. */
const ids = Array.from({ length: 4 }, () => randomUUID());
const start = (eventId: string, at: number) => ({
  eventType: 'rollout',
  eventId,
  timestamp: 1_000 + at,
  runName: RUN,
  rolloutName: `solver ${at}`,
  environment: 'acme/inferred',
  split: 'train',
  metadata: {},
  rollout_info: { task_index: at % 2 },
});
const message = (rolloutEventId: string) => ({
  eventType: 'message',
  eventId: randomUUID(),
  rolloutEventId,
  timestamp: 5_000,
  index: 0,
  metadata: {},
  type: 'assistant_message',
  content: 'done',
});
const told = (eventId: string, timestamp: number, rollout_info: object) => ({
  eventType: 'rollout_update',
  eventId,
  timestamp,
  rollout_info,
});

async function send(...events: object[]): Promise<void> {
  expect(await server.request('POST', '/v1/rollouts', { body: { events } })).toMatchObject({ status: 200, body: { rejected: [] } });
  await settled(server.database.pool, server.orgName);
}

async function rows() {
  const found = await server.database.pool.query(
    `SELECT r.id, r.sample_idx, r.phase, r.provenance FROM rollouts r JOIN runs u ON u.seq = r.run_seq
    WHERE u.name = $1 ORDER BY r.seq`,
    [RUN],
  );
  const byId = new Map(found.rows.map(({ id, provenance, ...row }) => [id as string, { ...row, ...unpackProvenance(provenance) }]));
  return ids.map((id) => byId.get(id)!);
}

test(
  'a sample or phase that is told after inference found one is taken, and what is found is never called told',
  { timeout: 120_000 },
  async () => {
    await send(...ids.map(start));
    expect(await server.request('PATCH', `/v1/runs/${encodeURIComponent(RUN)}`, { body: { settings: { n: 2 } } })).toMatchObject({
      status: 200,
    });
    await settled(server.database.pool, server.orgName);
    const found = await rows();
    expect(found.map(({ sample_idx }) => sample_idx).toSorted((a, b) => a - b)).toEqual([0, 0, 1, 1]);
    for (const row of found) expect(row).toMatchObject({ sample: 'inferred', group: 'inferred' });

    await send(told(ids[0]!, 6_000, { sample_idx: 7, phase: 'eval' }), ...ids.map(message));
    const [first, ...others] = await rows();
    expect(first).toMatchObject({ sample_idx: 7, sample: 'reported', phase: 'reported', group: 'inferred' });
    expect(others.map(({ sample }) => sample)).toEqual(['inferred', 'inferred', 'inferred']);

    await expectSameFromNothing(server.database.pool, server.orgName);
  },
);

test('a removed setting of the owner is inferred again', { timeout: 120_000 }, async () => {
  const set = async (settings: object) => {
    expect(await server.request('PATCH', `/v1/runs/${encodeURIComponent(RUN)}`, { body: { settings } })).toMatchObject({ status: 200 });
    await settled(server.database.pool, server.orgName);
  };
  await set({ n: 2, nameRegex: String.raw`solver (?P<sample>\d+)$` });
  const [, second] = await rows();
  expect(second).toMatchObject({ sample_idx: 1, sample: 'parsed' });
  expect((await rows())[3]).toMatchObject({ sample_idx: 3, sample: 'parsed' });
  await set({ n: 2 });
  // Which of the two that came together is the first one is for their ids to say, which are random.
  const ofTask = [(await rows())[1]!, (await rows())[3]!];
  expect(ofTask.map(({ sample_idx }) => sample_idx).toSorted((a, b) => a - b)).toEqual([0, 1]);
  for (const row of ofTask) expect(row).toMatchObject({ sample: 'inferred' });
  await expectSameFromNothing(server.database.pool, server.orgName);
});

test('a group that is reported without a step is kept, also if it is reported later', { timeout: 120_000 }, async () => {
  const run = 'reported groups';
  const groups = ['a', 'a', 'b', 'b', 'b'];
  // One task: samples by arrival would cut these into other groups.
  const starts = groups.map((group_id, at) => ({
    ...start(randomUUID(), at),
    runName: run,
    rollout_info: { task_index: 0 },
    metadata: at === 4 ? {} : { group_id },
  }));
  await send(...starts, ...starts.map(({ eventId }) => message(eventId)));
  expect(await server.request('PATCH', `/v1/runs/${encodeURIComponent(run)}`, { body: { settings: { n: 2 } } })).toMatchObject({
    status: 200,
  });
  await settled(server.database.pool, server.orgName);
  const grouped = async () => {
    const { rows: found } = await server.database.pool.query(
      `SELECT r.group_key::text, r.provenance FROM rollouts r JOIN runs u ON u.seq = r.run_seq WHERE u.name = $1 ORDER BY r.seq`,
      [run],
    );
    return found.map(({ group_key, provenance }) => ({ key: group_key as string, group: unpackProvenance(provenance).group }));
  };
  const bySeq = (
    await server.database.pool.query('SELECT id FROM rollouts WHERE id = ANY($1) ORDER BY seq', [starts.map(({ eventId }) => eventId)])
  ).rows;
  const place = starts.map(({ eventId }) => bySeq.findIndex(({ id }) => id === eventId));
  const before = await grouped();
  const of = (rowsOf: typeof before) => place.map((at) => rowsOf[at]!);
  expect(of(before).map(({ group }) => group)).toEqual(['reported', 'reported', 'reported', 'reported', 'inferred']);
  expect(of(before)[0]!.key).toBe(of(before)[1]!.key);
  expect(of(before)[2]!.key).toBe(of(before)[3]!.key);
  expect(of(before)[0]!.key).not.toBe(of(before)[2]!.key);
  await send(told(starts[4]!.eventId, 9_000, { group_id: 'b' }));
  const after = of(await grouped());
  expect(after[4]).toEqual(after[3]);
  await expectSameFromNothing(server.database.pool, server.orgName);
});

test('groups with an id that repeats at every inferred step are listed separately', async () => {
  const run = 'ids come back';
  const [steps, samples] = [4, 2];
  for (let at = 0; at < steps * samples; at += 1) {
    const rollout = { ...start(randomUUID(), 0), runName: run, metadata: { group_id: 'prompt 0', phase: 'train' } };
    await send(rollout, { ...message(rollout.eventId), reward: at % samples });
  }
  const settings = { n: samples, batchSize: samples };
  expect(await server.request('PATCH', `/v1/runs/${encodeURIComponent(run)}`, { body: { settings } })).toMatchObject({ status: 200 });
  for (const sort of ['step', 'mean', 'std', 'n'])
    for (const order of ['asc', 'desc']) {
      const listed: { key: string; step: number; received: number }[] = [];
      for (let cursor: string | null = ''; cursor !== null;) {
        const query = `sort=${sort}&order=${order}&limit=1${cursor && `&cursor=${cursor}`}`;
        const { status, body }: any = await server.request('GET', `/v1/runs/${encodeURIComponent(run)}/groups?${query}`);
        expect(status).toBe(200);
        listed.push(...body.groups);
        cursor = body.next;
      }
      expect(new Set(listed.map(({ key }) => key)).size).toBe(1);
      expect(
        listed.map(({ step, received }) => [step, received]).toSorted((a, b) => a[0]! - b[0]!),
        `${sort} ${order}`,
      ).toEqual(Array.from({ length: steps }, (_, step) => [step, samples]));
    }
});

test('a run whose inferred steps are all reported later has no inferred step', { timeout: 120_000 }, async () => {
  const run = 'steps are reported later';
  const starts = ids.map((_, at) => ({ ...start(randomUUID(), at), runName: run }));
  const inference = async () => {
    const { rows: found } = await server.database.pool.query(`SELECT inference->'rollouts' AS rollouts FROM runs WHERE name = $1`, [run]);
    return found[0].rollouts as number;
  };
  await send(...starts, ...starts.map(({ eventId }) => message(eventId)));
  expect(await server.request('PATCH', `/v1/runs/${encodeURIComponent(run)}`, { body: { settings: { n: 2 } } })).toMatchObject({
    status: 200,
  });
  await settled(server.database.pool, server.orgName);
  expect(await inference()).toBe(4);
  await send(...starts.slice(0, 2).map(({ eventId }) => told(eventId, 9_000, { current_step: 3 })));
  expect(await inference()).toBe(2);
  await send(...starts.slice(2).map(({ eventId }) => told(eventId, 9_000, { current_step: 3 })));
  expect(await inference()).toBe(0);
  await expectSameFromNothing(server.database.pool, server.orgName);
});
