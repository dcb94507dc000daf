import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { ORS_PROCESS } from '../../../libs/ors/src/client/ors-process.fixture.ts';
import { sharedServer, startServer, type TestServer } from '../../support/server.ts';

/** What clients of the service hear when an environment's ORS server freezes: all of them, within a minute, by the default of 50 s of silence. */
const SILENCE_S = 5;
let server: TestServer;
let child: ChildProcess;
let url: string;

beforeAll(async () => {
  server = await sharedServer();
  child = spawn(process.execPath, ['-e', ORS_PROCESS], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [port] = (await once(child.stdout!, 'data')) as [Buffer];
  url = `http://127.0.0.1:${Number(String(port))}`;
  const source = { kind: 'remote', url };
  const added = await server.request('POST', '/v1/environments', { body: { name: 'mortal', source } });
  if (added.status !== 200) throw new Error(JSON.stringify(added.body));
  const sessions = { silence_timeout_s: SILENCE_S };
  const set = await server.request('PUT', `/v1/environments/${server.orgName}/mortal/details`, { body: { sessions } });
  if (set.status !== 200) throw new Error(JSON.stringify(set.body));
});
afterAll(async () => {
  child?.kill('SIGKILL');
  await server?.close();
});

const headers = (sid: string) => ({ 'x-deployment': `${server.orgName}/mortal`, 'x-session-id': sid });
const create = (sid: string) => server.request('POST', '/create', { headers: headers(sid), body: { task_spec: { ms: 0 } } });
const call = (sid: string, ms: number) => server.request('POST', '/call', { headers: headers(sid), body: { name: 't', input: { ms } } });

test(
  'a frozen server: every request is answered when its silence is over, and nothing becomes a reward',
  { timeout: 120_000 },
  async () => {
    // What holds where nothing else is set: below the minute.
    expect(server.config.silenceTimeoutMs).toBe(50_000);
    const [busy, idle] = [randomUUID(), randomUUID()];
    for (const sid of [busy, idle]) expect(await create(sid)).toMatchObject({ status: 200 });
    expect(String((await call(idle, 1)).body)).toContain('"ok":true');
    const running = call(busy, 600_000);
    const ran = async () => (await fetch(`${url}/ran`)).json();
    await expect.poll(ran).toContain(600_000);
    child.kill('SIGSTOP');
    // The server answered a moment ago. For a fifth of the silence timeout a call would still be sent to it, and lost.
    await new Promise((resolve) => setTimeout(resolve, 250 * SILENCE_S));
    const [lost, unsent, created, listed] = await Promise.all([
      running,
      call(idle, 2),
      create(randomUUID()),
      server.request('GET', '/splits', { headers: headers(idle) }),
    ]);
    expect(String(lost.body)).toMatch(/event: error\r?\ndata: Session lost: .*may or may not have run/);
    expect(String(unsent.body)).toMatch(/event: error\r?\ndata: .*no sign of life for 5 s; nothing was run/);
    for (const answer of [created, listed]) expect(answer).toMatchObject({ status: 504, body: { code: 'backend_timeout' } });
    const { body } = await server.request('GET', `/v1/sessions/${busy}`);
    expect(body).toMatchObject({ state: 'lost', failure_class: 'infrastructure', total_reward: null });

    child.kill('SIGCONT');
    // The other session was not touched, and the tool runs once for each call that was sent.
    expect(String((await call(idle, 3)).body)).toContain('"ok":true');
    const classes = async () => {
      const { calls } = (await server.request('GET', `/v1/sessions/${idle}/calls`)).body;
      return calls.map(({ failure_class: failureClass }: any) => failureClass);
    };
    // The ledger stores a deferred write a moment after the client has its answer.
    await expect.poll(classes).toEqual(['ok', 'infrastructure', 'ok']);
  },
);

test('a tool that blocks its server has the time that its environment declares', { timeout: 120_000 }, async () => {
  // This silence is longer than a pause of a busy machine, and over long before the tool ends.
  const hasty = await startServer({ silenceTimeoutMs: 4_000 });
  const other = spawn(process.execPath, ['-e', ORS_PROCESS], { stdio: ['ignore', 'pipe', 'inherit'] });
  onTestFinished(async () => {
    other.kill('SIGKILL');
    await hasty.close();
  });
  const [port] = (await once(other.stdout!, 'data')) as [Buffer];
  const source = { kind: 'remote', url: `http://127.0.0.1:${Number(String(port))}` };
  await hasty.request('POST', '/v1/environments', { body: { name: 'blocking', source } });
  const blocked = async () => {
    const asked = { 'x-deployment': `${hasty.orgName}/blocking`, 'x-session-id': randomUUID() };
    await hasty.request('POST', '/create', { headers: asked, body: { task_spec: { ms: 0 } } });
    const { body } = await hasty.request('POST', '/call', { headers: asked, body: { name: 't', input: { ms: 8_000, block: true } } });
    return String(body);
  };
  expect(await blocked()).toMatch(/event: error\r?\ndata: Session lost: /);
  const sessions = { silence_timeout_s: 50 };
  const set = await hasty.request('PUT', `/v1/environments/${hasty.orgName}/blocking/details`, { body: { sessions } });
  expect(set).toMatchObject({ status: 200, body: { sessions } });
  expect(await blocked()).toContain('"ok":true');
});
