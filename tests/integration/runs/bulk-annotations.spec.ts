import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { sharedServer, type TestServer } from '../../support/server.ts';
import { seeded, strangerOf, upload } from './run-reads.world.ts';

const RUN = 'tagged in bulk';
const rollouts = seeded(RUN, { steps: 4, tasks: 4, n: 4 });
const path = `/v1/runs/${encodeURIComponent(RUN)}`;

let server: TestServer;
let stranger: Record<string, string>;
const ask = (method: string, url: string, body?: unknown, headers = {}) => server.request(method, url, { body, headers });
const many = (body: object, headers = {}) => ask('POST', `${path}/annotations`, body, headers);
const total = async (q: string) => (await ask('GET', `${path}/rollouts?q=${encodeURIComponent(q)}`)).body.total as number;
const count = async (q: string) => (await ask('GET', `${path}/rollouts/count?q=${encodeURIComponent(q)}`)).body;

/** Sends pages until the end, as a page does. */
async function all(body: object): Promise<{ annotated: number; unchanged: number; requests: number }> {
  const sums = { annotated: 0, unchanged: 0, requests: 0 };
  let cursor: string | null | undefined;
  do {
    const { status, body: page } = await many({ ...body, ...(cursor && { cursor }) });
    expect({ status, page }).toMatchObject({ status: 200, page: { not_found: 0 } });
    sums.annotated += page.annotated;
    sums.unchanged += page.unchanged;
    sums.requests += 1;
    cursor = page.next;
  } while (cursor);
  return sums;
}

beforeAll(async () => {
  server = await sharedServer();
  stranger = await strangerOf(server);
  await upload(server, RUN, rollouts);
});
afterAll(() => server.close());

describe('one verdict or tag for many rollouts', () => {
  it('rejects a missing key, a key without the scope, and runs of others', async () => {
    const body = { tag: 'x', rollouts: [rollouts[0]!.id] };
    expect(await many(body, { 'x-api-key': '' })).toMatchObject({ status: 401 });
    const { body: key } = await ask('POST', '/v1/keys', { name: 'plays only', scopes: ['sessions'] });
    expect(await many(body, { 'x-api-key': key.key })).toMatchObject({ status: 403, body: { code: 'scope_missing' } });
    expect(await many(body, stranger)).toMatchObject({ status: 404, body: { code: 'run_not_found' } });
    expect(await ask('GET', `${path}/rollouts/count`, undefined, stranger)).toMatchObject({ status: 404 });
    expect(await total('tag:x')).toBe(0);
  });

  it('rejects bodies without one annotation and one choice of rollouts, and too many ids', async () => {
    const ids = [rollouts[0]!.id];
    const tooMany = Array.from({ length: 1_001 }, () => randomUUID());
    for (const bad of [
      { rollouts: ids },
      { tag: 'x', verdict: 'good', rollouts: ids },
      { tag: 'x' },
      { tag: 'x', rollouts: [] },
      { tag: 'x', rollouts: tooMany },
      { tag: 'x', rollouts: ids, query: '', as_of: '1' },
      { tag: 'x', query: '' },
      { tag: 'x', query: '', as_of: '1', limit: 1_001 },
      { tag: 'x', query: '', as_of: '-1' },
    ])
      expect({ bad, ...(await many(bad)) }).toMatchObject({ bad, status: 422, body: { code: 'invalid_body' } });
    expect(await many({ tag: 'x', query: 'rewrad:1', as_of: '1' })).toMatchObject({ status: 422, body: { code: 'invalid_query' } });
    expect(await many({ tag: 'x', query: '', as_of: '1', cursor: 'x' })).toMatchObject({ body: { code: 'invalid_cursor' } });
  });

  it('annotates rollouts by id once, however often it is asked', async () => {
    const chosen = rollouts.slice(0, 3).map(({ id }) => id);
    const body = { verdict: 'good', rollouts: [...chosen, chosen[0]!, randomUUID()] };
    expect((await many(body)).body).toEqual({ annotated: 3, unchanged: 0, not_found: 1, next: null });
    expect((await many(body)).body).toEqual({ annotated: 0, unchanged: 3, not_found: 1, next: null });
    expect(await total('verdict:good')).toBe(3);
    // Another verdict of the same author is new, and so is the first one after it.
    expect((await many({ ...body, verdict: 'bad' })).body).toMatchObject({ annotated: 3 });
    expect((await many(body)).body).toMatchObject({ annotated: 3 });
  });

  it('annotates what was counted, page by page, and nothing that arrived later', async () => {
    const q = 'step:1..2 -tag:seen';
    const { count: counted, count_is: countIs, as_of: asOf } = await count(q);
    expect({ counted, countIs }).toEqual({ counted: 32, countIs: 'exact' });
    const later = { ...seeded('later')[0]!, id: randomUUID(), step: 1 };
    await upload(server, RUN, [later]);
    expect(await count(q)).toMatchObject({ count: 33 });
    // Each page changes what the query finds. The next one continues behind it.
    expect(await all({ tag: 'seen', query: q, as_of: asOf, limit: 7 })).toEqual({ annotated: 32, unchanged: 0, requests: 5 });
    expect(await total('tag:seen')).toBe(32);
    expect(await all({ tag: 'seen', query: 'step:1..2', as_of: asOf })).toEqual({ annotated: 0, unchanged: 32, requests: 1 });
    await ask('DELETE', `/v1/rollouts/${later.id}`);
  });

  it.each([
    ['the organisation', ''],
    ['the run', `run=${encodeURIComponent(RUN)}`],
  ])('lists those of %s page by page, also of one moment', async (_name, scope) => {
    const list = async (more: string) => {
      const found: { id: string; tag: string | null; created_at: string }[] = [];
      let cursor: string | null = '';
      for (; cursor !== null;) {
        const { status, body } = await ask('GET', `/v1/annotations?${scope}${more}&limit=7${cursor && `&cursor=${cursor}`}`);
        expect({ status, size: body.annotations.length <= 7 }).toEqual({ status: 200, size: true });
        found.push(...body.annotations);
        cursor = body.next;
      }
      expect(new Set(found.map(({ id }) => id)).size).toBe(found.length);
      expect(found.map(({ created_at: at }) => at)).toEqual(
        found
          .map(({ created_at: at }) => at)
          .toSorted()
          .toReversed(),
      );
      return found;
    };
    const seen = await list('&tag=seen');
    expect(seen.map(({ tag }) => tag)).toEqual(Array.from({ length: 32 }, () => 'seen'));
    expect((await list('')).filter(({ tag }) => tag === 'seen')).toEqual(seen);
    expect(await list('&tag=never')).toEqual([]);
    expect((await ask('GET', '/v1/annotations?tag=seen', undefined, stranger)).body).toEqual({ annotations: [], next: null });
  });

  it('counts and annotates the rollouts of a regex', async () => {
    const q = 'in:assistant /It is [024]\\./';
    const { count: counted, count_is: countIs, as_of: asOf } = await count(q);
    expect({ counted, countIs }).toEqual({ counted: 48, countIs: 'exact' });
    expect(await all({ tag: 'even', query: q, as_of: asOf, limit: 20 })).toMatchObject({ annotated: 48 });
    expect(await total('tag:even')).toBe(48);
  });

  it('annotates once when equal requests arrive at the same time', async () => {
    const { as_of: asOf } = await count('step:3');
    const body = { tag: 'twice', query: 'step:3', as_of: asOf };
    const answers = await Promise.all([many(body), many(body)]);
    expect(answers.map(({ status }) => status)).toEqual([200, 200]);
    expect(answers.reduce((sum, { body: page }) => sum + page.annotated, 0)).toBe(16);
    const { rows } = await server.database.pool.query(`SELECT count(*)::int AS n FROM annotations WHERE tag = 'twice'`);
    expect(rows[0].n).toBe(16);
  });

  it('leaves no annotation of a rollout that is erased meanwhile', async () => {
    const gone = seeded('gone', { steps: 1, tasks: 4, n: 4 });
    await upload(server, RUN, gone);
    const body = { tag: 'gone', rollouts: gone.map(({ id }) => id) };
    const [answer, ...erased] = await Promise.all([many(body), ...gone.map(({ id }) => ask('DELETE', `/v1/rollouts/${id}`))]);
    expect(answer.status).toBe(200);
    expect(answer.body.annotated + answer.body.not_found).toBe(16);
    expect(new Set(erased.map(({ status }) => status))).toEqual(new Set([200]));
    const { rows } = await server.database.pool.query(`SELECT count(*)::int AS n FROM annotations WHERE tag = 'gone'`);
    expect(rows[0].n).toBe(0);
  });

  it('is in the audit log', async () => {
    const { events } = (await ask('GET', '/v1/audit?action=annotation.bulk&limit=1')).body;
    expect(events).toMatchObject([{ action: 'annotation.bulk', target: { id: RUN }, details: { of: 'rollouts', verdict: null } }]);
  });
});

describe('an export of chosen rollouts', () => {
  it('has these rollouts only, and none that arrived after the count', async () => {
    const chosen = rollouts.slice(0, 5).map(({ id }) => id);
    const { as_of: asOf } = await count('');
    const later = { ...seeded('after the count')[0]!, id: randomUUID() };
    await upload(server, RUN, [later]);
    const finished = async (body: object) => {
      const { status, body: job } = await ask('POST', '/v1/exports', { run: RUN, format: 'jsonl', ...body });
      expect(status).toBe(200);
      await expect.poll(async () => (await ask('GET', `/v1/exports/${job.id}`)).body.state).toBe('complete');
      return (await ask('GET', `/v1/exports/${job.id}`)).body;
    };
    expect(await finished({ rollouts: [...chosen, randomUUID()] })).toMatchObject({ chosen: 6, total: 5, written: 5 });
    expect(await finished({ rollouts: chosen, query: `id:${chosen[0]}` })).toMatchObject({ total: 1, written: 1 });
    expect(await finished({ as_of: asOf })).toMatchObject({ chosen: null, total: 64, written: 64 });
    expect(await ask('POST', '/v1/exports', { run: RUN, rollouts: [] })).toMatchObject({ status: 422 });
  });
});
