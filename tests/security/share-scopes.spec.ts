import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { seeded, strangerOf, upload } from '../integration/runs/run-reads.world.ts';
import { sharedServer, type TestServer } from '../support/server.ts';

/** A guest reads what the link covers, and nothing else: every way around a link that we could think of. */

let server: TestServer;
const ids: Record<string, string> = {};
const rollouts: Record<string, string[]> = {};
beforeAll(async () => {
  server = await sharedServer();
  for (const name of ['shown', 'other', 'third']) {
    const uploaded = seeded(`scopes ${name}`, { steps: 3, tasks: 2, n: 2 });
    rollouts[name] = uploaded.map(({ id }) => id);
    await upload(server, `scopes ${name}`, uploaded);
    ids[name] = (await server.request('GET', `/v1/runs/${encodeURIComponent(`scopes ${name}`)}`)).body.id;
    await server.request('PATCH', `/v1/runs/${ids[name]}`, { body: { tags: ['internal-tag'] } });
  }
});
afterAll(() => server.close());

type Read = (method: string, path: string, body?: unknown) => Promise<{ status: number; body: any; headers: Headers }>;

/** A browser that opened a link, and nothing else. */
async function guestOf(body: object): Promise<{ read: Read; id: string; url: string; cookie: string }> {
  const created = await server.request('POST', '/v1/shares', { body });
  expect(created.status, JSON.stringify(created.body)).toBe(200);
  const opened = await fetch(created.body.url, { redirect: 'manual' });
  expect(opened.status).toBe(200);
  const cookie = (opened.headers.get('set-cookie') ?? '').split(';')[0]!;
  const headers = { 'x-api-key': '', cookie, 'sec-fetch-site': 'same-origin' };
  const read: Read = (method, path, sent) => server.request(method, path, { headers, ...(sent !== undefined && { body: sent }) });
  return { read, id: created.body.id, url: created.body.url, cookie };
}
const statuses = async (read: Read, paths: readonly string[]) =>
  Promise.all(paths.map(async (path) => `${(await read('GET', path)).status} ${path}`));
const refused = (paths: readonly string[]) => paths.map((path) => `401 ${path}`);

/** Figures of a run that an overview shows. */
const figures = (run: string) => ['', '/summary', '/series?m=reward_mean', '/heatmap', '/steps'].map((path) => `/v1/runs/${run}${path}`);
/** Reads of a run that no link covers. */
const closed = (run: string) =>
  [
    '/rollouts/count',
    '/groups',
    '/tasks',
    '/facets',
    '/tools',
    '/tools/steps',
    '/failures',
    '/moves',
    '/moves?step=1',
    '/tools/check?tool=look',
    '/alerts',
    '/config',
    '/search?q=a',
    '/search?q=a&mode=regex',
  ].map((path) => `/v1/runs/${run}${path}`);
const everywhere = [
  '/v1/runs',
  '/v1/runs?name=scopes%20shown',
  '/v1/me',
  '/v1/members',
  '/v1/keys',
  '/v1/organisation',
  '/v1/shares',
  '/v1/audit',
  '/v1/views',
  '/v1/annotations',
  '/v1/alerts',
  '/v1/alert-events',
  '/v1/webhooks',
  '/v1/review-queues',
  '/v1/browser-sessions',
  '/v1/exports',
  '/v1/sessions',
  '/v1/search?q=a',
  '/v1/environment-usage',
  '/v1/stream',
];

describe('a link to a run', () => {
  test('shows its figures, without its rollouts and without other runs', async () => {
    const { read } = await guestOf({ run: 'scopes shown' });
    const [run, other] = [ids['shown']!, ids['other']!];
    expect(await statuses(read, figures(run))).toEqual(figures(run).map((path) => `200 ${path}`));
    const paths = [
      ...figures(other),
      ...closed(run),
      ...closed(other),
      ...everywhere,
      `/v1/runs/${run}/rollouts`,
      `/v1/rollouts/${rollouts['shown']![0]}/header`,
      `/v1/compare?runs=${run},${other}`,
      `/v1/compare?runs=${run}&runs=${other}`,
      `/v1/stream?run=${run}`,
    ];
    expect(await statuses(read, paths)).toEqual(refused(paths));
  });

  test('is not opened by a name, by another case or by the id in the query string', async () => {
    const { read } = await guestOf({ run: ids['shown'] });
    const [run, other] = [ids['shown']!, ids['other']!];
    expect(await statuses(read, [`/v1/runs/${run.toUpperCase()}/summary`])).toEqual([`200 /v1/runs/${run.toUpperCase()}/summary`]);
    const paths = [
      `/v1/runs/${encodeURIComponent('scopes other')}/summary`,
      `/v1/runs/${other}/summary?run=${run}&id=${run}`,
      `/v1/runs/${run}%2F..%2F${other}/summary`,
      `/v1/runs/${run}%00/summary`,
    ];
    for (const path of paths) expect([path, (await read('GET', path)).status]).toEqual([path, expect.toSatisfy((status) => status >= 400)]);
  });

  test('hides what members wrote', async () => {
    const { read } = await guestOf({ run: 'scopes shown' });
    const { body: view } = await read('GET', `/v1/runs/${ids['shown']}`);
    expect(view).toMatchObject({ name: 'scopes shown', tags: [], settings: {}, retention_days: null });
    expect((await read('GET', `/v1/runs/${ids['shown']}/summary`)).body.advisories).toEqual([]);
    // The answer for guests is not the one for members, for caches too.
    const path = `/v1/runs/${ids['shown']}`;
    const member = await server.request('GET', path);
    expect(member.body.tags).toEqual(['internal-tag']);
    expect((await read('GET', path)).headers.get('etag')).not.toBe(member.headers.get('etag'));
  });

  test('opens the rollouts only if it says so, and lists them without a filter of the guest', async () => {
    const { read } = await guestOf({ run: 'scopes shown', with_rollouts: true });
    const [mine, foreign] = [rollouts['shown']![0]!, rollouts['other']![0]!];
    const { body: list } = await read('GET', `/v1/runs/${ids['shown']}/rollouts`);
    expect(list.total).toBe(12);
    // A filter would answer questions about the annotations of members.
    const filtered = await read('GET', `/v1/runs/${ids['shown']}/rollouts?q=${encodeURIComponent('tag:internal')}`);
    expect(filtered.body).toMatchObject({ total: 12, query: null });
    for (const path of ['', '/header', '/outline', '/messages', '/calls'])
      expect([path, (await read('GET', `/v1/rollouts/${mine}${path}`)).status]).toEqual([path, 200]);
    const paths = [`/v1/rollouts/${foreign}/header`, `/v1/rollouts/${mine}/beside`, `/v1/runs/${ids['other']}/rollouts`];
    expect(await statuses(read, paths)).toEqual(refused(paths));
    const { body: header } = await read('GET', `/v1/rollouts/${mine}/header`);
    expect(header).toMatchObject({ session: null, task: null });
    expect(Object.values(header.neighbours).filter((neighbour) => neighbour !== null)).toEqual([]);
  });
});

describe('a link to a query', () => {
  test('lists what matches now, whatever the guest asks', async () => {
    const { read } = await guestOf({ run: 'scopes shown', q: 'step:1' });
    const list = `/v1/runs/${ids['shown']}/rollouts`;
    const { body } = await read('GET', list);
    expect(body).toMatchObject({ total: 4, query: 'step:1' });
    expect(body.rollouts.map(({ step }: { step: number }) => step)).toEqual([1, 1, 1, 1]);
    for (const q of ['', 'step:0', 'step:0..9', 'step:1) OR (step:0'])
      expect((await read('GET', `${list}?q=${encodeURIComponent(q)}`)).body).toMatchObject({ total: 4, query: 'step:1' });
    expect((await read('GET', `${list}?q=step:0&q=step:2`)).body).toMatchObject({ total: 4, query: 'step:1' });
    // The counts of the run are not those of the list.
    const paths = [...figures(ids['shown']!), ...closed(ids['shown']!), ...everywhere, `/v1/rollouts/${rollouts['shown']![0]}/header`];
    expect(await statuses(read, paths)).toEqual(refused(paths));
  });

  test('a cursor from elsewhere reads no further than the link', async () => {
    const { read } = await guestOf({ run: 'scopes shown', q: 'step:1' });
    const of = async (path: string) => (await server.request('GET', path)).body.next as string;
    const cursors = await Promise.all([
      of(`/v1/runs/${ids['shown']}/rollouts?limit=1`),
      of(`/v1/runs/${ids['other']}/rollouts?limit=2`),
      of(`/v1/runs/${ids['shown']}/rollouts?limit=1&q=step:0`),
    ]);
    for (const cursor of cursors) {
      const { body } = await read('GET', `/v1/runs/${ids['shown']}/rollouts?cursor=${encodeURIComponent(cursor)}`);
      expect(body.rollouts.every(({ step }: { step: number }) => step === 1)).toBe(true);
      expect(body.total).toBe(4);
    }
  });

  test('with rollouts it opens those that match, until they no longer do', async () => {
    const [first, second] = rollouts['shown']! as [string, string];
    for (const rollout of [first, second]) await server.request('POST', '/v1/annotations', { body: { rollout, tag: 'keep' } });
    const { read } = await guestOf({ run: 'scopes shown', q: 'tag:keep', with_rollouts: true });
    expect((await read('GET', `/v1/runs/${ids['shown']}/rollouts`)).body.total).toBe(2);
    for (const path of ['', '/header', '/outline', '/messages', '/calls', '/messages/0/body'])
      expect([path, (await read('GET', `/v1/rollouts/${first}${path}`)).status]).toEqual([path, 200]);
    for (const path of ['', '/header', '/outline', '/messages', '/calls', '/messages/0/body', '/objects/x'])
      expect([path, (await read('GET', `/v1/rollouts/${rollouts['shown']![5]}${path}`)).status]).toEqual([path, 404]);
    expect((await read('GET', `/v1/rollouts/${rollouts['other']![0]}/header`)).status).toBe(401);

    const { body } = await server.request('GET', `/v1/annotations?rollout=${first}`);
    for (const { id } of body.annotations) await server.request('DELETE', `/v1/annotations/${id}`);
    expect((await read('GET', `/v1/rollouts/${first}/header`)).status).toBe(404);
    expect((await read('GET', `/v1/runs/${ids['shown']}/rollouts`)).body.total).toBe(1);
    expect((await read('GET', `/v1/rollouts/${second}/header`)).status).toBe(200);
  });
});

describe('a link to a comparison', () => {
  test('of runs shows these runs and no third one', async () => {
    const { read } = await guestOf({ runs: ['scopes shown', 'scopes other'] });
    const [a, b, third] = [ids['shown']!, ids['other']!, ids['third']!];
    const open = [
      ...figures(a),
      ...figures(b),
      `/v1/compare?runs=${a},${b}`,
      `/v1/compare?runs=${b}&runs=${a}`,
      `/v1/compare/tasks?runs=${a},${b}`,
    ];
    expect(await statuses(read, open)).toEqual(open.map((path) => `200 ${path}`));
    const paths = [
      ...figures(third),
      ...closed(a),
      ...everywhere,
      `/v1/compare?runs=${a},${third}`,
      `/v1/compare?runs=${a},${b}&runs=${third}`,
      `/v1/compare?runs=${a}&runs=${b},${third}`,
      `/v1/compare?runs=${a},${encodeURIComponent('scopes third')}`,
      `/v1/compare/tasks?runs=${a},${third}`,
      `/v1/compare`,
      `/v1/runs/${a}/rollouts`,
      `/v1/rollouts/${rollouts['shown']![0]}/header`,
    ];
    expect(await statuses(read, paths)).toEqual(refused(paths));
  });

  test('of three rollouts shows these three, and no fourth', async () => {
    const [a, b, c, d] = rollouts['shown']! as [string, string, string, string];
    const { read } = await guestOf({ rollouts: [a, b, c] });
    const open = [`/v1/diff?a=${a}&b=${b}`, `/v1/diff?a=${c}&b=${a}`, `/v1/rollouts/${c}/messages`, `/v1/rollouts/${b}/header`];
    expect(await statuses(read, open)).toEqual(open.map((path) => `200 ${path}`));
    const paths = [`/v1/diff?a=${a}&b=${d}`, `/v1/rollouts/${d}/header`];
    expect(await statuses(read, paths)).toEqual(refused(paths));
  });

  test('of rollouts shows these two', async () => {
    const [a, b, c] = rollouts['shown']! as [string, string, string];
    const { read } = await guestOf({ rollouts: [a, b] });
    const open = [`/v1/diff?a=${a}&b=${b}`, `/v1/diff?a=${b}&b=${a}`, `/v1/rollouts/${a}/messages`, `/v1/rollouts/${b}/header`];
    expect(await statuses(read, open)).toEqual(open.map((path) => `200 ${path}`));
    const { body: diff } = await read('GET', open[0]!);
    expect([diff.a.session, diff.b.session, diff.a.task]).toEqual([null, null, null]);
    const paths = [
      `/v1/diff?a=${a}&b=${c}`,
      `/v1/diff?a=${a}&b=${b}&b=${c}`,
      `/v1/diff?a=${a}`,
      `/v1/rollouts/${c}/header`,
      ...figures(ids['shown']!),
      `/v1/runs/${ids['shown']}/rollouts`,
      ...everywhere,
    ];
    expect(await statuses(read, paths)).toEqual(refused(paths));
  });
});

const KINDS = (): [string, object, string][] => [
  ['run', { run: 'scopes shown' }, `/v1/runs/${ids['shown']}/summary`],
  ['query', { run: 'scopes shown', q: 'step:1' }, `/v1/runs/${ids['shown']}/rollouts`],
  ['runs', { runs: ['scopes shown', 'scopes other'] }, `/v1/compare?runs=${ids['shown']},${ids['other']}`],
  ['rollouts', { rollouts: rollouts['shown']!.slice(0, 2) }, `/v1/diff?a=${rollouts['shown']![0]}&b=${rollouts['shown']![1]}`],
];

describe('every kind of link', () => {
  test('ends at once when it is revoked or expires', async () => {
    for (const [kind, body, path] of KINDS()) {
      const revoked = await guestOf(body);
      expect([kind, (await revoked.read('GET', path)).status]).toEqual([kind, 200]);
      await server.request('DELETE', `/v1/shares/${revoked.id}`);
      expect([kind, (await revoked.read('GET', path)).status]).toEqual([kind, 401]);
      expect((await fetch(revoked.url)).status).toBe(404);
      expect((await fetch(`${revoked.url}/image.png`)).status).toBe(404);

      const late = await guestOf(body);
      await server.database.pool.query(`UPDATE share_links SET expires_at = now() - interval '1 second' WHERE id = $1`, [late.id]);
      expect([kind, (await late.read('GET', path)).status]).toEqual([kind, 401]);
      expect((await fetch(`${late.url}/image.png`)).status).toBe(404);
    }
  });

  test('changes nothing', async () => {
    for (const [kind, body] of KINDS()) {
      const { read, id } = await guestOf(body);
      const writes: [string, string, object?][] = [
        ['PATCH', `/v1/runs/${ids['shown']}`, { tags: ['x'] }],
        ['DELETE', `/v1/runs/${ids['shown']}`],
        ['DELETE', `/v1/rollouts/${rollouts['shown']![0]}`],
        ['POST', '/v1/annotations', { rollout: rollouts['shown']![0], verdict: 'bad' }],
        ['POST', '/v1/shares', { run: 'scopes shown' }],
        ['DELETE', `/v1/shares/${id}`],
        ['POST', '/v1/exports', { run: ids['shown'], format: 'jsonl' }],
        ['POST', '/v1/keys', { name: 'mine', scopes: ['rollouts'] }],
        ['POST', '/v1/views', { name: 'x', run: ids['shown'], q: '' }],
      ];
      for (const [method, path, sent] of writes)
        expect([kind, method, path, (await read(method, path, sent)).status]).toEqual([kind, method, path, 401]);
    }
  });

  test('has its token nowhere but in its own answer', async () => {
    for (const [, body] of KINDS()) {
      const { url, id, read } = await guestOf(body);
      const token = url.split('/').at(-1)!;
      expect(token).toMatch(/^[\w-]{43}$/);
      const stored = await server.database.pool.query('SELECT l.*, encode(hash, $1) AS h FROM share_links l WHERE id = $2', ['escape', id]);
      expect(JSON.stringify(stored.rows)).not.toContain(token);
      for (const answer of [
        await read('GET', '/v1/shared'),
        await server.request('GET', '/v1/shares'),
        await server.request('GET', '/v1/audit'),
      ])
        expect(JSON.stringify(answer.body)).not.toContain(token);
      for (const path of [url, `${url}/image.png`]) expect((await fetch(path)).headers.get('referrer-policy')).toBe('no-referrer');
      const page = await (await fetch(url)).text();
      expect(page.match(/http-equiv="refresh" content="([^"]*)"/)?.[1]).not.toContain(token);
    }
  });

  test('is created only for what the member may read', async () => {
    const stranger = await strangerOf(server);
    for (const [kind, body] of KINDS()) {
      const answer = await server.request('POST', '/v1/shares', { headers: stranger, body });
      expect([kind, answer.status, answer.body.code]).toEqual([kind, 404, kind === 'rollouts' ? 'rollout_not_found' : 'run_not_found']);
    }
    const bodies: object[] = [
      {},
      { run: 'scopes shown', rollout: rollouts['shown']![0] },
      { rollout: rollouts['shown']![0], q: 'step:1' },
      { rollout: rollouts['shown']![0], with_rollouts: true },
      { run: 'scopes shown', message: 1 },
      { runs: ['scopes shown'] },
      { runs: ['scopes shown', ids['shown']] },
      { rollouts: [rollouts['shown']![0], rollouts['shown']![0]] },
      { rollouts: rollouts['shown']!.slice(0, 5) },
      { run: 'scopes shown', q: 'stop:nonsense' },
      { run: 'scopes shown', q: '(' },
      { kind: 'run', run: 'scopes shown' },
    ];
    for (const body of bodies) {
      const { status } = await server.request('POST', '/v1/shares', { body });
      expect([body, status]).toEqual([body, expect.toSatisfy((code) => code === 400 || code === 422)]);
    }
  });

  test('ends with its run, even when another run takes its id as a name', async () => {
    const uploaded = seeded('scopes doomed', { steps: 2, tasks: 1, n: 2 });
    await upload(server, 'scopes doomed', uploaded);
    const { body: run } = await server.request('GET', '/v1/runs/scopes%20doomed');
    const guests = await Promise.all([
      guestOf({ run: run.id, with_rollouts: true }),
      guestOf({ run: run.id, q: 'step:0', with_rollouts: true }),
      guestOf({ runs: [run.id, ids['shown']] }),
    ]);
    await server.request('DELETE', `/v1/runs/${run.id}`);
    await upload(server, run.id, seeded('scopes heir', { steps: 2, tasks: 1, n: 2 }));
    for (const { read, url } of guests) {
      const paths = [
        ...figures(run.id),
        `/v1/runs/${run.id}/rollouts`,
        `/v1/compare?runs=${run.id},${ids['shown']}`,
        `/v1/rollouts/${uploaded[0]!.id}/header`,
      ];
      expect(await statuses(read, paths)).toEqual(refused(paths));
      expect((await read('GET', '/v1/shared')).body.code).toBe('share_not_found');
      expect((await fetch(url)).status).toBe(404);
    }
    const { body: list } = await server.request('GET', '/v1/shares');
    expect(JSON.stringify(list)).not.toContain(run.id);
  });

  test('gives a signed-in reader of another organisation nothing but its page', async () => {
    const { body: member } = await server.request('POST', '/v1/members', { body: { name: `sharer-${Date.now()}` } });
    expect(member.id).toBeDefined();
    const stranger = await strangerOf(server);
    const { cookie } = await guestOf({ run: 'scopes shown' });
    const path = `/v1/runs/${ids['shown']}/summary`;
    // With the reader's own key the link does not count.
    expect((await server.request('GET', path, { headers: { ...stranger, cookie } })).status).toBe(404);
    expect((await server.request('GET', path, { headers: { ...stranger, cookie, 'x-palestra-guest': '1' } })).status).toBe(404);
    // The header alone opens nothing.
    expect((await server.request('GET', path, { headers: { 'x-api-key': '', 'x-palestra-guest': '1' } })).status).toBe(401);
  });
});
