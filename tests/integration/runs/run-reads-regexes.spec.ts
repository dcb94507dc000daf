import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { sharedServer, type TestServer } from '../../support/server.ts';
import { seeded, upload } from './run-reads.world.ts';

/** Queries that the database and the service evaluate together. */
const RUN = 'by regex';
const rollouts = seeded(RUN);

let server: TestServer;
const get = (url: string) => server.request('GET', url);

async function ids(url: string): Promise<string[]> {
  const { status, body } = await get(url);
  if (status !== 200) throw new Error(JSON.stringify(body));
  return body.rollouts.map(({ id }: { id: string }) => id);
}

const listed = (q: string, more = '&limit=100') => ids(`/v1/runs/${encodeURIComponent(RUN)}/rollouts?q=${encodeURIComponent(q)}${more}`);

async function exported(query: string): Promise<string[]> {
  const { body } = await server.request('POST', '/v1/exports', { body: { run: RUN, query, format: 'jsonl' } });
  for (const deadline = Date.now() + 30_000; Date.now() < deadline;) {
    const view = (await get(`/v1/exports/${body.id}`)).body;
    if (view.state === 'complete') {
      const text = await (await fetch(view.files[0].url)).text();
      return text
        .split('\n')
        .filter(Boolean)
        .map((line) => JSON.parse(line).rollout_id);
    }
    if (view.state === 'failed') throw new Error(view.error);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error('the export does not finish');
}

beforeAll(async () => {
  server = await sharedServer();
  await upload(server, RUN, rollouts);
  await listed('');
  // Unfinished rollouts are live for ten seconds. These stay live while two lists of live ones are compared.
  await server.database.pool.query(`UPDATE rollouts SET last_at = now() + interval '1 hour' WHERE NOT finished AND id = ANY($1)`, [
    rollouts.map(({ id }) => id),
  ]);
  for (const [at, note] of ['Format only', 'looks odd'].entries()) {
    await server.request('POST', '/v1/annotations', {
      body: { rollout: rollouts[at]!.id, tag: `to review ${at}`, note, verdict: 'bad' },
    });
  }
});
afterAll(() => server.close());

it('a list filtered by a regex has pages by offset', async () => {
  const q = 'name:/^math-[01]$/';
  const whole = await listed(q);
  expect(whole).toHaveLength(rollouts.filter(({ task }) => task < 2).length);
  expect(await listed(q, '&limit=5&offset=7')).toEqual(whole.slice(7, 12));
  expect(await listed(q, `&limit=5&offset=${whole.length}`)).toEqual([]);
});

it('the total of a list filtered by a regex counts no rollout that the regex refuses', async () => {
  const found = await listed('name:/^math-0$/');
  const totalOf = async (more: string) => {
    const { total, total_is } = (
      await get(`/v1/runs/${encodeURIComponent(RUN)}/rollouts?q=${encodeURIComponent('name:/^math-0$/')}${more}`)
    ).body;
    return [total, total_is];
  };
  expect(found.length).toBeLessThan(rollouts.length);
  expect(await totalOf('&limit=100')).toEqual([found.length, 'at_least']);
  expect(await totalOf('&limit=2&offset=1')).toEqual([3, 'at_least']);
  expect(await totalOf(`&limit=2&offset=${rollouts.length}`)).toEqual([0, 'at_least']);
});

describe('a query with a regex finds the same rollouts as its equivalent without one', () => {
  it.each([
    ['tag:/^to re/', 'tag:"to review 0","to review 1"'],
    ['note:/^look/', 'note:"looks odd"'],
    ['verdict:/^b.d$/', 'verdict:bad'],
    ['author:/^no.ody$/', 'author:nobody'],
    ['tool:/^a[d]d$/', 'tool:add'],
    ['-tool:/^a[d]d$/', '-tool:add'],
    ['tool.error:/^a[d]d$/', 'tool.error:add'],
    ['run:/^by re/', `run:"${RUN}"`],
    ['-tag:/review/', '-tag:"to review 0","to review 1"'],
    ['(tag:"to review 1" OR name:/nobody/)', 'tag:"to review 1"'],
    ['(has:error OR name:/nobody/)', 'has:error'],
    ['(has:note step:0 OR name:/nobody/)', 'has:note step:0'],
    ['(is:best OR name:/nobody/)', 'is:best'],
    ['(group.mean:0.1..0.9 OR name:/nobody/)', 'group.mean:0.1..0.9'],
    ['(prov.step:reported state:complete OR name:/nobody/)', 'prov.step:reported state:complete'],
    ['(state:live OR name:/nobody/)', 'state:live'],
    ['("quick brown" step:1 OR name:/nobody/)', '"quick brown" step:1'],
    ['-(is:worst name:/math/)', '-is:worst'],
  ])('%s', async (regex, plain) => {
    const found = (await listed(plain)).toSorted();
    expect((await listed(regex)).toSorted()).toEqual(found);
    expect((await exported(regex)).toSorted()).toEqual(found);
  });
});
