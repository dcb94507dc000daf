import { defineEnvironment, type RunningServer, serve, tool } from '@palestra/environment-kit';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createOrganisation } from '../../support/organisation.ts';
import { deployOf, type DeploysWorld, ended, logOf, startDeploys, tarball, textsOf, upload, uploaded, WITHIN } from './deploys.world.ts';
import { clientOf, query } from './hosting.world.ts';

/** From a source to a version that serves sessions. The engine is one of the tests; everything else is real. */
let world: DeploysWorld;
let owner: string;
let server: DeploysWorld['server'];
beforeAll(async () => {
  world = await startDeploys();
  ({ server } = world);
  owner = server.orgName;
  await world.startWorker();
});
afterAll(() => world?.close());

const get = async (path: string) => (await server.request('GET', path)).body;
const versionsOf = async (name: string) => (await get(`/v1/environments/${owner}/${name}/versions`)).versions;
const channelsOf = async (name: string) => (await get(`/v1/environments/${owner}/${name}/channels`)).channels;

describe('a folder', () => {
  test('becomes a version that serves sessions, and its log tells how', async () => {
    const { id } = await upload(world, `${owner}/first`, { log: ['Step 1', 'Step 2'] });
    const deploy = await ended(world, { id });
    expect(deploy).toMatchObject({
      environment: `${owner}/first`,
      state: 'ready',
      version: 1,
      reused: false,
      channel: 'stable',
      error: null,
      source: { kind: 'folder' },
      source_digest: expect.stringMatching(/^sha256:/),
    });
    const texts = await textsOf(world, id);
    expect(texts).toEqual([
      'Unpacking the uploaded folder.',
      'Found a module of the environment kit. Building with the engine "process".',
      'Step 1',
      'Step 2',
      'Starting an instance.',
      expect.stringMatching(/^Instance \S+ answers after \d+ ms/),
      'It is an ORS server.',
      'Version 1 is ready, and the channel "stable" follows it.',
    ]);
    const { open, add, end } = clientOf(world);
    const sid = await open(`${owner}/first`);
    expect(await add(sid)).toMatch(/^1:\d+:1$/);
    await end(sid);
    const [row] = await query(
      world,
      'SELECT probe, tools_digest, tasks_digest, protocol, state FROM environment_versions WHERE deploy_id = $1',
      [id],
    );
    expect(row).toMatchObject({
      protocol: 'remote',
      state: 'ready',
      tools_digest: expect.stringMatching(/^sha256:/),
      tasks_digest: expect.stringMatching(/^sha256:/),
      probe: { prompt: 'Task 0 of version 1.', split: 'train', call: { tool: 'add', error: null }, rewards: [1] },
    });
  });

  test('that was deployed before is its version again', async () => {
    const builds = world.engine.builds.length;
    const again = await ended(world, await upload(world, `${owner}/first`, { log: ['Step 1', 'Step 2'] }));
    expect(again).toMatchObject({ state: 'ready', version: 1, reused: true });
    expect(await textsOf(world, again.id)).toContain('The source is equal to that of version 1. No new version is made.');
    expect(world.engine.builds).toHaveLength(builds);
    expect(await versionsOf('first')).toHaveLength(1);
    // As after `docker system prune -a`.
    world.engine.hasLost = true;
    const rebuilt = await ended(world, await upload(world, `${owner}/first`, { log: ['Step 1', 'Step 2'] }));
    world.engine.hasLost = false;
    expect(rebuilt).toMatchObject({ state: 'ready', version: 1, reused: true });
    expect(world.engine.builds).toHaveLength(builds + 1);
  });

  test('whose build fails names the line, and the old version serves', async () => {
    const failed = await ended(world, await upload(world, `${owner}/first`, { log: ['Step 1', 'cannot do it'], failsAt: 2 }));
    const { error } = failed;
    expect(failed).toMatchObject({
      state: 'failed',
      version: null,
      error: { code: 'build_failed', detail: 'The build failed: it was asked to.' },
    });
    expect((await textsOf(world, failed.id))[error!.line! - 1]).toBe('cannot do it');
    expect((await logOf(world, failed.id)).at(-1)).toMatchObject({ severity: 'error', text: 'The build failed: it was asked to.' });
    expect(await channelsOf('first')).toMatchObject([{ name: 'stable', version: 1 }]);
  });

  test('whose build fails with a secret, a NUL and half a character says why, without them', async () => {
    await server.request('POST', '/v1/environments', { body: { name: 'told', description: '' } });
    await server.request('PUT', `/v1/environments/${owner}/told/secrets/API_KEY`, { body: { value: 'sk-a-secret-value' } });
    const failsWith = 'It failed: sk-a-secret-value\0\ud800.\nSecond line';
    const { builds } = world.engine;
    const before = builds.length;
    const failed = await ended(world, await upload(world, `${owner}/told`, { failsAt: 1, failsWith, log: ['one'] }));
    expect(failed).toMatchObject({ state: 'failed', error: { code: 'build_failed' } });
    expect(failed.error!.detail).toBe('It failed: [secret:API_KEY]\ufffd.\nSecond line');
    expect(builds.length - before).toBe(1);
    await server.request('DELETE', `/v1/environments/${owner}/told`);
  });

  test('that ends at once fails with the end of its log, and leaves neither version nor settings', async () => {
    const before = await get(`/v1/environments/${owner}/first/hosting`);
    const settings = encodeURIComponent(JSON.stringify({ egress: 'open', start_timeout_s: 30, max: 2 }));
    const failed = await ended(world, await upload(world, `${owner}/first`, { variables: { MODE: 'exit' } }, `settings=${settings}`));
    expect(failed).toMatchObject({
      state: 'failed',
      error: { code: 'instance_failed', detail: expect.stringContaining('cannot find the weights') },
    });
    expect(await versionsOf('first')).toHaveLength(1);
    expect(await get(`/v1/environments/${owner}/first/hosting`)).toEqual(before);
    const { open, end } = clientOf(world);
    await end(await open(`${owner}/first`));
  });

  test.each([
    ['never listens', 'deaf', 5, /answer/],
    ['accepts connections and never answers', 'mute', 5, /answer/],
    ['speaks no HTTP', 'banner', 5, /answer/],
    ['is another server', 'foreign', 60, /speaks neither ORS, OpenEnv nor MCP/],
  ])('that %s fails and says so', async (_how, MODE, seconds, detail) => {
    const settings = encodeURIComponent(JSON.stringify({ egress: 'open', start_timeout_s: seconds }));
    const failed = await ended(world, await upload(world, `${owner}/first`, { variables: { MODE } }, `settings=${settings}`));
    expect(failed).toMatchObject({ state: 'failed', error: { code: 'instance_failed', detail: expect.stringMatching(detail) } });
    expect(await versionsOf('first')).toHaveLength(1);
  });

  test('with a tool that fails is ready: the probe does not judge tools', async () => {
    const deploy = await ended(world, await upload(world, `${owner}/first`, { variables: { MODE: 'broken' } }, 'channel='));
    expect(deploy).toMatchObject({ state: 'ready', version: 2, channel: null });
    const [row] = await query(world, 'SELECT probe FROM environment_versions WHERE deploy_id = $1', [deploy.id]);
    expect(row).toMatchObject({ probe: { call: { error: 'failed', output: expect.stringContaining('broken on purpose') } } });
    expect(await channelsOf('first')).toMatchObject([{ name: 'stable', version: 1 }]);
  });

  test('changes what clients see, and the difference says what', async () => {
    await ended(world, await upload(world, `${owner}/first`, { variables: { VERSION: '3' } }));
    const diff = await server.request('GET', `/v1/environments/${owner}/first/versions/1/diff/3`);
    expect(diff).toMatchObject({
      status: 200,
      body: { from: 1, to: 3, tools: [], breaking: [], prompt: { from: 'Task 0 of version 1.', to: 'Task 0 of version 3.' } },
    });
    expect(await channelsOf('first')).toMatchObject([{ name: 'stable', version: 3, previous_version: 1 }]);
    const missing = await server.request('GET', `/v1/environments/${owner}/first/versions/1/diff/9`);
    expect(missing).toMatchObject({ status: 404, body: { code: 'deployment_not_found' } });
  });

  test('gets its settings with the deploy', async () => {
    const settings = encodeURIComponent(JSON.stringify({ egress: 'open', concurrency: 7 }));
    await ended(world, await upload(world, `${owner}/settled`, {}, `create=true&private=false&settings=${settings}`));
    expect(await get(`/v1/environments/${owner}/settled/hosting`)).toMatchObject({ concurrency: 7, egress: 'open' });
    expect(await get(`/v1/environments/${owner}/settled`)).toMatchObject({ is_private: false, source: { kind: 'hosted' }, version: 1 });
  });
});

describe('a source that cannot be used', () => {
  test.each([
    ['no archive', Buffer.from('not gzip')],
    ['a cut archive', null],
  ])('%s', async (_name, body) => {
    const bytes = body ?? (await tarball({})).subarray(0, 100);
    const answer = await uploaded(world, `${owner}/hostile`, bytes);
    const failed = await ended(world, (await answer.json()) as { id: string });
    expect(failed).toMatchObject({ state: 'failed', error: { code: 'source_invalid' } });
  });

  test('an image that does not exist', async () => {
    const { body } = await server.request('POST', `/v1/environments/${owner}/hostile/deploys`, {
      body: { source: { kind: 'image', image: 'no/such' } },
    });
    expect(await ended(world, body)).toMatchObject({
      state: 'failed',
      error: { code: 'build_failed', detail: 'There is no image no/such.' },
    });
  });

  test.each([
    { kind: 'git', url: 'ext::sh -c id' },
    { kind: 'git', url: 'file:///etc' },
    { kind: 'git', url: 'https://user:token@git.example/a' },
    { kind: 'git', url: 'https://ghp_token@git.example/a' },
    { kind: 'git', url: 'https://git.example/a', ref: '--upload-pack=id' },
    { kind: 'git', url: 'https://git.example/a', subdirectory: '../..' },
    { kind: 'image', image: '-v /:/host' },
    { kind: 'url', urls: [] },
    { kind: 'url', urls: ['ftp://x'] },
    { kind: 'url', urls: ['http://user:secret@127.0.0.1:9'] },
    { kind: 'folder' },
  ])('%j is refused at once', async (source) => {
    expect(await server.request('POST', `/v1/environments/${owner}/hostile/deploys`, { body: { source } })).toMatchObject({
      status: 422,
      body: { code: 'invalid_body' },
    });
  });

  test('a repository on an address of the service is refused', async () => {
    const url = `http://127.0.0.1:1/a.git`;
    const { body } = await server.request('POST', `/v1/environments/${owner}/hostile/deploys`, { body: { source: { kind: 'git', url } } });
    expect(await ended(world, body)).toMatchObject({ state: 'failed', error: { code: 'source_invalid', line: null } });
  });

  test('settings that the engine cannot enforce are refused', async () => {
    const body = { source: { kind: 'image', image: 'a' }, settings: { gpus: 1 } };
    const answer = await server.request('POST', `/v1/environments/${owner}/hostile/deploys`, { body });
    expect(answer).toMatchObject({ status: 422, body: { code: 'hosting_unsupported' } });
  });
});

describe('settings that change while a deploy runs', () => {
  const named = `settings=${encodeURIComponent(JSON.stringify({ egress: 'open', start_timeout_s: 30, max: 3 }))}`;
  test.each([
    ['that succeeds', {}, '', 'ready', 7, 7],
    ['that fails', { variables: { MODE: 'exit' } }, '', 'failed', 8, 8],
    ['that names others and fails', { variables: { MODE: 'exit' } }, named, 'failed', 9, 9],
    ['that names others and succeeds', {}, named, 'ready', 10, 3],
  ])('%s', async (how, source, queries, state, changed, max) => {
    const name = `${owner}/tuned`;
    await ended(world, await upload(world, name, { note: 'before' }));
    world.engine.hold();
    const deploy = await upload(world, name, { ...source, isHeld: true, note: how }, queries);
    await expect.poll(() => world.engine.builds.some(({ deployId }) => deployId === deploy.id), WITHIN).toBe(true);
    const body = { egress: 'open', start_timeout_s: 30, max: changed };
    expect((await server.request('PUT', `/v1/environments/${name}/hosting`, { body })).status).toBe(200);
    world.engine.release();
    expect(await ended(world, deploy)).toMatchObject({ state });
    expect(await get(`/v1/environments/${name}/hosting`)).toMatchObject({ max });
  });
});

test('deploys of one environment at once: the first and the newest become versions, and what is between them says why not', async () => {
  const name = `${owner}/hurried`;
  const other = await world.startWorker();
  world.engine.hold();
  const first = await upload(world, name, { isHeld: true, note: 'first' });
  await expect.poll(async () => (await deployOf(world, first.id)).state, WITHIN).toBe('building');
  const rest = await Promise.all(['a', 'b'].map(async (note) => upload(world, name, { note })));
  // They do not overtake it, although another process is free.
  expect((await Promise.all(rest.map(({ id }) => deployOf(world, id)))).map(({ state }) => state)).toEqual(['queued', 'queued']);
  world.engine.release();
  const [one, ...others] = await Promise.all([first, ...rest].map((deploy) => ended(world, deploy)));
  await other.stop();
  expect(one).toMatchObject({ state: 'ready', version: 1 });
  const newest = others.find(({ state }) => state === 'ready')!;
  expect(newest).toMatchObject({ version: 2, reused: false });
  expect(others.find(({ state }) => state !== 'ready')).toMatchObject({
    state: 'cancelled',
    error: { code: 'build_cancelled', detail: expect.stringContaining(newest.id) },
  });
  expect(await channelsOf('hurried')).toMatchObject([{ name: 'stable', version: 2, previous_version: 1 }]);
});

test('a deploy that runs after a newer one was promoted is left out', async () => {
  world.engine.hold();
  const first = await upload(world, `${owner}/late`, { isHeld: true, note: 'first' });
  await expect.poll(async () => (await deployOf(world, first.id)).state, WITHIN).toBe('building');
  const newer = await upload(world, `${owner}/late`, { note: 'newer' });
  const older = await upload(world, `${owner}/late`, { note: 'older' });
  // As when both arrive in one moment: the job of the newer one is the first.
  await query(world, `UPDATE environment_deploys SET created_at = created_at - interval '1 minute' WHERE id = ANY($1)`, [
    [first.id, older.id],
  ]);
  world.engine.release();
  expect(await Promise.all([first, newer, older].map((deploy) => ended(world, deploy)))).toMatchObject([
    { state: 'ready', version: 1 },
    { state: 'ready', version: 2 },
    { state: 'cancelled', error: { code: 'build_cancelled', detail: expect.stringContaining(newer.id) } },
  ]);
  expect(await channelsOf('late')).toMatchObject([{ name: 'stable', version: 2 }]);
});

test('a deploy of an organisation does not wait for all those of another one', async () => {
  const { name, apiKey } = await createOrganisation(server.url, server.apiKey);
  world.engine.hold();
  const theirs: { id: string }[] = [];
  for (const at of [1, 2, 3, 4]) theirs.push(await upload(world, `${owner}/turn-${at}`, { isHeld: true, note: `turn ${at}` }));
  await expect.poll(async () => (await deployOf(world, theirs[1]!.id)).state, WITHIN).toBe('building');
  const body = { source: { kind: 'git', url: 'http://127.0.0.1:1/a.git' }, create: true };
  const headers = { 'x-api-key': apiKey };
  const { body: own } = await server.request('POST', `/v1/environments/${name}/turn/deploys`, { headers, body });
  // It comes after those of its environment, whatever the others are.
  const again = await upload(world, `${owner}/turn-4`, { note: 'again' }, 'create=true&channel=beta');
  world.engine.release();
  await Promise.all([...theirs, again].map((deploy) => ended(world, deploy)));
  const rows = await query<{ id: string }>(world, 'SELECT id FROM environment_deploys WHERE id = ANY($1) ORDER BY started_at', [
    [theirs[3]!.id, own.id, again.id],
  ]);
  expect(rows.map(({ id }) => id)).toEqual([own.id, theirs[3]!.id, again.id]);
});

describe('servers at URLs', () => {
  const running: RunningServer[] = [];
  const counting = async (name: string, tools: string[], tasks = 3) => {
    const run = () => 'done';
    const started = await serve([
      defineEnvironment({
        name,
        description: '',
        splits: ['train'],
        tasks: () => Array.from({ length: tasks }, (_, id) => ({ id })),
        prompt: () => 'Go.',
        tools: Object.fromEntries(tools.map((one) => [one, tool({ description: one, run })])),
      }),
    ]);
    running.push(started);
    return started.url;
  };
  afterAll(() => Promise.all(running.map((one) => one.close())));
  const deployUrls = async (name: string, urls: string[]) => {
    const body = { source: { kind: 'url', urls }, create: true };
    return ended(world, (await server.request('POST', `/v1/environments/${owner}/${name}/deploys`, { body })).body);
  };

  test('that offer the same are one version, and again the same one', async () => {
    const urls = [await counting('same', ['a']), await counting('same', ['a'])];
    const deploy = await deployUrls('urls', urls);
    expect(deploy).toMatchObject({ state: 'ready', version: 1, reused: false, source: { kind: 'url' } });
    const [row] = await query(world, 'SELECT artifact, provider FROM environment_versions WHERE deploy_id = $1', [deploy.id]);
    expect(row).toMatchObject({ provider: 'remote', artifact: { kind: 'urls', urls } });
    expect(await deployUrls('urls', urls)).toMatchObject({ state: 'ready', version: 1, reused: true });
    await expect.poll(async () => (await get(`/v1/environments/${owner}/urls/instances`)).instances.length, WITHIN).toBe(2);
  });

  test('of which one does not respond are refused, with the reason', async () => {
    const [one, gone] = [await counting('same', ['a']), await counting('same', ['a'])];
    await running.pop()!.close();
    const detail = expect.stringMatching(new RegExp(`^${gone} does not respond: .*ECONNREFUSED`));
    expect(await deployUrls('gone', [one, gone])).toMatchObject({ state: 'failed', error: { code: 'instance_failed', detail } });
  });

  test.each([
    ['tools', ['b'], 3],
    ['tasks', ['a'], 4],
  ])('that have other %s are refused', async (what, tools, tasks) => {
    const urls = [await counting('same', ['a']), await counting('same', tools, tasks)];
    const detail = expect.stringContaining(`other ${what}`);
    expect(await deployUrls('different', urls)).toMatchObject({ state: 'failed', error: { code: 'instance_failed', detail } });
  });

  test('that do not answer are refused', async () => {
    expect(await deployUrls('silent', ['http://127.0.0.1:9'])).toMatchObject({ state: 'failed', error: { code: 'instance_failed' } });
  });
});

describe('other organisations', () => {
  test('find no deploys and start none', async () => {
    const { apiKey } = await createOrganisation(server.url, server.apiKey);
    const headers = { 'x-api-key': apiKey };
    const [{ id }] = (await get(`/v1/environments/${owner}/first/deploys`)).deploys;
    const body = { source: { kind: 'image', image: 'a' } };
    for (const [method, path, code] of [
      ['GET', `/v1/deploys/${id}`, 'deploy_not_found'],
      ['POST', `/v1/deploys/${id}/cancel`, 'deploy_not_found'],
      ['GET', `/v1/environments/${owner}/first/deploys`, 'environment_not_found'],
      ['POST', `/v1/environments/${owner}/first/deploys`, 'environment_not_found'],
      ['GET', `/v1/environments/${owner}/first/versions/1/diff/3`, 'environment_not_found'],
    ] as const)
      expect(await server.request(method, path, { headers, ...(method === 'POST' && { body }) })).toMatchObject({
        status: 404,
        body: { code },
      });
    const answer = await uploaded(world, `${owner}/first`, await tarball({}), '', headers);
    expect(answer.status).toBe(404);
    const create = await server.request('POST', `/v1/environments/${owner}/stolen/deploys`, { headers, body: { ...body, create: true } });
    expect(create).toMatchObject({ status: 403, body: { code: 'forbidden' } });
  });

  test('the audit log has the deploys', async () => {
    const { events } = await get('/v1/audit?limit=500&action=deploy.create');
    expect(events).toEqual(
      expect.arrayContaining([
        expect.objectContaining({
          target: expect.objectContaining({ name: `${owner}/first` }),
          details: { source: 'folder', channel: 'stable' },
        }),
      ]),
    );
  });
});

test('orwd links, changes and unlinks an environment that nobody has deployed', async () => {
  const [named, linked] = ['named', 'linked'];
  for (const name of [named, linked]) await server.request('POST', '/v1/environments', { body: { namespace: owner, name } });
  const url = 'http://127.0.0.1:1/acme/envs.git';
  await server.request('PUT', `/v1/environments/${owner}/${named}/git`, { body: { url } });
  // Stored before such URLs were refused.
  const odd = 'http://127.0.0.1:1/acme/%zz.git';
  await world.server.database.pool.query('UPDATE environments SET external_github_url = $2 WHERE name = $1', [named, odd]);
  const { repos } = await get('/v1/github/repos');
  expect((await server.request('PUT', `/v1/environments/${owner}/${named}/git`, { body: { url: odd } })).status).toBe(422);
  const { id: githubRepoId } = repos.find((one: { url: string }) => one.url === url);
  const settings = { cpuMemory: '1-4', minScale: 0, maxScale: 2, concurrency: 500 };
  const connected = await server.request('POST', `/v1/github/environments/${owner}/${linked}/connect`, {
    body: { githubRepoId, settings },
  });
  expect(connected).toMatchObject({ status: 200, body: { deploymentId: expect.any(String) } });
  const { id, has_github_connection: isConnected } = await get(`/v1/environments/${owner}/${linked}`);
  expect(isConnected).toBe(true);
  expect((await server.request('DELETE', `/v1/github/environments/${id}`)).status).toBe(200);
  expect(await get(`/v1/environments/${owner}/${linked}`)).toMatchObject({ has_github_connection: false });
});

test('a deploy of an unknown environment says so', async () => {
  const answer = await uploaded(world, `${owner}/unknown`, await tarball({}), '');
  expect(answer.status).toBe(404);
  expect(
    await server.request('POST', `/v1/environments/${owner}/x/deploys`, { body: { source: { kind: 'image', image: 'a' }, create: true } }),
  ).toMatchObject({
    status: 400,
  });
  const odd = await uploaded(world, `${owner}/first`, 'x', '', { 'content-type': 'application/zip' });
  expect(odd.status).toBe(400);
  expect(await deployOf(world, 'nothing')).toMatchObject({ code: 'deploy_not_found' });
});
