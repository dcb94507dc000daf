import { randomUUID } from 'node:crypto';
import { loadZstd } from '@palestra/kit/zstd';
import { parquetReadObjects } from 'hyparquet';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { sharedServer, type TestServer } from '../../support/server.ts';
import { addReviewer, answer, answerAll, createQueue, next, type Reviewer } from '../reviews/reviews.world.ts';
import { seeded, strangerOf, upload } from '../runs/run-reads.world.ts';

const RUN = 'reviewed for export';
const rollouts = seeded(RUN, { steps: 2, tasks: 3, n: 3 });
const byId = new Map(rollouts.map((one) => [one.id, one]));
let server: TestServer;
let ana: Reviewer;
let ben: Reviewer;

beforeAll(async () => {
  server = await sharedServer();
  [ana, ben] = await Promise.all([addReviewer(server, 'ana'), addReviewer(server, 'ben')]);
  await upload(server, RUN, rollouts);
});
afterAll(() => server.close());

async function exported(body: object): Promise<{ view: any; files: Buffer[]; manifest: any }> {
  const created = await server.request('POST', '/v1/exports', { body });
  expect(created.status, JSON.stringify(created.body)).toBe(200);
  await expect
    .poll(async () => (await server.request('GET', `/v1/exports/${created.body.id}`)).body, { timeout: 60_000 })
    .toMatchObject({ state: 'complete', error: null });
  const { body: view } = await server.request('GET', `/v1/exports/${created.body.id}`);
  const read = async ({ url }: { url: string }) => Buffer.from(await (await fetch(url)).arrayBuffer());
  const files = await Promise.all(view.files.filter(({ name }: any) => name.startsWith('data/')).map(read));
  const manifest = JSON.parse(String(await read(view.files.find(({ name }: any) => name === 'manifest.json'))));
  return { view, files, manifest };
}
const linesOf = (files: Buffer[]) => files.flatMap((file) => String(file).split('\n').filter(Boolean)).map((line) => JSON.parse(line));
const rowsOf = async (files: Buffer[]): Promise<Record<string, any>[]> => {
  const { decompress } = await loadZstd();
  return (
    await Promise.all(files.map((file) => parquetReadObjects({ file: new Uint8Array(file).buffer, compressors: { ZSTD: decompress } })))
  ).flat();
};

it('labels have reviewer, time, query and seed, as JSON lines and as Parquet', async () => {
  const queue = await createQueue(server, {
    name: 'careful',
    run: RUN,
    query: 'step:1',
    sample: 4,
    seed: 7,
    overlap: 2,
    labels: ['yes', 'no'],
  });
  await answerAll(server, queue.id, ({ position }) => (position === 4 ? null : 'yes'), ana);
  await next(server, queue.id, ben);
  await answer(server, queue.id, 1, { choice: 'yes', comment: 'clean' }, ben);
  await answer(server, queue.id, 2, { choice: 'no' }, ben);
  // Item 3 has one answer of two, and item 4 none.
  const { view, files, manifest } = await exported({ queue: queue.id, format: 'labels' });
  expect(view).toMatchObject({ queue: queue.id, run: RUN, query: 'step:1', written: 2, total: null });
  expect(manifest.review).toEqual({ queue_id: queue.id, queue: 'careful', queue_query: 'step:1', queue_seed: 7 });
  const lines = linesOf(files);
  expect(lines).toMatchObject([
    { label: 'yes', label_share: 1, run: RUN, step: 1, environment: 'acme/math', queue: 'careful', queue_query: 'step:1', queue_seed: 7 },
    { label: null, label_share: null },
  ]);
  for (const line of lines) expect(line).toMatchObject({ task_index: byId.get(line.rollout_id)!.task, prompt: [{ role: 'user' }] });
  expect(lines[0].answers).toEqual([
    { reviewer: expect.stringMatching(/^ana/), choice: 'yes', comment: null, at: expect.stringMatching(/^20.*Z$/) },
    { reviewer: expect.stringMatching(/^ben/), choice: 'yes', comment: 'clean', at: expect.any(String) },
  ]);
  const rows = await rowsOf((await exported({ queue: queue.id, format: 'labels-parquet' })).files);
  expect(rows.map(({ rollout_id, label, answers }) => ({ rollout_id, label, answers: JSON.parse(answers) }))).toEqual(
    lines.map(({ rollout_id, label, answers }) => ({ rollout_id, label, answers })),
  );
  expect(rows[0]!['completion'].map(({ role }: any) => role)).toEqual(lines[0].completion.map(({ role }: any) => role));
  expect(JSON.parse(rows[0]!['completion'][0].tool_calls)).toEqual(lines[0].completion[0].tool_calls);
  // Closing shows the answers of incomplete items too.
  await server.request('POST', `/v1/review-queues/${queue.id}/close`);
  expect(linesOf((await exported({ queue: queue.id, format: 'labels' })).files)).toHaveLength(3);
});

it('pairs are what most reviewers prefer', async () => {
  const queue = await createQueue(server, { name: 'pairs', run: RUN, mode: 'pairs', query: 'step:0', overlap: 2 });
  const [first, second] = [
    ['a', 'b', 'tie'],
    ['a', 'b', 'tie'],
  ];
  const seen = await answerAll(server, queue.id, ({ position }) => first[position - 1]!, ana);
  await answerAll(server, queue.id, ({ position }) => second[position - 1]!, ben);
  const { view, files, manifest } = await exported({ queue: queue.id, format: 'preference' });
  const lines = linesOf(files);
  expect(lines).toMatchObject([
    { chosen_rollout_id: seen[0], rejected_rollout_id: seen[1], queue: 'pairs' },
    { chosen_rollout_id: seen[3], rejected_rollout_id: seen[2] },
  ]);
  expect(lines[1].answers.map(({ choice }: any) => choice)).toEqual(['chosen', 'chosen']);
  // The way back: from a pair to its queue, its query, its reviewers and its rollouts.
  const reviewedBy = (reviewer: RegExp) => ({
    reviewer: expect.stringMatching(reviewer),
    choice: 'chosen',
    comment: null,
    at: expect.any(String),
  });
  const origin = { queue_id: queue.id, queue: 'pairs', queue_query: 'step:0', queue_seed: 0 };
  expect(manifest.review).toEqual(origin);
  for (const line of lines) {
    expect(line).toMatchObject({
      ...origin,
      run: RUN,
      step: 0,
      environment: 'acme/math',
      answers: [reviewedBy(/^ana/), reviewedBy(/^ben/)],
    });
    const [chosen, rejected] = [byId.get(line.chosen_rollout_id)!, byId.get(line.rejected_rollout_id)!];
    expect(line).toMatchObject({ task_index: chosen.task, split: 'train', group_n: null });
    expect([rejected.step, rejected.task]).toEqual([chosen.step, chosen.task]);
    for (const { at } of line.answers) expect(Math.abs(Date.now() - Date.parse(at))).toBeLessThan(600_000);
  }
  expect(view.figures.rollouts).toBe(4);
  const rows = await rowsOf((await exported({ queue: queue.id, format: 'preference-parquet' })).files);
  expect(rows.map(({ chosen_rollout_id }) => chosen_rollout_id)).toEqual([seen[0], seen[3]]);
  for (const [at, row] of rows.entries()) {
    expect(row).toMatchObject({ ...origin, queue_seed: expect.anything(), run: RUN, rejected_rollout_id: lines[at].rejected_rollout_id });
    expect([Number(row['queue_seed']), JSON.parse(row['answers'])]).toEqual([0, lines[at].answers]);
  }
  expect(rows[0]).toMatchObject({ margin: lines[0].margin, chosen: [{ role: 'assistant' }, { role: 'tool' }, { role: 'assistant' }] });
  // An erased rollout is left out.
  await server.request('DELETE', `/v1/rollouts/${seen[0]}`);
  expect(linesOf((await exported({ queue: queue.id, format: 'preference' })).files)).toHaveLength(1);
});

it('pairs by reward have the same columns as Parquet', async () => {
  const [lines, rows] = await Promise.all([
    exported({ run: RUN, query: 'step:1', format: 'preference' }).then(({ files }) => linesOf(files)),
    exported({ run: RUN, query: 'step:1', format: 'preference-parquet' }).then(({ files }) => rowsOf(files)),
  ]);
  const facts = ({ chosen_rollout_id, margin, group_n, step }: any) => ({ chosen_rollout_id, margin, group_n, step });
  expect(rows.map(facts)).toEqual(lines.map(facts));
  for (const row of rows) expect(row).toMatchObject({ queue: null, answers: null });
});

it('a queue has only its own formats, and only for its organisation', async () => {
  const queue = await createQueue(server, { run: RUN, sample: 1 });
  const refused = async (body: object, headers = {}) => {
    const { status, body: error } = await server.request('POST', '/v1/exports', { body, headers });
    return [status, error.code];
  };
  expect(await refused({ format: 'labels' })).toEqual([422, 'invalid_body']);
  expect(await refused({ format: 'preference', queue: queue.id })).toEqual([422, 'invalid_body']);
  expect(await refused({ format: 'jsonl', queue: queue.id })).toEqual([422, 'invalid_body']);
  expect(await refused({ format: 'labels', queue: randomUUID() })).toEqual([404, 'review_queue_not_found']);
  expect(await refused({ format: 'labels', queue: queue.id }, await strangerOf(server))).toEqual([404, 'review_queue_not_found']);
});
