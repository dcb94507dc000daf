import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { sharedServer, type TestServer } from '../../support/server.ts';
import { seeded, strangerOf, upload } from './run-reads.world.ts';

const RUN = 'searched';
const rollouts = seeded(RUN);
/** Rollouts whose tool result contains the text; those of the others are errors. */
const holders = rollouts.filter(({ failed }) => !failed);

let server: TestServer;
let stranger: Record<string, string>;
const get = (url: string, headers = {}) => server.request('GET', url, { headers });
const search = (query: Record<string, string>, run = RUN) => get(`/v1/runs/${run}/search?${new URLSearchParams(query)}`);

/** Every hit, page by page. */
async function all(query: Record<string, string>): Promise<any[]> {
  const hits: any[] = [];
  for (let cursor: string | null = ''; cursor !== null;) {
    const { body, status } = await search({ ...query, ...(cursor ? { cursor } : {}) });
    if (status !== 200) throw new Error(JSON.stringify(body));
    hits.push(...body.hits);
    cursor = body.next;
  }
  return hits;
}

beforeAll(async () => {
  server = await sharedServer();
  stranger = await strangerOf(server);
  await upload(server, RUN, rollouts);
  await upload(server, 'beside', seeded('beside', { steps: 1, tasks: 1 }), 'an OTHER text: /usr/bin/python3');
  const pending = async () => {
    if ((await get('/v1/search?q=fox')).body.pending !== false) throw new Error('not searchable yet');
  };
  await vi.waitFor(pending, { timeout: 20_000, interval: 100 });
});
afterAll(() => server.close());

describe('search rejects', () => {
  it('an empty text, an unsupported regex, a bad query and a cursor of another list', async () => {
    expect(await search({ q: '' })).toMatchObject({ status: 422, body: { code: 'invalid_body' } });
    expect(await search({ q: '(?=x)', mode: 'regex' })).toMatchObject({ status: 422, body: { code: 'invalid_query' } });
    expect(await search({ q: 'x'.repeat(300), mode: 'regex' })).toMatchObject({ status: 422, body: { code: 'invalid_query' } });
    expect(await search({ q: 'fox', within: 'rewrad:1' })).toMatchObject({
      status: 422,
      body: { code: 'invalid_query', detail: [{ suggestion: 'reward' }] },
    });
    expect(await search({ q: 'fox', cursor: 'AAAA' })).toMatchObject({ status: 400, body: { code: 'invalid_cursor' } });
  });

  it('runs of another organisation', async () => {
    expect(await search({ q: 'fox' }, 'nobody')).toMatchObject({ status: 404 });
    expect((await get('/v1/search?q=fox', stranger)).body).toMatchObject({ hits: [], steps: [] });
  });
});

describe('search', () => {
  it('finds every message once, with its position, on pages of any size', async () => {
    for (const limit of ['7', '100']) {
      const hits = await all({ q: 'Quick brown', limit });
      expect(hits).toHaveLength(holders.length);
      expect(new Set(hits.map(({ rollout }) => rollout))).toEqual(new Set(holders.map(({ id }) => id)));
      for (const { snippet, matches, type, index } of hits) {
        expect({ type, index }).toEqual({ type: 'tool_result', index: 2 });
        expect(snippet.slice(...matches[0])).toBe('quick brown');
      }
    }
  });

  it('counts hits by step, within a query', async () => {
    const { body } = await search({ q: 'fox', within: 'step:1..2' });
    const at = (step: number) => holders.filter((one) => one.step === step).length;
    expect(body.steps).toEqual([1, 2].map((step) => ({ step, hits: at(step) })));
    expect(body.query).toBe('step:1..2');
  });

  it('finds by a regex over all pages, whatever characters it has', async () => {
    const hits = await all({ q: 'br[o]wn\\s+f(o)x', mode: 'regex', limit: '10' });
    expect(hits).toHaveLength(holders.length);
    expect(new Set(hits.map(({ rollout }) => rollout))).toEqual(new Set(holders.map(({ id }) => id)));
    expect(hits[0].snippet.slice(...hits[0].matches[0])).toBe('brown fox');
    const paths = await get(`/v1/runs/beside/search?mode=regex&q=${encodeURIComponent('/usr/b.n/py')}`);
    expect(paths.body.hits.length).toBeGreaterThan(0);
    expect((await search({ q: '(a+)+$', mode: 'regex' })).status).toBe(200);
  });

  it('finds by a regex within a query, which may contain a regex too', async () => {
    const steps = async (within: string) => {
      const hits = await all({ q: 'quick', mode: 'regex', within });
      return [...new Set(hits.map(({ step }) => step))].toSorted((a, b) => a - b);
    };
    expect(await steps('step:1..2')).toEqual([1, 2]);
    expect(await steps('(name:/nobody/ OR step:2)')).toEqual([2]);
    expect(await steps('name:/nobody/')).toEqual([]);
    expect(await steps('in:tool "fox" step:3')).toEqual([3]);
    expect((await search({ q: 'x', mode: 'regex', within: 'in:tool' })).body).toMatchObject({ code: 'invalid_query' });
    expect((await search({ q: 'x', mode: 'regex', within: ' ' })).body.query).toBeNull();
  });

  it('uses a regex unchanged, and explains an invalid one', async () => {
    const found = async (q: string) => (await all({ q, mode: 'regex' })).length;
    expect(await found(' bro')).toBe(holders.length);
    expect(await found('"|bro')).toBeGreaterThanOrEqual(holders.length);
    for (const q of ['fox\\', 'a)b'])
      expect(await search({ q, mode: 'regex' })).toMatchObject({ status: 422, body: { code: 'invalid_query' } });
    expect(await search({ q: 'x\0', mode: 'regex' })).toMatchObject({ status: 400, body: { code: 'invalid_request' } });
  });

  it('finds nothing by a text without a word', async () => {
    for (const q of ['???', '...', '。', '①']) expect((await search({ q })).body).toMatchObject({ hits: [], steps: [] });
    const found = async (q: string) => (await get(`/v1/runs/${RUN}/rollouts?q=${encodeURIComponent(q)}`)).body.total;
    expect(await found('"???"')).toBe(0);
    expect(await found('in:tool "..."')).toBe(0);
    expect(await found('-"???"')).toBe(rollouts.length);
    expect(await found('("???" OR step:1)')).toBe(rollouts.filter(({ step }) => step === 1).length);
  });

  it('finds both of two messages with one index, in any order of arrival', async () => {
    const twice = seeded('twice', { steps: 1, tasks: 1, n: 1 });
    const message = { eventType: 'message', rolloutEventId: twice[0]!.id, timestamp: 1, index: 1, type: 'assistant_message', metadata: {} };
    const found = async (q: string) => {
      await vi.waitFor(async () => expect((await search({ q }, 'twice')).body.pending).toBe(false), { timeout: 20_000, interval: 100 });
      const { hits, steps } = (await search({ q }, 'twice')).body;
      return [hits.map((hit: any) => [hit.index, hit.type]), steps];
    };
    await upload(server, 'twice', twice);
    expect(await found('again quokka')).toEqual([[], []]);
    for (const content of ['again quokka', 'quokka again']) {
      const events = [{ ...message, eventId: randomUUID(), content }];
      expect(await server.request('POST', '/v1/rollouts', { body: { events } })).toMatchObject({ status: 200 });
      expect(await found(content)).toEqual([[[1, 'assistant_message']], [{ step: 0, hits: 1 }]]);
    }
    expect((await found('add'))[0]).toEqual([[1, 'tool_call']]);
    // A regex finds messages, page by page.
    const hits: any[] = [];
    for (let cursor: string | null = ''; cursor !== null;) {
      const { body }: any = await search({ q: 'quokka', mode: 'regex', limit: '1', ...(cursor ? { cursor } : {}) }, 'twice');
      hits.push(...body.hits);
      cursor = body.next;
    }
    expect(hits.map(({ snippet, index }) => `${index} ${snippet}`).toSorted()).toEqual(['1 again quokka', '1 quokka again']);
  });

  it('finds in all runs of the organisation', async () => {
    const { body } = await get('/v1/search?q=usr%20bin');
    expect(new Set(body.hits.map(({ run }: { run: { name: string } }) => run.name))).toEqual(new Set(['beside']));
  });
});
