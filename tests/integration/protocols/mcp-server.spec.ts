import { type RunningServer, serve } from '@palestra/environment-kit';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { whodunit } from '../../../apps/environments/src/whodunit/whodunit.environment.ts';
import { sharedServer, type TestServer } from '../../support/server.ts';
import { createCaller } from '../../support/callers.ts';
import { connectMcp, gallery } from './mcp.world.ts';

/** `/mcp/{owner}/{env}` with MCP's official TypeScript client. */
let server: TestServer;
let upstream: RunningServer;
let gone: RunningServer;

beforeAll(async () => {
  server = await sharedServer();
  [upstream, gone] = await Promise.all([serve([gallery]), serve([whodunit])]);
  for (const [name, url] of [
    ['gallery', upstream.url],
    ['manor', gone.url],
  ]) {
    const answer = await server.request('POST', '/v1/environments', { body: { name, source: { kind: 'remote', url } } });
    if (answer.status !== 200) throw new Error(JSON.stringify(answer.body));
  }
});
afterAll(async () => {
  await server?.close();
  await upstream?.close();
  await gone?.close();
});

const address = (name: string, query = '') => `${server.url}/mcp/${server.orgName}/${name}${query}`;
const key = () => ({ authorization: `Bearer ${server.apiKey}` });
const connect = (name: string, query = '', headers: Record<string, string> = {}) =>
  connectMcp(address(name, query), { ...key(), ...headers });

const INITIALIZE = {
  jsonrpc: '2.0',
  id: 7,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'raw', version: '1' } },
};
async function raw(body: unknown, headers: Record<string, string> = key(), url = address('gallery')) {
  const answer = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
  const text = await answer.text();
  return { status: answer.status, headers: answer.headers, body: text === '' ? null : (JSON.parse(text) as any) };
}
const openSessions = async (name: string) => {
  const { body } = await server.request('GET', `/v1/sessions?state=live&limit=100&environment=${server.orgName}/${name}`);
  return body.sessions as { sid: string }[];
};

describe('refusals', () => {
  test('401 without a key and with a wrong one', async () => {
    for (const headers of [{}, { authorization: 'Bearer or_wrong' }, { 'x-api-key': 'or_wrong' }] as Record<string, string>[]) {
      const answer = await raw(INITIALIZE, headers);
      expect(answer.status).toBe(401);
      // A wrong key is refused before the body is read, so the request id is unknown.
      const id = Object.keys(headers).length === 0 ? 7 : null;
      expect(answer.body).toMatchObject({ jsonrpc: '2.0', id, error: { data: { code: 'unauthorized' } } });
      expect(answer.headers.get('www-authenticate')).toContain('Bearer');
    }
  });

  test('404 for an unknown environment or one of another organisation', async () => {
    expect(await raw(INITIALIZE, key(), address('nothing'))).toMatchObject({ status: 404, body: { error: { code: -32001 } } });
    const stranger = await createCaller(server, 'strangers-of-mcp');
    expect((await raw(INITIALIZE, stranger.headers)).status).toBe(404);
  });

  test('404 for a session that is unknown, ended, or of another organisation or environment', async () => {
    const { sid, transport } = await connect('gallery');
    const list = { jsonrpc: '2.0', id: 1, method: 'tools/list' };
    const stranger = await createCaller(server, 'more-strangers-of-mcp');
    expect((await raw(list, { ...key(), 'mcp-session-id': sid })).status).toBe(200);
    expect((await raw(list, { ...stranger.headers, 'mcp-session-id': sid })).status).toBe(404);
    expect((await raw(list, { ...key(), 'mcp-session-id': sid }, address('manor'))).status).toBe(404);
    expect(await raw(list, { ...key(), 'mcp-session-id': 'never' })).toMatchObject({
      status: 404,
      body: { id: 1, error: { code: -32001, data: { code: 'session_not_found' } } },
    });
    await transport.terminateSession();
    expect(await raw(list, { ...key(), 'mcp-session-id': sid })).toMatchObject({
      status: 404,
      body: { error: { data: { code: 'session_deleted' } } },
    });
    expect((await fetch(address('gallery'), { method: 'DELETE', headers: { ...key(), 'mcp-session-id': sid } })).status).toBe(404);
  });

  test('a request without a session is refused, and server/discover is unknown', async () => {
    expect((await raw({ jsonrpc: '2.0', id: 1, method: 'tools/list' })).status).toBe(400);
    expect((await fetch(address('gallery'), { headers: { ...key(), accept: 'text/event-stream' } })).status).toBe(405);
    const discover = await raw(
      { jsonrpc: '2.0', id: 'd', method: 'server/discover', params: {} },
      { ...key(), 'mcp-protocol-version': '2026-07-28' },
    );
    expect(discover).toMatchObject({ status: 200, body: { id: 'd', error: { code: -32601 } } });
    expect((await raw('{nonsense')).status).toBe(422);
  });

  test('a task that does not exist', async () => {
    for (const [query, code] of [
      ['?split=none', 'invalid_split'],
      ['?index=99', 'invalid_index'],
      ['?index=one', 'invalid_index'],
    ]) {
      const answer = await raw(INITIALIZE, key(), address('gallery', query));
      expect(answer).toMatchObject({ status: 400, body: { error: { data: { code } } } });
    }
    expect((await raw(INITIALIZE, key(), address('gallery', '?variant=none'))).body.error.data.code).toBe('unknown_variant');
  });

  test('a page of another site may not use a browser session', async () => {
    const evil = { origin: 'http://evil.example', cookie: 'palestra_session=whatever' };
    expect(await raw(INITIALIZE, evil)).toMatchObject({ status: 403 });
    const get = await fetch(address('gallery'), { headers: { ...evil, accept: 'text/event-stream', 'mcp-session-id': 'x' } });
    expect(get.status).toBe(403);
    // Browsers do not send a key by themselves.
    expect(
      (await raw({ jsonrpc: '2.0', id: 1, method: 'ping' }, { ...key(), origin: 'http://evil.example', 'mcp-session-id': 'x' })).status,
    ).toBe(404);
  });
});

describe('an episode', () => {
  test('is the MCP session: its task, its prompt, its tools, its rewards, its trace', async () => {
    const { client, call, sid, initialized, transport } = await connect('gallery', '?split=test&index=3', {
      'x-palestra-run': 'mcp-run',
    });
    expect(initialized._meta).toEqual({
      'palestra/session_id': sid,
      'palestra/environment': `${server.orgName}/gallery`,
      'palestra/split': 'test',
      'palestra/index': 3,
    });
    expect(client.getServerVersion()).toMatchObject({ name: `${server.orgName}/gallery` });
    expect(client.getInstructions()).toMatch(/^Picture 3:\n\n\[.*\]\n\nSay what it shows\.$/);
    const { prompts } = await client.listPrompts();
    expect(prompts.map(({ name }) => name)).toEqual(['task']);
    const { messages } = await client.getPrompt({ name: 'task' });
    expect(messages.map(({ content }) => content.type)).toEqual(['text', 'image', 'text']);
    await expect(client.getPrompt({ name: 'other' })).rejects.toMatchObject({ code: -32602 });

    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toEqual(['doze', 'look', 'paint', 'raise', 'say']);
    expect(tools.every(({ inputSchema }) => inputSchema.type === 'object')).toBe(true);

    const look = await call('look', { at: 2 });
    expect(look).toMatchObject({ text: 'look 1 at 2\n[image]', isError: false, reward: null, finished: false });
    expect(look.structuredContent).toEqual({ looked: 1 });
    expect(look.meta['palestra/task_id']).toMatch(/^[0-9a-f]{32}$/);
    await client.ping();
    expect(await call('say', { answer: 'a pixel' })).toMatchObject({ text: 'heard', reward: 1, finished: true });
    expect(await call('look')).toMatchObject({ isError: true, meta: { 'palestra/reason': 'episode_finished' }, reward: null });

    const calls = async () =>
      (await server.request('GET', `/v1/sessions/${sid}/calls`)).body.calls as { tool: string; reward: number | null }[];
    // A result is stored shortly after it was sent.
    await expect
      .poll(async () => (await calls()).map(({ tool, reward }) => [tool, reward]))
      .toEqual([
        ['look', null],
        ['say', 1],
        ['look', null],
      ]);
    await transport.terminateSession();
    expect((await server.request('GET', `/v1/sessions/${sid}`)).body).toMatchObject({
      state: 'closed',
      task: { split: 'test', index: 3 },
      total_reward: 1,
    });
  });

  test('an unknown tool, invalid input and a raising tool are error results', async () => {
    const { call } = await connect('gallery');
    const started = Date.now();
    expect(await call('nothing')).toMatchObject({
      isError: true,
      text: "'nothing' is not a valid tool",
      reward: null,
      meta: { 'palestra/reason': 'not_found' },
    });
    expect(await call('say')).toMatchObject({ isError: true, reward: null, meta: { 'palestra/reason': 'input_validation' } });
    expect(await call('raise')).toMatchObject({ isError: true, text: expect.stringContaining('the lamp fell'), reward: null });
    expect(Date.now() - started).toBeLessThan(15_000);
    expect(await call('look')).toMatchObject({ isError: false });
  });

  test('plays a random task of the first training split by default, or the one in headers', async () => {
    const seen = new Set<unknown>();
    for (let played = 0; played < 12; played += 1) {
      const { initialized, transport } = await connect('gallery');
      expect(initialized._meta['palestra/split']).toBe('train');
      seen.add(initialized._meta['palestra/index']);
      await transport.terminateSession();
    }
    expect(seen.size).toBeGreaterThan(1);
    const chosen = await connect('gallery', '', { 'x-palestra-split': 'test', 'x-palestra-index': '4' });
    expect(chosen.initialized).toMatchObject({ _meta: { 'palestra/split': 'test', 'palestra/index': 4 } });
    expect(chosen.initialized.instructions).toContain('Picture 4:');
  });

  test('whodunit is played to its reward', async () => {
    const { client, call } = await connect('manor', '?split=train&index=5');
    let total = 0;
    let finished: unknown;
    const expert = whodunit.players!.find(({ name }) => name === 'expert')!;
    await expert.play({
      prompt: client.getInstructions()!,
      tools: [],
      random: () => 0,
      async call(tool, input) {
        const { text, reward, finished: isLast } = await call(tool, input);
        total += reward as number;
        finished = isLast;
        return { text, reward: reward as number, finished: isLast as boolean };
      },
    });
    expect(finished).toBe(true);
    expect(total).toBeCloseTo(1, 5);
  });

  test('opens no session if setup fails', async () => {
    const before = (await openSessions('gallery')).length;
    const answer = await raw(INITIALIZE, key(), address('gallery', '?split=validation'));
    expect(answer).toMatchObject({ status: 500, body: { id: 7, error: { code: -32603, data: { code: 'setup_failed' } } } });
    expect(answer.body.error.message).toContain('the roof leaks');
    expect(await openSessions('gallery')).toHaveLength(before);
  });

  test('waits for a slot; a client that leaves meanwhile leaves no session', async () => {
    await server.request('POST', '/v1/environments', { body: { name: 'narrow', source: { kind: 'remote', url: upstream.url } } });
    await server.request('PUT', `/v1/environments/${server.orgName}/narrow/details`, { body: { sessions: { capacity: 1 } } });
    const first = await connect('narrow');
    const headers = { ...key(), 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
    const open = (signal: AbortSignal) => fetch(address('narrow'), { method: 'POST', headers, body: JSON.stringify(INITIALIZE), signal });
    await expect(open(AbortSignal.timeout(700))).rejects.toThrow('aborted');
    await expect.poll(async () => (await openSessions('narrow')).map(({ sid }) => sid)).toEqual([first.sid]);
    const waiting = open(AbortSignal.timeout(30_000));
    await expect.poll(async () => (await openSessions('narrow')).length).toBe(2);
    await first.transport.terminateSession();
    expect((await waiting).status).toBe(200);
  });
});

describe('connections', () => {
  test('joins a repeated call whose connection broke', async () => {
    const { sid } = await connect('gallery');
    const doze = { jsonrpc: '2.0', id: 3, method: 'tools/call', params: { name: 'doze', arguments: { ms: 4_000 } } };
    const headers = { ...key(), 'content-type': 'application/json', accept: 'application/json, text/event-stream', 'mcp-session-id': sid };
    const leaves = new AbortController();
    const cut = fetch(address('gallery'), { method: 'POST', headers, body: JSON.stringify(doze), signal: leaves.signal });
    const ended = cut.then(
      () => 'answered',
      () => 'gone',
    );
    await expect.poll(async () => (await server.request('GET', `/v1/sessions/${sid}/calls`)).body.calls.length).toBe(1);
    leaves.abort();
    expect(await ended).toBe('gone');
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect((await raw(doze, { ...key(), 'mcp-session-id': sid })).body.result.content[0].text).toBe('awake');
    expect((await server.request('GET', `/v1/sessions/${sid}/calls`)).body.calls).toHaveLength(1);
  });

  test('keeps the spelling of numbers in the ledger', async () => {
    const { sid } = await connect('gallery');
    const call = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"look","arguments":{"at":2.0}}}';
    await raw(call, { ...key(), 'mcp-session-id': sid });
    const { rows } = await server.database.pool.query('SELECT input FROM session_calls WHERE sid = $1', [sid]);
    expect(rows[0].input).toBe('{"at":2.0}');
  });

  test('an infrastructure failure is a JSON-RPC error and ends the session', async () => {
    await server.request('POST', '/v1/environments', { body: { name: 'hasty', source: { kind: 'remote', url: upstream.url } } });
    await server.request('PUT', `/v1/environments/${server.orgName}/hasty/details`, { body: { sessions: { call_timeout_s: 3 } } });
    const { call, sid } = await connect('hasty');
    expect(await call('look')).toMatchObject({ isError: false });
    await expect(call('doze', { ms: 20_000 })).rejects.toMatchObject({ code: -32603, data: { code: 'call_timeout', retryable: false } });
    // The ledger is written after the response.
    const secondCall = async () => (await server.request('GET', `/v1/sessions/${sid}/calls`)).body.calls[1];
    await expect.poll(secondCall).toMatchObject({ reward: null, failure_class: 'infrastructure' });
    await expect(call('look')).rejects.toMatchObject({ code: 404 });
  });
});
