import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readConfig } from '../../../apps/api/src/platform/config.ts';
import { makeShellImage } from '../../support/shell-image.ts';
import { startServer, type TestServer } from '../../support/server.ts';
import { engineCommand, TestEngine } from '../hosting/docker-engine.world.ts';
import { events } from '../sessions/session-requests.ts';
import { machineAddress } from './sandboxes.world.ts';

/** The routes of sandboxes, on a real engine: what the SDK's client does not show (tests/conformance/sandbox-client.spec.ts). */
describe.skipIf(engineCommand === undefined)('sandboxes as sessions', () => {
  let engine: TestEngine;
  let server: TestServer;
  let image: string;
  let environment: string;
  let installation = '';

  beforeAll(async () => {
    engine = await TestEngine.start();
    image = makeShellImage(engineCommand!);
    server = await startServer({
      bundledEnvironments: true,
      hosting: {
        ...readConfig({}, (file) => file).hosting,
        engine: 'docker',
        dockerHost: `unix://${engine.socket}`,
        baseImages: { python: image, node: engine.image },
        sandboxHttpHosts: [machineAddress()],
      },
    });
    const body = { name: 'shell', isPrivate: true, source: { kind: 'bundled', name: 'echo' } };
    const made = await server.request('POST', '/v1/environments', { body });
    if (made.status !== 200) throw new Error(JSON.stringify(made.body));
    environment = `${server.orgName}/shell`;
    const { pool } = server.database;
    await pool.query('INSERT INTO hosting_installation DEFAULT VALUES ON CONFLICT DO NOTHING');
    installation = (await pool.query('SELECT id FROM hosting_installation')).rows[0].id;
  });
  afterAll(async () => {
    await server?.close();
    const filter = ['--filter', `label=palestra.dev/installation=${installation}`];
    for (const id of installation === '' ? [] : engine.lines('ps', '-aq', ...filter)) engine.ask('rm', '-f', '-t', '0', id);
    for (const name of installation === '' ? [] : engine.lines('network', 'ls', ...filter, '--format', '{{.Name}}'))
      engine.ask('network', 'rm', '-f', name);
    await engine?.close();
    engine?.ask('rmi', '-f', image);
  });

  const settings = (given: object = {}) => ({ environment, image, machine_size: '0.5:0.5', block_network: true, ...given });
  const create = (given: object = {}) => server.request('POST', '/create_sandbox', { body: settings(given) });
  const created = async (given: object = {}) => {
    const answer = await create(given);
    expect(answer).toMatchObject({ status: 200 });
    return events(answer.body)[0]!.data;
  };
  const on = (sid: string, path: string, body: unknown = {}) => server.request('POST', path, { body, headers: { 'x-session-id': sid } });
  const run = async (sid: string, cmd: string, given: object = {}) => {
    const answer = await on(sid, '/run', { cmd, timeout_s: 20, max_bytes: 50_001, shell: '/bin/bash', ...given });
    return events(answer.body);
  };
  const end = (sid: string) => on(sid, '/delete_session');
  const names = () => engine.lines('ps', '-a', '--filter', `label=palestra.dev/installation=${installation}`, '--format', '{{.Names}}');

  test('refuses what it does not have, before anything starts', async () => {
    expect(await create({ environment: 'GeneralReasoning/idontexist' })).toMatchObject({
      status: 404,
      body: { code: 'environment_not_found' },
    });
    expect(await create({ machine_size: '3:3' })).toMatchObject({ status: 422, body: { code: 'invalid_body' } });
    expect(await create({ machine_size: 'nvidia-l4' })).toMatchObject({ status: 422, body: { code: 'hosting_unsupported' } });
    expect(await create({ new_promise: 1 })).toMatchObject({ status: 422 });
    expect(await create({ image: 'localhost/palestra/x:1' })).toMatchObject({ status: 422 });
    expect(await create({ image: '../../x' })).toMatchObject({ status: 422 });
    const https = { rules: [{ action: 'allow', host: 'pypi.org', path: '/simple/*' }] };
    expect(await create({ block_network: false, network: https })).toMatchObject({ status: 422, body: { code: 'hosting_unsupported' } });
    expect(await create({ network: { presets: ['pypi'] } })).toMatchObject({ status: 400 });
    expect(await create({ image: 'localhost/palestra-test/none:1' })).toMatchObject({ status: 400, body: { code: 'invalid_request' } });
    const { rows } = await server.database.pool.query('SELECT count(*)::int AS count FROM sandboxes');
    expect(rows).toEqual([{ count: 0 }]);
  });

  test('a command runs once, its task id replays it, and an unknown one is said', async () => {
    const sid = await created({ env: { TOKEN: 'value of a secret' } });
    const first = await run(sid, 'echo $TOKEN; echo x >> /tmp/runs');
    expect(first.map(({ event }) => event)).toEqual(['task_id', 'end']);
    const result = JSON.parse(first[1]!.data);
    expect(result).toEqual({ return_code: 0, output: Buffer.from('value of a secret\n').toString('base64'), timed_out: false });
    const again = await run(sid, 'echo $TOKEN; echo x >> /tmp/runs', { task_id: first[0]!.data });
    expect(again).toEqual(first);
    expect(JSON.parse((await run(sid, 'wc -l < /tmp/runs'))[1]!.data).output).toBe(Buffer.from('1\n').toString('base64'));
    expect((await run(sid, 'true', { task_id: 'f'.repeat(32) })).at(-1)).toMatchObject({ event: 'error', data: 'unknown task_id' });
    const long = `: '${'x'.repeat(300_000)}'; printf done`;
    expect(JSON.parse((await run(sid, long))[1]!.data)).toMatchObject({ return_code: 0, output: Buffer.from('done').toString('base64') });
    // What is stored of it has no values of variables.
    const view = await server.request('GET', `/v1/sessions/${sid}`);
    expect(view.body).toMatchObject({ environment, state: 'ready' });
    expect(JSON.stringify(view.body)).not.toContain('value of a secret');
    expect(await on(sid, '/ping')).toMatchObject({ status: 200 });
    expect(await on(sid, '/set_network', {})).toMatchObject({ status: 400, body: { detail: expect.stringContaining('without network=') } });
    expect(names()).toHaveLength(1);
    expect(await end(sid)).toMatchObject({ status: 200, body: { sid } });
    expect(await on(sid, '/run', { cmd: 'true' })).toMatchObject({ status: 410 });
    expect(names()).toEqual([]);
  });

  test('a client that repeats its request while the sandbox is made keeps it', async () => {
    const given = { task_id: 'a'.repeat(32) };
    const { pool } = server.database;
    const first = create(given);
    await expect.poll(async () => (await pool.query(`SELECT FROM sessions WHERE state = 'starting'`)).rows.length).toBe(1);
    const answers = [await create(given), await first];
    expect(answers.map(({ status }) => status)).toEqual([200, 200]);
    const [sid, again] = answers.map(({ body }) => events(body)[0]!.data);
    expect(again).toBe(sid);
    expect(JSON.parse((await run(sid!, 'printf here'))[1]!.data).output).toBe(Buffer.from('here').toString('base64'));
    expect(names()).toHaveLength(1);
    await end(sid!);
  });

  test('files have the statuses that the client expects', async () => {
    const sid = await created();
    const stat = (path: string) => on(sid, `/stat_file?path=${encodeURIComponent(path)}`);
    await run(sid, 'ln -s /etc/passwd /tmp/link; printf abc > "/tmp/a b"');
    expect(await stat('/tmp/a b')).toMatchObject({ status: 200, body: { size: 3 } });
    expect(await stat('/tmp/link')).toMatchObject({ status: 400, body: { detail: 'refusing symlink: /tmp/link' } });
    expect(await stat('/tmp')).toMatchObject({ status: 400, body: { detail: 'not a regular file: /tmp' } });
    expect(await stat('/tmp/none')).toMatchObject({ status: 404, body: { detail: 'no such file: /tmp/none' } });
    expect(await stat('tmp')).toMatchObject({ status: 422 });
    expect(await on(sid, '/read_file?path=/tmp/a+b&offset=9&length=5')).toMatchObject({ status: 416 });
    const read = await on(sid, '/read_file?path=/tmp/a+b&offset=1&length=5');
    expect([read.status, read.body, read.headers.get('x-file-size')]).toEqual([200, 'bc', '3']);
    expect(await on(sid, '/write_file?path=/tmp/new&commit=1&size=3')).toMatchObject({ status: 409 });
    await end(sid);
  });

  test('an organisation has a limit of sandboxes, and the session of an environment is none', async () => {
    const first = await created();
    server.config.limits.sandboxes.org = 1;
    expect(await create()).toMatchObject({
      status: 429,
      body: { code: 'limit_reached', detail: expect.stringContaining('PALESTRA_MAX_SANDBOXES_PER_ORG') },
    });
    server.config.limits.sandboxes.org = 100;
    server.config.limits.sandbox_memory_gb.org = 1;
    expect(await create({ machine_size: '1:1' })).toMatchObject({ status: 429 });
    server.config.limits.sandbox_memory_gb.org = 256;
    await end(first);
    expect(await on('unknown', '/run', { cmd: 'true' })).toMatchObject({ status: 404 });
  });
});
