import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { sharedServer, type TestServer } from '../../support/server.ts';
import { eventsOf, seeded, strangerOf, upload } from './run-reads.world.ts';

const RUN = 'viewed';
const rollouts = seeded(RUN, { steps: 3, tasks: 2, n: 3 });
const at = (step: number, task: number, sample: number) =>
  rollouts.find((one) => one.step === step && one.task === task && one.sample === sample)!;
const middle = at(1, 1, 1);
const big = { ...at(0, 0, 0), id: randomUUID(), step: 7, sample: 0 };
const PNG = Buffer.alloc(6_000, 7).toString('base64');

let server: TestServer;
let stranger: Record<string, string>;
const get = (url: string, headers = {}) => server.request('GET', url, { headers });
const raw = (url: string, headers: Record<string, string> = {}) =>
  fetch(server.url + url, { headers: { 'x-api-key': server.apiKey, ...headers } });

beforeAll(async () => {
  server = await sharedServer();
  stranger = await strangerOf(server);
  await upload(server, RUN, rollouts);
  const message = { eventType: 'message', rolloutEventId: big.id, timestamp: 1, isFinished: false, metadata: {} };
  const picture = { ...message, eventId: randomUUID(), index: 5, type: 'user_message', content: `see data:image/png;base64,${PNG} here` };
  const long = { ...message, eventId: randomUUID(), index: 4, type: 'assistant_message', content: 'ü'.repeat(10_000) };
  await server.request('POST', '/v1/rollouts', { body: { events: [...eventsOf(RUN, big), long, picture] } });
});
afterAll(() => server.close());

describe('reads of a rollout reject', () => {
  it.each(['header', 'outline', 'calls', 'beside?sort=reward', 'messages', 'messages/0/body', `objects/${'0'.repeat(64)}.png`])(
    '%s without a key, and for other organisations',
    async (route) => {
      expect(await get(`/v1/rollouts/${middle.id}/${route}`, { 'x-api-key': '' })).toMatchObject({ status: 401 });
      for (const [id, headers] of [
        [middle.id, stranger],
        [randomUUID(), {}],
        ['x', {}],
      ] as const)
        expect(await get(`/v1/rollouts/${id}/${route}`, headers)).toMatchObject({ status: 404, body: { code: 'rollout_not_found' } });
    },
  );

  it('messages, objects and ranges that do not exist', async () => {
    const url = `/v1/rollouts/${middle.id}`;
    expect(await get(`${url}/messages/77/body`)).toMatchObject({ status: 404, body: { code: 'message_not_found' } });
    expect(await get(`${url}/messages/-1/body`)).toMatchObject({ status: 404, body: { code: 'message_not_found' } });
    expect(await get(`${url}/objects/${'0'.repeat(64)}.png`)).toMatchObject({ status: 404, body: { code: 'file_not_found' } });
    expect(await get(`${url}/objects/${encodeURIComponent('../../../x')}`)).toMatchObject({ status: 404 });
    const past = await get(`${url}/messages/0/body`, { range: 'bytes=5000-' });
    expect(past).toMatchObject({ status: 416, body: { code: 'range_not_satisfiable' } });
    expect(past.headers.get('content-range')).toMatch(/^bytes \*\/\d+$/);
    expect(await get(`/v1/diff?a=${middle.id}&b=${randomUUID()}`)).toMatchObject({ status: 404, body: { code: 'rollout_not_found' } });
    expect(await get(`/v1/diff?a=${middle.id}&b=${middle.id}`, stranger)).toMatchObject({ status: 404 });
  });
});

describe('a rollout', () => {
  it('has its neighbours in the group and over steps', async () => {
    const { body } = await get(`/v1/rollouts/${middle.id}/header`);
    const id = (step: number, sample: number) => ({ id: at(step, 1, sample).id });
    expect(body).toMatchObject({ id: middle.id, time_kind: 'upload', missing_indexes: [], run: { name: RUN } });
    expect(body.neighbours).toMatchObject({
      previous_sample: id(1, 0),
      next_sample: id(1, 2),
      previous_step: id(0, 1),
      next_step: id(2, 1),
    });
    expect(body).not.toHaveProperty('messages');
    expect((await get(`/v1/rollouts/${at(0, 1, 0).id}/header`)).body.neighbours).toMatchObject({
      previous_sample: null,
      previous_step: null,
    });
  });

  it.each([
    ['', ''],
    ['', 'sort=created_at&order=asc'],
    ['', 'sort=reward&order=desc'],
    ['', 'sort=reward&order=asc'],
    ['', 'sort=step&order=asc'],
    ['', 'sort=task&order=desc'],
    ['step:1..2 -reward:1', 'sort=reward&order=asc'],
    ['/quick (brown|red)/ step:..1', 'sort=step&order=desc'],
  ])('is walked to both sides in the order of the list: %s %s', async (q, sort) => {
    const list = `q=${encodeURIComponent(q)}&${sort}`;
    const { body } = await get(`/v1/runs/${RUN}/rollouts?limit=100&${list}`);
    const ids: string[] = body.rollouts.map(({ id }: { id: string }) => id);
    expect(ids.length).toBeGreaterThan(3);
    const walked = await Promise.all(ids.map(async (id) => (await get(`/v1/rollouts/${id}/beside?${list}`)).body));
    expect(walked.map(({ previous }) => previous?.id ?? null)).toEqual([null, ...ids.slice(0, -1)]);
    expect(walked.map(({ next }) => next?.id ?? null)).toEqual([...ids.slice(1), null]);
    expect(walked.every(({ incomplete }) => incomplete === false)).toBe(true);
  });

  it('has neighbours in a list that does not contain it', async () => {
    const { body } = await get(`/v1/rollouts/${middle.id}/beside?q=${encodeURIComponent('-step:1')}&sort=step&order=asc`);
    expect([body.previous.step, body.next.step]).toEqual([0, 2]);
    const wrong = await get(`/v1/rollouts/${middle.id}/beside?q=${encodeURIComponent('stepp:1')}`);
    expect(wrong).toMatchObject({ status: 422, body: { code: 'invalid_query' } });
  });

  it('has an outline by column', async () => {
    const { body } = await get(`/v1/rollouts/${middle.id}/outline`);
    expect(body).toMatchObject({
      total: 4,
      index: [0, 1, 2, 3],
      pair: [null, 2, 1, null],
      names: ['add'],
      name: [null, 0, null, null],
      missing: [],
    });
    expect(body.type.map((code: number) => body.types[code])).toEqual(['user_message', 'tool_call', 'tool_result', 'assistant_message']);
  });

  it('cuts large bodies only on request, and returns them whole or in part', async () => {
    const url = `/v1/rollouts/${big.id}/messages`;
    const content = 'ü'.repeat(10_000);
    expect((await get(`${url}?from=4&limit=1`)).body.messages[0]).toMatchObject({ content });
    expect((await get(`${url}?from=4&limit=1&bodies=preview`)).body.messages[0]).toMatchObject({
      content: 'ü'.repeat(512),
      body_bytes: 20_000,
    });
    const whole = await raw(`${url}/4/body`);
    expect([whole.status, whole.headers.get('content-type'), await whole.text()]).toEqual([200, 'text/plain; charset=utf-8', content]);
    expect(whole.headers.get('x-content-type-options')).toBe('nosniff');
    expect(whole.headers.get('content-security-policy')).toContain('sandbox');
    const part = await raw(`${url}/4/body`, { range: 'bytes=2-5' });
    expect([part.status, part.headers.get('content-range'), await part.text()]).toEqual([206, 'bytes 2-5/20000', 'üü']);
    expect(await (await raw(`${url}/4/body`, { range: 'bytes=-2' })).text()).toBe('ü');
  });

  it('serves its images, and nothing as a page', async () => {
    const { messages } = (await get(`/v1/rollouts/${big.id}/messages?from=5`)).body;
    const name = /palestra-object:([0-9a-f]{64}\.png)/.exec(messages[0].content)![1]!;
    const image = await raw(`/v1/rollouts/${big.id}/objects/${name}`);
    expect([image.status, image.headers.get('content-type'), image.headers.get('x-content-type-options')]).toEqual([
      200,
      'image/png',
      'nosniff',
    ]);
    expect(Buffer.from(await image.arrayBuffer()).toString('base64')).toBe(PNG);
    expect((await raw(`/v1/rollouts/${middle.id}/objects/${name}`)).status).toBe(404);
  });

  it('is compared with another by the calls of both', async () => {
    const other = at(1, 1, 2);
    const { body } = await get(`/v1/diff?a=${middle.id}&b=${other.id}`);
    expect(body).toMatchObject({ a: { id: middle.id }, b: { id: other.id }, first_divergence: 0, same: 1, truncated: false });
    expect(body.rows.filter(({ same }: { same: boolean }) => same)).toMatchObject([
      { a: { kind: 'answer', index: 3 }, b: { kind: 'answer', index: 3 } },
    ]);
    expect((await get(`/v1/diff?a=${middle.id}&b=${middle.id}`)).body).toMatchObject({ first_divergence: null, same: 2 });
  });

  it('that does not fit into memory as a whole is read page by page', async () => {
    const id = at(2, 1, 2).id;
    const resize = (bytes: string) => server.database.pool.query(`UPDATE rollout_heads SET bytes = ${bytes} WHERE id = $1`, [id]);
    await resize('bytes + 134217728');
    try {
      const refused = { status: 422, body: { code: 'too_expensive', detail: expect.stringContaining(`/v1/rollouts/${id}/messages`) } };
      expect(await get(`/v1/rollouts/${id}`)).toMatchObject(refused);
      expect(await get(`/v1/diff?a=${middle.id}&b=${id}`)).toMatchObject(refused);
      const { num_messages: count } = (await get(`/v1/rollouts/${id}/header`)).body;
      expect((await get(`/v1/rollouts/${id}/messages`)).body.messages).toHaveLength(count);
    } finally {
      await resize('bytes - 134217728');
    }
    expect(await get(`/v1/rollouts/${id}`)).toMatchObject({ status: 200 });
  });
});
