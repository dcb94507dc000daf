import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { WebSocket } from 'ws';
import type { SessionCallView, SessionServerFrame, SessionView } from '@palestra/protocol';
import { counter, gate } from '../../support/counted-sessions.ts';
import { startServer, type TestServer } from '../../support/server.ts';
import { startTwoReplicas, type TwoReplicas } from '../../support/two-replicas.ts';

/** A session played and followed over one socket: who may, what each client is told, and sockets that are cut. */
let world: TwoReplicas;
let first: TestServer;
let second: TestServer;
let stranger: Record<string, string>;
let environment: string;
/** The same through an OpenEnv server: our kit's server would run a call once by itself, this one runs what it is told to. */
let naive: string;

beforeAll(async () => {
  world = await startTwoReplicas('counter', [counter], { bundled: true });
  ({ first, second, stranger, environment } = world);
  const source = { kind: 'openenv', url: `${first.url}/k/${first.apiKey}/openenv/${environment}` };
  const added = await first.request('POST', '/v1/environments', { body: { name: 'naive', source } });
  naive = `${added.body.owner}/naive`;
});
afterAll(() => world?.close());

const open = async (body: object = {}): Promise<string> => {
  const answer = await first.request('POST', '/v1/sessions', { body: { environment, split: 'train', index: 0, ...body } });
  expect(answer.body).toMatchObject({ sid: expect.any(String) });
  return (answer.body as SessionView).sid;
};
const ledger = async (sid: string): Promise<SessionCallView[]> => (await first.request('GET', `/v1/sessions/${sid}/calls`)).body.calls;
const urlOf = (server: TestServer, sid: string, query = '') => `${server.url.replace('http', 'ws')}/v1/sessions/${sid}/socket${query}`;
type Told<T extends SessionServerFrame['type']> = Extract<SessionServerFrame, { type: T }>;

/** A client of the socket with all that it was told. */
async function connect(sid: string, { server = first, after = '', headers = {} as Record<string, string> } = {}) {
  const query = after && `?after=${after}`;
  const socket = new WebSocket(urlOf(server, sid, query), { headers: { 'x-api-key': server.apiKey, ...headers } });
  onTestFinished(() => socket.terminate());
  const told: SessionServerFrame[] = [];
  socket.on('message', (data) => told.push(JSON.parse(String(data)) as SessionServerFrame));
  const closed = once(socket, 'close').then(([code]) => code as number);
  await once(socket, 'open');
  const of = <T extends SessionServerFrame['type']>(type: T, wanted: (one: Told<T>) => boolean = () => true): Told<T>[] =>
    told.filter((one): one is Told<T> => one.type === type && wanted(one as Told<T>));
  const heard = async <T extends SessionServerFrame['type']>(type: T, wanted?: (one: Told<T>) => boolean): Promise<Told<T>> => {
    // What was told instead is what a failure is about.
    await expect.poll(() => of(type, wanted)[0] ?? told.slice(), { interval: 10 }).toMatchObject({ type });
    return of(type, wanted)[0]!;
  };
  const say = (message: object) => socket.send(JSON.stringify(message));
  const call = (tool: string, input: object = {}, id: string = randomUUID()) => {
    say({ type: 'call', id, tool, input });
    return id;
  };
  const ended = (tool: string) => of('call', ({ call: one }) => one.tool === tool && one.state !== 'running');
  const position = () => told.flatMap((one) => ('event' in one ? [one.event] : [])).at(-1)!;
  return { socket, told, of, heard, say, call, ended, position, closed };
}

/** How an upgrade is refused. */
async function refusal(url: string, headers: Record<string, string>): Promise<[status: number, code: unknown]> {
  const socket = new WebSocket(url, { headers });
  socket.on('error', () => {});
  onTestFinished(() => socket.terminate());
  const opened = once(socket, 'open').then(() => null);
  const refused = once(socket, 'unexpected-response') as Promise<[unknown, AsyncIterable<Buffer> & { statusCode: number }]>;
  const answer = await Promise.race([opened, refused]);
  if (answer === null) return [101, null];
  let body = '';
  for await (const piece of answer[1]) body += String(piece);
  return [answer[1].statusCode, (JSON.parse(body) as { code: string }).code];
}

async function signIn(): Promise<string> {
  const login = await first.request('POST', '/v1/login', { body: { key: first.apiKey }, headers: { 'x-api-key': '' } });
  return login.headers.getSetCookie()[0]!.split(';')[0]!;
}

describe('who may open it', () => {
  test('only authenticated clients; with a cookie only pages of this origin; only sessions of the organisation', async () => {
    const sid = await open();
    const url = urlOf(first, sid);
    const { host } = new URL(first.url);
    const cookie = await signIn();
    expect(await refusal(url, {})).toEqual([401, 'unauthorized']);
    expect(await refusal(url, { 'x-api-key': 'or_nobody' })).toEqual([401, 'unauthorized']);
    expect(await refusal(url, { cookie: 'palestra_session=nobody', origin: first.url })).toEqual([401, 'unauthorized']);
    for (const headers of [
      { origin: 'https://evil.example' },
      { origin: `https://evil.example.${host}` },
      { origin: 'null' },
      { origin: first.url, 'sec-fetch-site': 'cross-site' },
      { origin: first.url, 'sec-fetch-site': 'same-site' },
      {},
    ]) {
      expect(await refusal(url, { cookie, ...headers } as Record<string, string>), JSON.stringify(headers)).toEqual([403, 'forbidden']);
    }
    expect(await refusal(url, { cookie, origin: first.url })).toEqual([101, null]);
    expect(await refusal(url, { cookie, origin: first.url, 'sec-fetch-site': 'same-origin' })).toEqual([101, null]);
    // A key is no ambient authority: whoever has it may say where it comes from.
    expect(await refusal(url, { 'x-api-key': first.apiKey, origin: 'https://notebook.example' })).toEqual([101, null]);
    expect(await refusal(url, stranger)).toEqual([404, 'session_not_found']);
    expect(await refusal(urlOf(first, randomUUID()), { 'x-api-key': first.apiKey })).toEqual([404, 'session_not_found']);
    expect(await refusal(urlOf(first, 'a%00b'), { 'x-api-key': first.apiKey })).toEqual([404, 'session_not_found']);
    expect((await first.request('GET', `/v1/sessions/${sid}/socket`)).status).toBe(404);
  });

  test('no page of another site, also where no key is needed', async () => {
    const server = await startServer({
      databaseUrl: world.databaseUrl,
      dataDir: first.config.dataDir,
      apiKey: first.apiKey,
      anonymous: true,
    });
    onTestFinished(() => server.close());
    const sid = await open();
    expect(await refusal(urlOf(server, sid), { origin: 'https://evil.example' })).toEqual([403, 'forbidden']);
    expect(await refusal(urlOf(server, sid), { origin: server.url })).toEqual([101, null]);
  });

  test('a browser that signs out and a revoked key lose it', async () => {
    const sid = await open();
    const cookie = await signIn();
    const client = await connect(sid, { headers: { 'x-api-key': '', cookie, origin: first.url } });
    await client.heard('session');
    const out = await first.request('POST', '/v1/logout', { headers: { 'x-api-key': '', cookie, origin: first.url } });
    expect(out.status).toBeLessThan(300);
    const ask = setInterval(() => client.socket.readyState === WebSocket.OPEN && client.say({ type: 'ping' }), 200);
    expect(await client.closed).toBe(1008);
    clearInterval(ask);
  });
});

test('refuses an invalid message and too many messages at once, and stays open', async () => {
  const sid = await open();
  const client = await connect(sid);
  client.socket.send('{');
  client.say([]);
  client.say({ type: 'dance', id: 'x' });
  client.say({ type: 'call', id: '1', tool: 'add', input: { by: 1 } });
  client.say({ type: 'call', id: randomUUID(), tool: 'add', input: 'by' });
  await expect
    .poll(() =>
      client
        .of('error')
        .map(({ code }) => code)
        .toSorted(),
    )
    .toEqual(['invalid_body', 'invalid_body', 'invalid_body', 'invalid_json', 'invalid_request']);
  client.say({ type: 'ping' });
  await client.heard('pong');
  expect(await ledger(sid)).toEqual([]);
  gate.open = () => {};
  const waiting = Array.from({ length: 40 }, () => client.call('wait'));
  const refused = () => client.of('error', ({ code }) => code === 'too_many_in_flight');
  await expect.poll(() => refused().map(({ id }) => id)).toEqual(waiting.slice(32));
  expect(refused()[0]).toMatchObject({ status: 429, retry_after: 1 });
  client.socket.send(Buffer.from('binary'));
  expect(await client.closed).toBe(1003);
  await first.request('DELETE', `/v1/sessions/${sid}`);
});

test('reports the end of each of many quick calls once, also when it ends during a poll', async () => {
  const sid = await open();
  const [player, ...watchers] = [await connect(sid), await connect(sid), await connect(sid, { server: second })];
  for (let round = 1; round <= 30; round += 1) {
    for (let lane = 0; lane < 8; lane += 1) player.call('add', { by: 1 });
    await expect.poll(() => player.of('result').length, { interval: 1 }).toBe(round * 8);
  }
  for (const watcher of watchers) {
    await expect.poll(() => new Set(watcher.ended('add').map(({ call }) => call.task_id)).size).toBe(240);
    await expect.poll(() => watcher.of('session').at(-1)!.session.total_reward).toBe(240);
    const states = watcher.of('call').map(({ call }) => `${call.task_id} ${call.state === 'running'}`);
    expect(states.length).toBe(new Set(states).size);
  }
  await first.request('DELETE', `/v1/sessions/${sid}`);
});

test('two clients of a session see each other’s calls and those over HTTP, once at the start and once at the end', async () => {
  const sid = await open();
  const [one, other] = [await connect(sid), await connect(sid, { server: second })];
  await Promise.all([one.heard('session'), other.heard('session')]);
  const before = gate.runs;
  const id = one.call('wait');
  const accepted = await one.heard('accepted');
  expect(accepted).toMatchObject({ id, task_id: expect.stringMatching(/^[0-9a-f]{32}$/) });
  const begun = await other.heard('call');
  expect(begun.call).toMatchObject({ tool: 'wait', state: 'running', task_id: accepted.task_id });
  // Clients see a call when it is stored, which may be before its tool runs.
  await expect.poll(() => gate.runs).toBeGreaterThan(before);
  gate.open();
  expect(await one.heard('result')).toEqual({
    type: 'result',
    id,
    task_id: accepted.task_id,
    result: { ok: true, output: expect.objectContaining({ blocks: [{ type: 'text', text: 'waited', detail: null }] }) },
  });
  expect((await other.heard('call', ({ call }) => call.state === 'result')).call.text).toBe('waited');
  other.call('add', { by: 2.5 });
  expect((await other.heard('result')).result).toMatchObject({ ok: true, output: { reward: 2.5 } });
  await first.request('POST', '/call', { body: { name: 'boom', input: {} }, headers: { 'x-session-id': sid } });
  for (const client of [one, other]) {
    // The end of `add` may come after that of `boom`: the results of this session are stored after they were answered.
    await client.heard('call', ({ call }) => call.tool === 'boom' && call.state === 'tool_failed');
    await client.heard('call', ({ call }) => call.tool === 'add' && call.state === 'result');
    // The sums come after the calls.
    await expect.poll(() => client.of('session').at(-1)!.session).toMatchObject({ total_reward: 2.5, calls: { total: 3 } });
    const states = client.of('call').map(({ call }) => `${call.task_id} ${call.state === 'running'}`);
    expect(new Set(states).size).toBe(states.length);
    expect(['wait', 'add', 'boom'].map((tool) => client.ended(tool).length)).toEqual([1, 1, 1]);
  }
  one.call('boom');
  expect(await one.heard('error')).toMatchObject({
    status: 500,
    code: 'environment_failed',
    detail: 'the tool broke',
    task_id: expect.any(String),
  });
  one.call('nothing');
  expect((await one.heard('result', ({ result }) => (result as { ok: boolean }).ok === false)).result).toMatchObject({ ok: false });
  expect(other.of('result')).toHaveLength(1);
});

describe('a socket that is disconnected', () => {
  test.each(['the same process', 'another process', 'HTTP'])('between call and result: the tool ran once, resumed over %s', async (way) => {
    const sid = await open({ environment: naive });
    const before = gate.runs;
    const cut = await connect(sid);
    gate.open = () => {};
    const id = cut.call('wait');
    const { task_id: taskId } = await cut.heard('accepted');
    await cut.heard('call');
    await expect.poll(() => gate.open.toString()).not.toBe('() => {}');
    cut.socket.terminate();
    const release = gate.open;
    if (way === 'HTTP') {
      const answer = first.request('POST', '/call', {
        body: { name: 'wait', input: {} },
        headers: { 'x-session-id': sid, 'idempotency-key': id },
      });
      release();
      expect(String((await answer).body)).toContain(`data: ${taskId}`);
      expect(String((await answer).body)).toContain('waited');
    } else {
      const again = await connect(sid, { server: way === 'another process' ? second : first, after: cut.position() });
      again.call('wait', {}, id);
      expect(await again.heard('accepted')).toMatchObject({ id, task_id: taskId });
      release();
      expect(await again.heard('result')).toMatchObject({ id, task_id: taskId, result: { ok: true } });
      // Once more, when it has ended: the same outcome.
      again.call('wait', {}, id);
      await expect.poll(() => again.of('result').length).toBe(2);
      expect(again.of('result')[1]).toEqual(again.of('result')[0]);
    }
    expect((await ledger(sid)).map(({ tool, task_id: task }) => [tool, task])).toEqual([['wait', taskId]]);
    expect(gate.runs).toBe(before + 1);
  });

  test('before any answer: the same id is the same call, whether or not the first message arrived', async () => {
    const sid = await open({ environment: naive });
    for (let round = 0; round < 10; round += 1) {
      const cut = await connect(sid);
      const id = cut.call('add', { by: 1 });
      // At any moment: before it is read, while it is stored, after it ran.
      await new Promise((resolve) => setTimeout(resolve, round * 2));
      cut.socket.terminate();
      const again = await connect(sid, { server: round % 2 === 0 ? second : first });
      again.call('add', { by: 1 }, id);
      expect((await again.heard('result', (one) => one.id === id)).result).toMatchObject({
        output: { blocks: [{ text: `now ${round + 1}` }] },
      });
      again.socket.terminate();
    }
    expect(await ledger(sid)).toHaveLength(10);
    // An id is not given to another call.
    const client = await connect(sid);
    const id = client.call('add', { by: 1 });
    await client.heard('result');
    client.call('add', { by: 2 }, id);
    expect(await client.heard('error')).toMatchObject({ id, status: 400, code: 'invalid_request' });
    expect(await ledger(sid)).toHaveLength(11);
  });

  test('resumes after the last event that was read, without gaps and without repeats of settled calls', async () => {
    const sid = await open();
    const watcher = await connect(sid, { server: second });
    const player = await connect(sid);
    player.call('add', { by: 1 });
    await expect.poll(() => watcher.ended('add').length).toBe(1);
    // As if it had begun so long ago that no call before it can still be on its way into the table: then the id is behind it.
    await first.database.pool.query(`UPDATE session_calls SET started_at = started_at - interval '6 s' WHERE sid = $1`, [sid]);
    player.call('add', { by: 2 });
    await expect.poll(() => watcher.ended('add').length).toBe(2);
    // The sums come after the call, and with them the position behind it.
    await expect.poll(() => watcher.of('session').at(-1)!.session.total_reward).toBe(3);
    const after = watcher.position();
    watcher.socket.terminate();
    const missed = [3, 4, 5, 6];
    for (const by of missed) player.call('add', { by });
    await expect.poll(() => player.of('result').length).toBe(6);
    const again = await connect(sid, { after });
    await expect.poll(() => missed.every((by) => again.ended('add').some(({ call }) => call.reward === by))).toBe(true);
    expect(again.of('call').some(({ call }) => call.reward === 1)).toBe(false);
    const told = again.ended('add').map(({ call }) => call.task_id);
    expect(new Set(told).size).toBe(told.length);
    // Every id leads on: from the first one that it heard everything after it is told.
    const early = watcher.of('session')[0]!.event;
    const all = await connect(sid, { after: early });
    await expect.poll(() => new Set(all.ended('add').map(({ call }) => call.reward)).size).toBe(6);
  });
});

test('the end of the session answers running calls, sends `end`, and closes the socket', async () => {
  const sid = await open();
  const [player, watcher] = [await connect(sid), await connect(sid, { server: second })];
  const id = player.call('wait');
  await watcher.heard('call');
  await first.request('DELETE', `/v1/sessions/${sid}`);
  expect(await player.heard('error')).toMatchObject({ id, code: 'session_deleted', task_id: expect.any(String) });
  for (const client of [player, watcher]) {
    expect((await client.heard('end')).session).toMatchObject({ live: false, state: 'closed' });
    expect(await client.closed).toBe(1000);
    expect(client.of('call').at(-1)!.call).toMatchObject({ tool: 'wait', state: 'refused' });
  }
  // It can still be read, and nothing more can be played.
  const late = await connect(sid, { after: '0.0' });
  expect((await late.heard('end')).session.live).toBe(false);
  expect(late.of('call').map(({ call }) => call.tool)).toEqual(['wait']);
  expect(await late.closed).toBe(1000);
});

test('a session of another process is played on that process', async () => {
  const sid = await open({ environment: 'palestra/ctf' });
  const client = await connect(sid, { server: second });
  const id = client.call('ls');
  expect(await client.heard('result')).toMatchObject({ id, result: { ok: true } });
  // A result is stored a moment after it was told.
  await expect.poll(() => ledger(sid)).toMatchObject([{ tool: 'ls', state: 'result', ok: true }]);
  const [call] = await ledger(sid);
  await client.heard('call', ({ call: { task_id: taskId } }) => taskId === call!.task_id);
  expect(await refusal(urlOf(second, sid), stranger)).toEqual([404, 'session_not_found']);
  const cookie = await signIn();
  expect(await refusal(urlOf(second, sid), { cookie, origin: 'https://evil.example' })).toEqual([403, 'forbidden']);
  expect(await refusal(urlOf(second, sid), { cookie, origin: second.url })).toEqual([101, null]);
});

test('after its process ended, the socket opens on another process and continues', async () => {
  const options = { databaseUrl: world.databaseUrl, bundledEnvironments: true, dataDir: first.config.dataDir, apiKey: first.apiKey };
  const ending = await startServer(options);
  const opened = await ending.request('POST', '/v1/sessions', { body: { environment: 'palestra/ctf', split: 'train', index: 0 } });
  const { sid } = opened.body as SessionView;
  const clients = [await connect(sid, { server: ending }), await connect(sid, { server: second })] as const;
  const id = clients[0].call('ls');
  const result = await clients[0].heard('result');
  await expect.poll(() => clients.every((client) => client.ended('ls').length === 1)).toBe(true);
  await ending.close();
  expect((await Promise.all(clients.map(({ closed }) => closed))).map((code) => [1001, 1006, 1012].includes(code))).toEqual([true, true]);
  const again = await connect(sid, { server: second, after: clients[1].position() });
  again.call('ls', {}, id);
  expect(await again.heard('result')).toEqual(result);
  const next = again.call('ls');
  expect(await again.heard('result', (one) => one.id === next)).toMatchObject({ result: { ok: true } });
  await expect
    .poll(async () => (await ledger(sid)).map(({ tool, state }) => [tool, state]))
    .toEqual([
      ['ls', 'result'],
      ['ls', 'result'],
    ]);
});

test('pings keep a session without other requests alive', async () => {
  const sid = await open();
  const before = (await first.request('GET', `/v1/sessions/${sid}`)).body as SessionView;
  const client = await connect(sid);
  const lastSeen = async () => {
    client.say({ type: 'ping' });
    return ((await first.request('GET', `/v1/sessions/${sid}`)).body as SessionView).last_seen_at;
  };
  await expect.poll(lastSeen).not.toBe(before.last_seen_at);
  await client.heard('pong');
});
