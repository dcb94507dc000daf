import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { type RunningServer, serve } from '@palestra/environment-kit';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { createDatabase, sharedServer, startServer, type TestServer } from '../../support/server.ts';
import { connectMcp, gallery } from './mcp.world.ts';

/** MCP servers registered as environments, and environments over MCP, in a whole service. */
const SERVER = path.join(import.meta.dirname, 'mcp.server.mjs');
const COUNTER = { kind: 'mcp', command: [process.execPath, SERVER, 'stdio'] };

let server: TestServer;
let upstream: RunningServer;

beforeAll(async () => {
  [server, upstream] = await Promise.all([startServer({ allowCommands: true }), serve([gallery])]);
  await register('gallery', { kind: 'remote', url: upstream.url });
  await register('counter', COUNTER);
});
afterAll(async () => {
  await server?.close();
  await upstream?.close();
});

async function register(name: string, source: object, sessions?: object): Promise<void> {
  const created = await server.request('POST', '/v1/environments', { body: { name, source } });
  if (created.status !== 200) throw new Error(JSON.stringify(created.body));
  if (sessions === undefined) return;
  const changed = await server.request('PUT', `/v1/environments/${server.orgName}/${name}/details`, { body: { sessions } });
  if (changed.status !== 200) throw new Error(JSON.stringify(changed.body));
}

const play = (name: string, query = '') =>
  connectMcp(`${server.url}/mcp/${server.orgName}/${name}${query}`, { authorization: `Bearer ${server.apiKey}` });
const callsOf = async (sid: string) => (await server.request('GET', `/v1/sessions/${sid}/calls`)).body.calls as Record<string, unknown>[];
/** A zombie counts as dead. */
const isAlive = (pid: string): boolean => {
  try {
    return !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
};

describe('registration', () => {
  test('of a program is refused unless the operator allows programs', async () => {
    const strict = await sharedServer();
    const answer = await strict.request('POST', '/v1/environments', { body: { name: 'counter', source: COUNTER } });
    expect(answer).toMatchObject({ status: 403, body: { code: 'commands_not_allowed' } });
    expect(answer.body.detail).toContain('PALESTRA_ALLOW_COMMANDS=1');
  });

  test('of a server that does not speak MCP gives the reason', async () => {
    const body = { name: 'useless', source: { kind: 'mcp', command: [process.execPath, '-e', 'console.error("wrong door")'] } };
    expect(await server.request('POST', '/v1/environments', { body })).toMatchObject({
      status: 400,
      body: { code: 'invalid_request', detail: expect.stringMatching(/^source\.command: .*wrong door/s) },
    });
    const ors = { name: 'useless', source: { kind: 'mcp', url: upstream.url } };
    expect(await server.request('POST', '/v1/environments', { body: ors })).toMatchObject({
      status: 400,
      body: { detail: expect.stringMatching(/^source\.url: /) },
    });
  });

  test('shows its tools and its one task', async () => {
    const { body } = await server.request('GET', `/v1/environments/${server.orgName}/counter/discovery`);
    expect(body.variants).toHaveLength(1);
    expect(body.variants[0]).toMatchObject({ is_default: true, splits: [{ name: 'train', type: 'train', num_tasks: 1 }] });
    expect(body.variants[0].tools.tools.map(({ name }: { name: string }) => name)).toContain('add');
  });
});

describe('an MCP server as an environment', () => {
  test('is played by an ORS client', async () => {
    const headers = { 'x-deployment': `${server.orgName}/counter` };
    const opened = await server.request('POST', '/create_session', { body: {}, headers });
    const sid = /data: (\S+)/.exec(opened.body)![1]!;
    const inSession = { headers: { ...headers, 'x-session-id': sid } };
    expect((await server.request('POST', '/create', { body: { split: 'train', index: 0 }, ...inSession })).body).toEqual({ sid });
    expect((await server.request('GET', '/mcp/prompt', inSession)).body).toEqual([{ text: 'Count to three.', detail: null, type: 'text' }]);
    const call = await server.request('POST', '/mcp/call', { body: { name: 'add', input: { by: 3 } }, ...inSession });
    expect(call.body).toContain('"reward":1,"finished":true');
    // A result is stored shortly after it was sent.
    await expect.poll(() => callsOf(sid)).toMatchObject([{ tool: 'add', reward: 1, finished: true }]);
    expect((await server.request('POST', '/delete', inSession)).status).toBe(200);
  });

  test('its end during a call is an infrastructure failure without a reward', async () => {
    const { call, sid } = await play('counter');
    expect(await call('add', { by: 1 })).toMatchObject({ reward: 0, finished: false });
    const dying = call('die', { after_ms: 300 });
    await expect(dying).rejects.toMatchObject({ data: { code: 'session_lost' }, message: expect.stringContaining('I was told to die.') });
    await expect
      .poll(async () => (await callsOf(sid))[1])
      .toMatchObject({ tool: 'die', reward: null, failure_class: 'infrastructure', code: 'session_lost' });
    expect((await server.request('GET', `/v1/sessions/${sid}`)).body).toMatchObject({ state: 'lost', failure_class: 'infrastructure' });
    await expect(call('add', { by: 1 })).rejects.toMatchObject({ code: 404 });
  });

  test('an expired session or a call timeout ends the process', async () => {
    // Long enough for both to be opened, and to answer, on a busy machine.
    await register('brief', COUNTER, { heartbeat_timeout_s: 5, call_timeout_s: 4 });
    const [idle, slow] = await Promise.all([play('brief'), play('brief')]);
    const pids = [(await idle.call('pid')).text, (await slow.call('pid')).text] as const;
    expect(pids.map(isAlive)).toEqual([true, true]);
    await idle.client.close();
    await expect(slow.call('doze', { ms: 60_000 })).rejects.toMatchObject({ data: { code: 'call_timeout' } });
    await expect.poll(() => pids.map(isAlive), { timeout: 30_000 }).toEqual([false, false]);
  });

  test('ends its programs when the service stops', async () => {
    const other = await startServer({ allowCommands: true });
    let closed = false;
    onTestFinished(() => (closed ? undefined : other.close()));
    await other.request('POST', '/v1/environments', { body: { name: 'counter', source: COUNTER } });
    const player = await connectMcp(`${other.url}/mcp/${other.orgName}/counter`, { 'x-api-key': other.apiKey });
    const pid = (await player.call('pid')).text;
    expect(isAlive(pid)).toBe(true);
    await player.client.close();
    closed = true;
    await other.close();
    expect(isAlive(pid)).toBe(false);
  });
});

test('uses an environment of Palestra as an MCP server', async () => {
  const url = `${server.url}/k/${server.apiKey}/mcp/${server.orgName}/gallery?split=test&index=2`;
  await register('mirror', { kind: 'mcp', url });
  const { client, call, sid, transport } = await play('mirror');
  const { messages } = await client.getPrompt({ name: 'task' });
  expect(messages.map(({ content }) => (content.type === 'text' ? content.text : content.type))).toEqual([
    'Picture 2:',
    'image',
    'Say what it shows.',
  ]);
  expect(await call('look', { at: 1 })).toMatchObject({ text: 'look 1 at 1\n[image]', structuredContent: { looked: 1 }, reward: null });
  expect(await call('nothing')).toMatchObject({ isError: true, meta: { 'palestra/reason': 'not_found' } });
  expect(await call('say')).toMatchObject({ isError: true, meta: { 'palestra/reason': 'input_validation' } });
  expect(await call('say', { answer: 'a pixel' })).toMatchObject({ reward: 1, finished: true });
  expect(await call('look')).toMatchObject({ isError: true, meta: { 'palestra/reason': 'episode_finished' } });
  await transport.terminateSession();
  await expect
    .poll(async () => (await server.request('GET', `/v1/sessions?environment=${server.orgName}/gallery&state=live`)).body.sessions)
    .toEqual([]);
  expect((await server.request('GET', `/v1/sessions/${sid}`)).body).toMatchObject({ state: 'closed', total_reward: 1 });
});

test('continues a session on an ORS server after a restart', async () => {
  const database = await createDatabase();
  const dataDir = await mkdtemp(path.join(tmpdir(), 'palestra-mcp-'));
  onTestFinished(async () => {
    await database.drop();
    await rm(dataDir, { recursive: true, force: true });
  });
  const first = await startServer({ databaseUrl: database.url, dataDir, apiKey: 'or_key_of_the_restart' });
  await first.request('POST', '/v1/environments', { body: { name: 'gallery', source: { kind: 'remote', url: upstream.url } } });
  const player = await connectMcp(`${first.url}/mcp/${first.orgName}/gallery`, { 'x-api-key': first.apiKey });
  expect((await player.call('look')).text).toContain('look 1');
  await player.client.close();
  await first.close();

  const second = await startServer({ databaseUrl: database.url, dataDir, apiKey: 'or_key_of_the_restart' });
  onTestFinished(() => second.close());
  const headers = {
    'x-api-key': second.apiKey,
    'mcp-session-id': player.sid,
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
  };
  const body = JSON.stringify({ jsonrpc: '2.0', id: 9, method: 'tools/call', params: { name: 'look', arguments: {} } });
  const url = `${second.url}/mcp/${second.orgName}/gallery`;
  const answer = (await (await fetch(url, { method: 'POST', headers, body })).json()) as { result: { content: { text: string }[] } };
  expect(answer.result.content[0]!.text).toBe('look 2 at 0');
  const listening = await fetch(url, { headers: { ...headers, accept: 'text/event-stream' } });
  expect(listening.status).toBe(200);
  await listening.body!.cancel();
  expect((await fetch(url, { method: 'DELETE', headers })).status).toBe(200);
});
