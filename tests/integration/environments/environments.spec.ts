import { type RunningServer, serve } from '@palestra/environment-kit';
import type { Caller, EnvironmentDirectory } from '@palestra/session';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { echo } from '../../../apps/environments/src/echo/echo.environment.ts';
import { sharedServer, type TestServer } from '../../support/server.ts';
import { createCaller, ownerOf } from '../../support/callers.ts';
import { startCuttingProxy } from '../../support/cutting-proxy.ts';
import { anotherReplica } from './environments.world.ts';

/** The registry over HTTP, and the directory that sessions resolve names by, with a real environment server behind. */
let server: TestServer;
let upstream: RunningServer;
let stranger: Awaited<ReturnType<typeof createCaller>>;
let owner: Caller;

beforeAll(async () => {
  upstream = await serve([echo]);
  server = await sharedServer();
  stranger = await createCaller(server, 'strangers');
  owner = await ownerOf(server);
});
afterAll(async () => {
  await server?.close();
  await upstream?.close();
});

const org = () => server.orgName;
const post = (body: object, headers = {}) => server.request('POST', '/v1/environments', { body, headers });
const get = (path: string, headers = {}) => server.request('GET', path, { headers });
const remote = () => ({ kind: 'remote', url: upstream.url });

describe('POST /v1/environments', () => {
  test('refuses invalid names, foreign namespaces and missing keys', async () => {
    for (const name of ['ab', 'a b c', 'ü-ber', 'x'.repeat(65), undefined]) {
      const answer = await post({ name, description: '' });
      expect(answer.status).toBe(422);
      expect(answer.body.message).toContain('name');
    }
    expect((await post({ name: 'mine', namespace: 'others' })).status).toBe(403);
    expect((await post({ name: 'mine' }, { 'x-api-key': 'wrong' })).status).toBe(401);
    expect((await post({ name: 'mine' }, { 'x-api-key': '' })).status).toBe(401);
  });

  test('refuses a missing server, and one that is not an environment', async () => {
    const dead = await post({ name: 'dead', source: { kind: 'remote', url: 'http://127.0.0.1:9' } });
    expect(dead).toMatchObject({ status: 400, body: { code: 'invalid_request' } });
    expect(dead.body.detail).toContain('source.url');
    expect((await post({ name: 'self', source: { kind: 'remote', url: server.url } })).status).toBe(400);
    expect((await post({ name: 'file', source: { kind: 'remote', url: 'file:///etc/passwd' } })).status).toBe(422);
    expect((await get(`/v1/environments/${org()}/dead`)).status).toBe(404);
  });

  test('creates what orwd creates; a duplicate is a 4xx with a message', async () => {
    const body = { name: 'foo', namespace: org(), description: 'd', isPrivate: true, isHarbor: true };
    const created = await post(body);
    expect(created).toMatchObject({
      status: 200,
      body: { owner: org(), name: 'foo', is_private: true, status: 'unlinked', source: { kind: 'none' } },
    });
    expect(typeof created.body.id).toBe('string');
    const again = await post(body);
    expect(again).toMatchObject({ status: 409, body: { code: 'environment_exists' } });
    expect(again.body.message).toContain(`${org()}/foo`);
  });

  test('adds a running server and shows what it offers', async () => {
    const created = await post({ name: 'remote-echo', description: 'echoes', isPrivate: false, source: remote() });
    expect(created).toMatchObject({
      status: 200,
      body: { split_types: ['train'], status: 'ready', source: { kind: 'remote', url: upstream.url } },
    });
    const path = `/v1/environments/${org()}/remote-echo`;
    const discovery = await get(`${path}/discovery`);
    expect(discovery.body.variants).toMatchObject([
      { name: 'echo', is_default: true, splits: [{ name: 'train', type: 'train', num_tasks: 1000 }] },
    ]);
    expect(discovery.body.variants[0].tools.tools).toMatchObject([{ name: 'echo' }]);
    expect((await get(`${path}/variants`)).body).toEqual([{ id: expect.any(String), name: 'echo' }]);
    const tasks = await get(`${path}/tasks?split=train&start=998&limit=5`);
    expect(tasks.body).toEqual({
      split: 'train',
      start: 998,
      total: 1000,
      tasks: [
        { index: 998, task_spec: { id: 998 } },
        { index: 999, task_spec: { id: 999 } },
      ],
    });
    expect(await get(`${path}/tasks?split=nope`)).toMatchObject({ status: 400, body: { code: 'invalid_split' } });
    expect(await get(`${path}/tasks?split=train&variant=zzz`)).toMatchObject({ status: 404, body: { code: 'unknown_variant' } });
  });
});

describe('who sees what', () => {
  test('a public environment is readable without a key, a private one only by its organisation', async () => {
    expect((await fetch(`${server.url}/v1/environments/${org()}/remote-echo`)).status).toBe(200);
    expect((await (await fetch(`${server.url}/v1/environments/${org()}/remote-echo`)).json()).source).toEqual({ kind: 'remote' });
    expect((await fetch(`${server.url}/v1/environments/${org()}/foo`)).status).toBe(404);
    expect(await get(`/v1/environments/${org()}/foo`, stranger.headers)).toMatchObject({
      status: 404,
      body: { code: 'environment_not_found' },
    });
    expect((await get(`/v1/environments?owner=${org()}`, stranger.headers)).body.environments).toHaveLength(1);
    expect((await get(`/v1/environments?owner=${org()}`)).body).toMatchObject({ total: 2 });
    expect((await get(`/v1/environments?search=ECHOES`)).body).toMatchObject({ total: 1, environments: [{ name: 'remote-echo' }] });
    expect((await get(`/v1/environments?search=${org()}/remote`)).body.total).toBe(1);
    expect((await get(`/v1/environments?limit=101`)).status).toBe(422);
    expect((await get(`/v1/environments/${org()}/nope%2Fx`)).status).toBe(404);
  });

  test('only its organisation may change an environment', async () => {
    const path = `/v1/environments/${org()}/remote-echo`;
    const body = { new_description: 'taken' };
    expect((await server.request('PUT', `${path}/details`, { body, headers: stranger.headers })).status).toBe(403);
    expect((await server.request('DELETE', path, { headers: stranger.headers })).status).toBe(403);
    expect((await server.request('PUT', `${path}/details`, { body: { new_name: 'foo' } })).status).toBe(409);
    const changed = await server.request('PUT', `${path}/details`, { body: { new_description: 'new', new_arxiv_url: null } });
    expect(changed).toMatchObject({ status: 200, body: { owner: org(), name: 'remote-echo', description: 'new' } });
  });

  test('links with credentials are refused, because everyone who sees the environment sees them', async () => {
    for (const new_external_github_url of ['https://token@git.example/acme/envs', 'https://me:token@git.example/acme/envs.git']) {
      const refused = await server.request('PUT', `/v1/environments/${org()}/remote-echo/details`, { body: { new_external_github_url } });
      expect(refused).toMatchObject({ status: 422, body: { code: 'invalid_body' } });
      expect(JSON.stringify(refused.body)).not.toContain('token');
    }
  });

  test('required secrets, also by a bare name with an empty owner', async () => {
    expect(await get(`/v1/environments/${org()}/remote-echo/required-secrets`)).toMatchObject({ status: 200, body: { secrets: [] } });
    expect(await get(`/v1/environments//remote-echo/required-secrets`)).toMatchObject({ status: 200, body: { secrets: [] } });
    expect((await get(`/v1/environments//nope/required-secrets`)).status).toBe(404);
  });
});

describe('GitHub and billing', () => {
  test('return the required answers of a server without them', async () => {
    const { id } = (await get(`/v1/environments/${org()}/foo`)).body;
    expect(await get('/v1/github/auth-status')).toMatchObject({ status: 200, body: { status: 'success' } });
    expect(await get(`/v1/github/environments/${id}/deployments`)).toMatchObject({ status: 200, body: [] });
    expect((await get(`/v1/github/environments/${id}/deployments`, stranger.headers)).status).toBe(404);
    expect((await get(`/v1/github/environments/nope/deployments`)).status).toBe(404);
    expect(await get('/v1/github/repos')).toMatchObject({ status: 200, body: { status: 'success', repos: [] } });
    expect(await get('/v1/github/install-url')).toMatchObject({ status: 501, body: { code: 'not_available' } });
    for (const path of ['deployments/x/logs', 'task-builds/x/logs'])
      expect(await get(`/v1/github/${path}`)).toMatchObject({ status: 404, body: { code: 'deploy_not_found' } });
    expect(await get('/v1/billing/api-usage?days=7&granularity=daily')).toMatchObject({ status: 200, body: { byService: [], daily: [] } });
    expect((await get('/v1/billing/api-usage?days=91')).status).toBe(422);
  });
});

describe('the directory', () => {
  /** Of another API process on the same database, whose clock we hold: it sees changes when its memory is old. */
  let replica: ReturnType<typeof anotherReplica>;
  let directory: EnvironmentDirectory;
  beforeAll(() => {
    replica = anotherReplica(server);
    directory = replica.directory;
  });
  afterAll(() => replica?.close());
  const me = () => owner;
  const code = (promise: Promise<unknown>) =>
    promise.then(
      () => 'resolved',
      (error: { code: string; detail: string }) => `${error.code} ${error.detail}`,
    );

  test('reads the version of a session again while PostgreSQL is away for a moment', async () => {
    const { versionId } = await directory.resolve(`${org()}/remote-echo`, me());
    const target = new URL(server.config.databaseUrl!);
    const network = await startCuttingProxy(Number(target.port));
    target.port = String(network.port);
    const distant = anotherReplica(server, target.href);
    const accept = network.refuse();
    const read = distant.directory.version(versionId);
    setTimeout(accept, 300);
    await expect(read).resolves.toMatchObject({ versionId, name: 'remote-echo' });
    await distant.close();
    await network.close();
  });

  test('resolves full, bare and pinned names, and no private environments of others', async () => {
    const hosted = await directory.resolve(`${org()}/remote-echo`, me());
    expect(hosted).toMatchObject({ owner: org(), name: 'remote-echo' });
    expect((await directory.resolve('remote-echo', stranger.caller)).versionId).toBe(hosted.versionId);
    expect((await directory.resolve(`${org()}/remote-echo@1`, me())).versionId).toBe(hosted.versionId);
    for (const name of [`${org()}/foo`, `${org()}/Remote-Echo`, `${org()}/remote-echo@2`, 'nope', '', null, 'a/b/c', '\0']) {
      expect(await code(directory.resolve(name, stranger.caller))).toMatch(/^deployment_not_found Deployment not found\./);
    }
    expect(await code(directory.resolve(`${org()}/foo`, me()))).toContain('has no server yet');
  });

  test('the name resolves to a new version, and the old one stays for its sessions', async () => {
    const before = await directory.resolve(`${org()}/remote-echo`, me());
    const added = await server.request('POST', `/v1/environments/${org()}/remote-echo/versions`, { body: { source: remote() } });
    expect(added).toMatchObject({ status: 200, body: { number: 2 } });
    replica.later();
    const after = await directory.resolve(`${org()}/remote-echo`, me());
    expect(after.versionId).toBe(added.body.id);
    expect((await directory.version(before.versionId)).versionId).toBe(before.versionId);
    expect((await directory.resolve(`${org()}/remote-echo@1`, me())).versionId).toBe(before.versionId);
  });

  test('does not query the database while its cache is fresh', async () => {
    const before = replica.queries();
    await Promise.all(Array.from({ length: 50 }, () => directory.resolve(`${org()}/remote-echo`, me())));
    expect(replica.queries() - before).toBe(0);
  });

  test("the caller's namespace comes first, two foreign ones are ambiguous", async () => {
    const body = { name: 'remote-echo', isPrivate: false, source: remote() };
    expect((await post(body, stranger.headers)).status).toBe(200);
    replica.later();
    expect((await directory.resolve('remote-echo', stranger.caller)).owner).toBe(stranger.caller.orgName);
    expect((await directory.resolve('remote-echo', me())).owner).toBe(org());
    const third = { ...me(), orgId: '00000000-0000-4000-8000-000000000000', orgName: 'third' };
    const both = [org(), stranger.caller.orgName].map((owner) => `${owner}/remote-echo`);
    expect(await code(directory.resolve('remote-echo', third))).toContain(both.toSorted().join(', '));
  });

  test('a deleted environment does not exist, also for its sessions', async () => {
    const hosted = await directory.resolve(`${stranger.caller.orgName}/remote-echo`, stranger.caller);
    const deleted = await server.request('DELETE', `/v1/environments/${stranger.caller.orgName}/remote-echo`, {
      headers: stranger.headers,
    });
    expect(deleted).toMatchObject({ status: 200, body: { deleted: true } });
    replica.later();
    expect(await code(directory.resolve(`${stranger.caller.orgName}/remote-echo`, stranger.caller))).toContain('deployment_not_found');
    expect(await code(directory.version(hosted.versionId))).toContain('session_lost');
  });
});

test('after the death of a server the page shows the last discovery and the reason, and requests for tasks are refused', async () => {
  const short = await serve([echo]);
  expect((await post({ name: 'short-lived', isPrivate: false, source: { kind: 'remote', url: short.url } })).status).toBe(200);
  await short.close();
  const path = `/v1/environments/${org()}/short-lived`;
  expect((await get(`${path}/discovery`)).body.variants[0].splits[0].num_tasks).toBe(1000);
  const refused = await get(`${path}/tasks?split=train`, stranger.headers);
  expect(refused.body.detail).toBe('The environment server could not be reached (ECONNREFUSED).');
  expect(await get(`${path}/tasks?split=train`)).toMatchObject({ status: 503, body: { code: 'backend_unreachable' } });
});

describe('PUT /v1/environments/{owner}/{name}/report', () => {
  const check = { id: 'semantic.oracle_max', title: 'A solution reaches the maximum reward', status: 'failed', detail: 'Correct it.' };
  const player = {
    name: 'random',
    description: 'Guesses.',
    split: 'test',
    tasks: 5,
    samples: 1,
    mean: 0.2,
    low: 0,
    high: 0.5,
    solved: 0.2,
  };
  const report = { created_at: '2026-11-27T12:00:00Z', kit: '0.1.0', checks: [check], players: [player], reward_range: [0, 1] };
  const put = (path: string, body: object, headers = {}) => server.request('PUT', `${path}/report`, { body, headers });

  test('refuses invalid reports, foreign and missing environments, and one without a server', async () => {
    await post({ name: 'reported', isPrivate: true, source: remote() });
    await post({ name: 'reported-public', isPrivate: false, source: remote() });
    await post({ name: 'serverless' });
    const path = `/v1/environments/${org()}/reported`;
    for (const broken of [
      { ...report, checks: [{ ...check, status: 'maybe' }] },
      { ...report, checks: [{ ...check, detail: 'a\0b' }] },
      { ...report, checks: [{ ...check, detail: '\ud800' }] },
      { ...report, players: [{ ...player, solved: 2 }] },
      { ...report, players: [{ ...player, mean: '1' }] },
      { ...report, checks: Array.from({ length: 101 }, () => check) },
      {},
    ])
      expect((await put(path, broken)).status).toBe(422);
    expect((await put(path, { ...report, checks: [{ ...check, title: 'x'.repeat(300_000) }] })).status).toBe(413);
    expect((await put(path, report, { 'x-api-key': '' })).status).toBe(401);
    expect((await put(path, report, stranger.headers)).status).toBe(404);
    expect((await put(`/v1/environments/${org()}/reported-public`, report, stranger.headers)).status).toBe(403);
    expect(await put(`/v1/environments/${org()}/serverless`, report)).toMatchObject({
      status: 404,
      body: { code: 'deployment_not_found' },
    });
    expect((await get(path)).body.report).toBeNull();
  });

  test('is that of the newest version with one, says which, and is not part of lists', async () => {
    const path = `/v1/environments/${org()}/reported`;
    expect(await put(path, report)).toMatchObject({ status: 200, body: { version: 1 } });
    expect((await get(path)).body.report).toEqual({ ...report, version: 1, received_at: expect.any(String) });
    const next = { ...report, checks: [], reward_range: null };
    expect((await put(path, next)).status).toBe(200);
    expect((await get(path)).body.report).toMatchObject({ ...next, version: 1 });
    const listed = await get(`/v1/environments?owner=${org()}&search=reported&limit=1`);
    expect(listed.body.environments[0]).not.toHaveProperty('report');
    expect((await server.request('POST', `${path}/versions`, { body: { source: remote() } })).body.number).toBe(2);
    expect((await get(path)).body).toMatchObject({ version: 2, report: { version: 1 } });
    const numbered = (version: number | string) => server.request('PUT', `${path}/report?version=${version}`, { body: report });
    expect(await numbered(3)).toMatchObject({ status: 404, body: { code: 'deployment_not_found' } });
    expect((await numbered('x')).status).toBe(422);
    expect((await numbered(2 ** 31)).status).toBe(422);
    expect(await numbered(1)).toMatchObject({ status: 200, body: { version: 1 } });
    expect((await get(path)).body.report).toMatchObject({ ...report, version: 1 });
    expect(await put(path, report)).toMatchObject({ body: { version: 2 } });
    expect((await get(path)).body.report.version).toBe(2);
    expect((await server.request('DELETE', path)).status).toBe(200);
  });
});
