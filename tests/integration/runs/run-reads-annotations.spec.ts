import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SseParser } from '@palestra/kit/sse';
import { sharedServer, type TestServer } from '../../support/server.ts';
import { seeded, strangerOf, upload } from './run-reads.world.ts';

const RUN = 'noted';
const rollouts = seeded(RUN, { steps: 2, tasks: 2, n: 2 });
const [first, second] = [rollouts[0]!.id, rollouts[1]!.id];

let server: TestServer;
let stranger: Record<string, string>;
const ask = (method: string, url: string, body?: unknown, headers = {}) => server.request(method, url, { body, headers });
const total = async (q: string) => (await ask('GET', `/v1/runs/${RUN}/rollouts?q=${encodeURIComponent(q)}`)).body.total;

beforeAll(async () => {
  server = await sharedServer();
  stranger = await strangerOf(server);
  await upload(server, RUN, rollouts);
});
afterAll(() => server.close());

describe('annotations', () => {
  it('reject a missing key, rollouts of others, and empty or too long ones', async () => {
    expect(await ask('POST', '/v1/annotations', { rollout: first, tag: 'x' }, { 'x-api-key': '' })).toMatchObject({ status: 401 });
    expect(await ask('POST', '/v1/annotations', { rollout: first, tag: 'x' }, stranger)).toMatchObject({
      status: 404,
      body: { code: 'rollout_not_found' },
    });
    for (const bad of [{}, { verdict: 'fine' }, { score: 6 }, { tag: 'x', from_index: 5, to_index: 2 }, { tag: 'x', to_index: 2 }])
      expect(await ask('POST', '/v1/annotations', { rollout: first, ...bad })).toMatchObject({
        status: 422,
        body: { code: 'invalid_body' },
      });
    expect(await ask('DELETE', `/v1/annotations/${randomUUID()}`)).toMatchObject({ status: 404, body: { code: 'annotation_not_found' } });
  });

  it('cover a range of messages, filter rollouts, and can be deleted', async () => {
    const made = await ask('POST', '/v1/annotations', {
      rollout: first,
      from_index: 1,
      to_index: 2,
      verdict: 'exploit',
      score: 2,
      tag: 'to review',
      note: 'format only',
    });
    expect(made).toMatchObject({
      status: 200,
      body: { rollout: first, from_index: 1, to_index: 2, verdict: 'exploit', author: expect.stringMatching(/./) },
    });
    await ask('POST', '/v1/annotations', { rollout: second, verdict: 'good' });
    expect(await Promise.all(['verdict:exploit', 'tag:"to review"', 'note:"FORMAT only"', 'has:note'].map(total))).toEqual([
      1,
      1,
      1,
      expect.any(Number),
    ]);
    const page = (await ask('GET', `/v1/annotations?run=${RUN}&limit=1`)).body;
    expect(page.annotations).toMatchObject([{ rollout: second }]);
    expect((await ask('GET', `/v1/annotations?run=${RUN}&limit=1&cursor=${page.next}`)).body).toMatchObject({
      annotations: [{ rollout: first }],
      next: null,
    });
    expect((await ask('GET', `/v1/annotations?rollout=${first}`)).body.annotations).toHaveLength(1);
    expect((await ask('GET', '/v1/annotations', undefined, stranger)).body.annotations).toEqual([]);
    expect(await ask('DELETE', `/v1/annotations/${made.body.id}`, undefined, stranger)).toMatchObject({ status: 404 });
    expect(await ask('DELETE', `/v1/annotations/${made.body.id}`)).toMatchObject({ status: 200 });
    expect(await total('verdict:exploit')).toBe(0);
  });
});

describe('saved views', () => {
  it('store a valid query in its canonical spelling', async () => {
    expect(await ask('POST', '/v1/views', { name: 'x', query: 'rewrad:1' })).toMatchObject({
      status: 422,
      body: { code: 'invalid_query' },
    });
    expect(await ask('POST', '/v1/views', { name: 'x', lens: 'nobody' })).toMatchObject({ status: 422, body: { code: 'invalid_body' } });
    expect(await ask('POST', '/v1/views', { name: 'x', run: RUN }, stranger)).toMatchObject({
      status: 404,
      body: { code: 'run_not_found' },
    });
    const made = await ask('POST', '/v1/views', {
      name: 'bad ones',
      run: RUN,
      query: '  reward:<0.2   has:error ',
      lens: 'skyrl',
      state: { columns: ['step'] },
    });
    expect(made).toMatchObject({ status: 200, body: { query: 'reward:<0.2 has:error', state: { columns: ['step'] } } });
    const url = `/v1/views/${made.body.id}`;
    expect(await ask('PUT', url, { name: 'worse ones', query: 'reward:0' })).toMatchObject({
      body: { name: 'worse ones', run: null, lens: null },
    });
    expect((await ask('GET', `/v1/views?run=${RUN}`)).body.views).toMatchObject([{ name: 'worse ones' }]);
    for (const method of ['PUT', 'DELETE'])
      expect(await ask(method, url, { name: 'theirs' }, stranger)).toMatchObject({ status: 404, body: { code: 'view_not_found' } });
    expect((await ask('GET', '/v1/views', undefined, stranger)).body.views).toEqual([]);
    expect(await ask('DELETE', url)).toMatchObject({ status: 200 });
  });
});

describe('PATCH /v1/runs/{id}', () => {
  it('rejects invalid settings, and runs of others', async () => {
    for (const bad of [
      { settings: { nmae: 1 } },
      { settings: { nameRegex: '(?=x)' } },
      { settings: { n: 0 } },
      { retention_days: 0 },
      { name: 'other' },
    ])
      expect(await ask('PATCH', `/v1/runs/${RUN}`, bad)).toMatchObject({ status: 422, body: { code: 'invalid_body' } });
    expect(await ask('PATCH', `/v1/runs/${RUN}`, { tags: ['x'] }, stranger)).toMatchObject({ status: 404 });
  });

  it('normalises all rollouts again under new settings', async () => {
    const before = (await ask('GET', `/v1/runs/${RUN}`)).body;
    const changed = await ask('PATCH', `/v1/runs/${RUN}`, {
      settings: { rewardReduce: 'max', maxTurns: 2 },
      tags: ['a', 'a', 'b'],
      retention_days: 30,
    });
    expect(changed).toMatchObject({ status: 200, body: { tags: ['a', 'b'], retention_days: 30, settings: { rewardReduce: 'max' } } });
    expect(BigInt(changed.body.version)).toBeGreaterThan(BigInt(before.version));
    expect((await ask('GET', '/v1/runs?tag=b')).body.runs).toMatchObject([{ name: RUN }]);
    expect(await ask('PATCH', `/v1/runs/${RUN}`, { retention_days: null })).toMatchObject({
      body: { retention_days: null, tags: ['a', 'b'] },
    });
  });
});

/** The events of a stream until `enough`, with their ids. */
async function listen(
  headers: Record<string, string>,
  enough: (events: { event: string; id: string | null; data: any }[]) => boolean,
  meanwhile = async () => {},
) {
  const aborted = new AbortController();
  const answer = await fetch(`${server.url}/v1/stream?run=${RUN}`, {
    headers: { 'x-api-key': server.apiKey, ...headers },
    signal: aborted.signal,
  });
  const events: { event: string; id: string | null; data: any }[] = [];
  const timer = setTimeout(() => aborted.abort(), 20_000);
  let text = '';
  const decoder = new TextDecoder();
  void meanwhile();
  try {
    for await (const piece of answer.body!) {
      text += decoder.decode(piece as Uint8Array, { stream: true });
      const blocks = text.split('\r\n\r\n');
      text = blocks.pop()!;
      for (const block of blocks) {
        const [one] = new SseParser().push(`${block.replaceAll(/^id:.*\r\n/gm, '')}\r\n\r\n`);
        if (one) events.push({ event: one.event, id: /^id: (.*)$/m.exec(block)?.[1]?.trim() ?? null, data: JSON.parse(one.data) });
      }
      if (enough(events)) break;
    }
  } finally {
    clearTimeout(timer);
    aborted.abort();
  }
  return events;
}

describe('GET /v1/stream?run=', () => {
  it('rejects runs of others before the stream begins', async () => {
    expect(await ask('GET', '/v1/stream?run=nobody')).toMatchObject({ status: 404, body: { code: 'run_not_found' } });
    expect(await ask('GET', `/v1/stream?run=${RUN}`, undefined, stranger)).toMatchObject({ status: 404 });
  });

  it('sends counters and changed steps with a version, and resumes from it', async () => {
    const other = { ...seeded('late')[0]!, step: 1 };
    const has = (name: string, events: { event: string }[]) => events.some(({ event }) => event === name);
    const events = await listen(
      {},
      (all) => has('dirty', all) && all.some(({ event, data }) => event === 'counters' && data.rollouts === 9),
      () => upload(server, RUN, [other]),
    );
    // Earlier changes may still arrive, before the first counters.
    expect(events.find(({ event }) => event === 'counters')).toMatchObject({ data: { rollouts: 8, messages: 32 } });
    const dirty = events.find(({ event }) => event === 'dirty')!;
    expect(dirty.data.steps).toContain(1);
    // The id never decreases, even when a change of an older version arrives late.
    expect(BigInt(dirty.id!)).toBeGreaterThanOrEqual(BigInt(dirty.data.v));
    const [begun, ...later] = events.filter(({ id }) => id !== null);
    const missed = await listen({ 'last-event-id': begun!.id! }, (all) => has('dirty', all));
    expect(missed.find(({ event }) => event === 'dirty')).toMatchObject({ data: { steps: expect.arrayContaining([1]) } });
    expect(later.length).toBeGreaterThan(0);
    expect(later.filter(({ event }) => event !== 'dirty')).toEqual([]);
  });

  it.each(['999999999999', 'x', '-5'])('starts over after %s, from which it cannot resume', async (id) => {
    const events = await listen({ 'last-event-id': id }, (all) => all.some(({ event }) => event === 'reset'));
    expect(events.filter(({ id }) => id !== null)[0]).toMatchObject({ event: 'reset' });
  });
});
