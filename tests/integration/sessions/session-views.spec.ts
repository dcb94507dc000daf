import { sessionCallListSchema, sessionCallSchema, sessionListSchema, sessionViewSchema, slotListSchema } from '@palestra/protocol/schemas';
import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { PalestraClient } from '@palestra/client';
import type { SessionCallView, SessionView } from '@palestra/protocol';
import { counter, follow, gate } from '../../support/counted-sessions.ts';
import type { TestServer } from '../../support/server.ts';
import { startTwoReplicas, type TwoReplicas } from '../../support/two-replicas.ts';

/** What people see of sessions: two API processes on one database, two organisations, an environment of the first one's own. */
let world: TwoReplicas;
let first: TestServer;
let second: TestServer;
let stranger: Record<string, string>;
let environment: string;

beforeAll(async () => {
  world = await startTwoReplicas('counter', [counter], { sessions: { deterministic: true, capacity: 40 }, bundled: true });
  ({ first, second, stranger, environment } = world);
});
afterAll(() => world?.close());
// What a test that failed has left behind holds slots, and is in the lists, of those after it.
afterEach(async () => {
  gate.open();
  for (const headers of [{}, stranger]) {
    const { body } = await first.request('GET', '/v1/sessions?state=live&limit=200', { headers });
    for (const { sid } of sessionListSchema.parse(body).sessions) await first.request('DELETE', `/v1/sessions/${sid}`, { headers });
  }
});

const open = async (
  body: object = {},
  { server = first, headers = {} }: { server?: TestServer; headers?: Record<string, string> } = {},
) => {
  const answer = await server.request('POST', '/v1/sessions', { body: { environment, split: 'train', index: 0, ...body }, headers });
  expect(answer.body).toMatchObject({ sid: expect.any(String) });
  return answer.body as SessionView;
};
const end = (sid: string, server = first) => server.request('DELETE', `/v1/sessions/${sid}`);
const call = (sid: string, name: string, input: object = {}, server = first) =>
  server.request('POST', '/call', { body: { name, input }, headers: { 'x-session-id': sid } });
const ledger = async (sid: string, query = ''): Promise<SessionCallView[]> =>
  sessionCallListSchema.parse((await first.request('GET', `/v1/sessions/${sid}/calls${query}`)).body).calls;

describe('refusals', () => {
  test('a session of another organisation does not exist for any request', async () => {
    const { sid } = await open();
    const routes = [
      ['GET', ''],
      ['GET', '/calls'],
      ['GET', '/calls/0123'],
      ['GET', '/events'],
      ['DELETE', ''],
      ['POST', '/fork'],
    ] as const;
    for (const [method, path] of routes) {
      const body = method === 'POST' ? {} : undefined;
      const other = await first.request(method, `/v1/sessions/${sid}${path}`, { headers: stranger, body });
      expect([method, path, other.status, other.body.code]).toEqual([method, path, 404, 'session_not_found']);
      const unknown = await first.request(method, `/v1/sessions/${randomUUID()}${path}`, { body });
      expect([unknown.status, unknown.body.code]).toEqual([404, 'session_not_found']);
      expect((await first.request(method, `/v1/sessions/${sid}${path}`, { headers: { 'x-api-key': '' }, body })).status).toBe(401);
    }
    expect((await first.request('GET', '/v1/sessions', { headers: stranger })).body).toEqual({ sessions: [], next_cursor: null });
    expect((await first.request('GET', `/v1/sessions/${sid}`)).body.live).toBe(true);
    await end(sid);
  });

  test('a key without the scope, a bad cursor, a bad filter and a body without a task are refused', async () => {
    const narrow = (await first.request('POST', '/v1/keys', { body: { name: 'narrow', scopes: ['rollouts'] } })).body.key as string;
    for (const path of ['/v1/sessions', '/v1/slots']) {
      expect((await first.request('GET', path, { headers: { 'x-api-key': narrow } })).body.code).toBe('scope_missing');
    }
    expect((await first.request('GET', '/v1/sessions?cursor=nonsense')).body.code).toBe('invalid_request');
    expect((await first.request('GET', '/v1/sessions?state=gone')).body.code).toBe('invalid_body');
    expect((await first.request('GET', '/v1/slots?environment=nobody/nothing')).body.code).toBe('environment_not_found');
    for (const body of [
      { environment },
      { environment, task_spec: {}, split: 'train', index: 0 },
      { environment, split: 'train', index: 0, secrets: { A: 1 } },
    ]) {
      expect((await first.request('POST', '/v1/sessions', { body })).status).toBe(422);
    }
    expect((await first.request('POST', '/v1/sessions', { body: '{' })).body.code).toBe('invalid_json');
    const unknown = { environment, split: 'train', index: 0 };
    expect((await first.request('POST', '/v1/sessions', { body: { ...unknown, variant: 'other' } })).body.code).toBe('unknown_variant');
    expect((await first.request('POST', '/v1/sessions', { body: { ...unknown, environment: 'no/thing' } })).body.code).toBe(
      'deployment_not_found',
    );
  });

  test('a failed opening leaves no session', async () => {
    const before = (await first.request('GET', '/v1/sessions?state=live')).body.sessions.length as number;
    expect((await first.request('POST', '/v1/sessions', { body: { environment, split: 'train', index: 99 } })).status).toBe(400);
    expect((await first.request('GET', '/v1/sessions?state=live')).body.sessions).toHaveLength(before);
  });
});

describe('lists', () => {
  test('pages are complete and without repeats while sessions are added', async () => {
    const own: string[] = [];
    for (let index = 0; index < 7; index += 1) own.push((await open()).sid);
    const seen: string[] = [];
    let cursor = '';
    for (;;) {
      const { body } = await first.request('GET', `/v1/sessions?limit=3&state=live${cursor && `&cursor=${cursor}`}`);
      const page = sessionListSchema.parse(body);
      seen.push(...page.sessions.map(({ sid }) => sid));
      if (page.next_cursor === null) break;
      cursor = page.next_cursor;
      own.push((await open()).sid);
    }
    expect(new Set(seen).size).toBe(seen.length);
    expect(own.slice(0, 7).filter((sid) => !seen.includes(sid))).toEqual([]);
    await Promise.all(own.map((sid) => end(sid)));
  });

  test('filters by state, environment, run, key, failure class and origin', async () => {
    const run = { name: 'a "run" / ü', rollout: 'r0', step: 4, split: 'train', task_index: 1, metadata: { lr: 0.5 } };
    const { sid } = await open({ run });
    const mine = async (query: string, server = first): Promise<string[]> =>
      (await server.request('GET', `/v1/sessions?limit=200&${query}`)).body.sessions.map((session: SessionView) => session.sid);
    const { holder } = (await first.request('GET', `/v1/sessions/${sid}`)).body as SessionView;
    const matching = ['state=live', `environment=${environment}`, `run=${encodeURIComponent(run.name)}`, `key_id=${holder.key!.id}`];
    for (const query of matching) expect([query, (await mine(query)).includes(sid)]).toEqual([query, true]);
    for (const query of [
      'state=ended',
      'environment=palestra/echo',
      'run=a',
      `key_id=${randomUUID()}`,
      'failure_class=policy',
      'state=lost,expired',
    ]) {
      expect([query, (await mine(query)).includes(sid)]).toEqual([query, false]);
    }
    await end(sid);
    expect(await mine('state=ended', second)).toContain(sid);
    expect(await mine(`state=closed&run=${encodeURIComponent(run.name)}`)).toEqual([sid]);
  });
});

describe('a session', () => {
  test('is opened in one request, played by its id, and shown with its ledger but without its secrets', async () => {
    const secret = 'hunter2-hunter2';
    const session = await open({
      index: undefined,
      split: undefined,
      task_spec: { start: 5 },
      secrets: { TOKEN: secret },
      run: { name: 'seen' },
    });
    expect(sessionViewSchema.parse(session)).toEqual(session);
    expect(session).toMatchObject({
      live: true,
      environment,
      environment_version: 1,
      deterministic: true,
      task: { kind: 'spec', spec: { start: 5 }, toolset_name: null },
      recording: { run: 'seen', step: null },
      holder: { user: expect.any(String), key: { prefix: first.apiKey.slice(0, 9) } },
      total_reward: null,
      calls: { total: 0 },
    });
    const { sid } = session;
    expect((await call(sid, 'add', { by: 2 })).body).toContain('now 7');
    await call(sid, 'add', { by: 'much' });
    await call(sid, 'boom', {}, second);
    await call(sid, 'long');
    const shown = sessionViewSchema.parse((await second.request('GET', `/v1/sessions/${sid}`)).body);
    expect(shown).toMatchObject({ num_calls: 4, total_reward: 2, calls: { total: 4, running: 0, ok: 2, policy: 1, environment: 1 } });
    expect(shown.last_call).toMatchObject({ tool: 'long', state: 'result', failure_class: 'ok' });

    const calls = await ledger(sid);
    expect(calls.map(({ tool: name, at_call, reward, failure_class, state }) => [name, at_call, reward, failure_class, state])).toEqual([
      ['add', 1, 2, 'ok', 'result'],
      ['add', 2, null, 'policy', 'result'],
      ['boom', 3, null, 'environment', 'tool_failed'],
      ['long', 4, null, 'ok', 'result'],
    ]);
    expect(calls[0]).toMatchObject({
      text: 'now 7',
      blocks: [{ type: 'text', text: 'now 7' }],
      truncated: false,
      latency_ms: expect.any(Number),
    });
    expect(calls[2]!.text).toContain('the tool broke');
    expect(calls[3]).toMatchObject({ truncated: true, blocks: null });
    expect(calls[3]!.text).toHaveLength(65_536);
    const whole = sessionCallSchema.parse((await first.request('GET', `/v1/sessions/${sid}/calls/${calls[3]!.task_id}`)).body);
    expect(whole.text).toBe('x'.repeat(100_000));
    const page = (await first.request('GET', `/v1/sessions/${sid}/calls?limit=2`)).body;
    expect(page).toMatchObject({ calls: [{ seq: calls[0]!.seq }, { seq: calls[1]!.seq }], next_after: calls[1]!.seq });
    expect((await ledger(sid, `?after=${page.next_after}`)).map(({ at_call }) => at_call)).toEqual([3, 4]);

    await end(sid);
    const texts = await Promise.all(
      ['', '/calls'].map(async (path) => JSON.stringify((await first.request('GET', `/v1/sessions/${sid}${path}`)).body)),
    );
    expect(texts.join()).not.toContain(secret);
  });

  test('streams its changes and calls until it ends, on a process that does not run it', async () => {
    const { sid } = await open({ environment: 'palestra/echo' });
    await call(sid, 'echo', { text: 'before' });
    let begun = () => {};
    const listens = new Promise<void>((resolve) => (begun = resolve));
    // The stream begins with a heartbeat, before the session has been read.
    const stream = follow(second, sid, (events) => {
      if (events.some(({ event }) => event === 'session')) begun();
      return false;
    });
    await listens;
    await call(sid, 'echo', { text: 'during' });
    await end(sid);
    const { parsed } = await stream;
    expect(parsed[0]).toMatchObject({ event: 'session', value: { sid, live: true } });
    const told = parsed.filter(({ event }) => event === 'call').map(({ value }) => [value.text, value.reward]);
    expect(told).toContainEqual(['during', 0.1]);
    expect(told).not.toContainEqual(['before', 0.1]);
    expect(parsed.at(-1)).toMatchObject({ event: 'end', value: { sid, state: 'closed', live: false, num_calls: 2 } });
  });

  test('sends a call when it begins and when it ends, and resumes after a disconnect', async () => {
    const { sid } = await open();
    await call(sid, 'add', { by: 1 });
    // Calls are answered before it is stored that the session is ready; that would be told too.
    await expect.poll(async () => (await first.request('GET', `/v1/sessions/${sid}`)).body.state).toBe('ready');
    const before = gate.runs;
    const waiting = call(sid, 'wait');
    const cut = await follow(first, sid, (events) => events.some(({ event }) => event === 'call'));
    expect(cut.parsed.map(({ event, value }) => [event, value.state])).toEqual([
      ['session', expect.any(String)],
      ['call', 'running'],
    ]);
    // Clients see a call when it is stored, which may be before its tool runs.
    await expect.poll(() => gate.runs).toBeGreaterThan(before);
    gate.open();
    await waiting;
    await call(sid, 'add', { by: 2 });
    const resumed = await follow(second, sid, (events) => events.filter(({ data }) => !data.includes('"running"')).length >= 2, {
      from: cut.events.at(-1)!.id,
    });
    const calls = resumed.parsed.filter(({ event }) => event === 'call').map(({ value }) => [value.tool, value.state, value.text]);
    expect(calls).toEqual([
      ['wait', 'result', 'waited'],
      ['add', 'result', 'now 3'],
    ]);
    const all = await follow(first, sid, (events) => events.filter(({ event }) => event === 'call').length === 3, { query: '?after=0' });
    expect(all.parsed.filter(({ event }) => event === 'call').map(({ value }) => value.tool)).toEqual(['add', 'wait', 'add']);
    await end(sid);
    const over = await follow(first, sid, () => false);
    expect(over.parsed.map(({ event }) => event)).toEqual(['session', 'end']);
  });

  test('is ended at once by any key of its organisation on any process', async () => {
    const { sid, owner_replica: owner } = await open({ environment: 'palestra/echo' }, { server: first });
    expect(owner).not.toBeNull();
    const other = (await first.request('POST', '/v1/keys', { body: { name: 'other' } })).body.key as string;
    const ended = await second.request('DELETE', `/v1/sessions/${sid}`, { headers: { 'x-api-key': other } });
    expect(ended).toMatchObject({ status: 200, body: { sid, state: 'closed', live: false } });
    for (const server of [first, second]) expect((await call(sid, 'echo', { text: 'x' }, server)).status).toBe(410);
    expect((await end(sid)).body.state).toBe('closed');
  });

  test('is ended from the dashboard with a cookie on any process, but not from another site', async () => {
    const sids = [];
    for (const _ of [1, 2]) sids.push((await open({ environment: 'palestra/echo' }, { server: first })).sid);
    const login = await second.request('POST', '/v1/login', { body: { key: second.apiKey }, headers: { 'x-api-key': '' } });
    const cookie = login.headers.get('set-cookie')!.split(';')[0]!;
    const press = (sid: string | undefined, page: Record<string, string>) =>
      second.request('DELETE', `/v1/sessions/${sid}`, { headers: { 'x-api-key': '', cookie, ...page } });
    // Over plain HTTP, browsers send the origin alone.
    const pages = (site: string, { url: origin }: TestServer): Record<string, string>[] => [{ 'sec-fetch-site': site }, { origin }];
    for (const page of pages('cross-site', first)) expect((await press(sids[0], page)).body.code).toBe('forbidden');
    expect((await first.request('GET', `/v1/sessions/${sids[0]}`)).body.live).toBe(true);
    for (const [index, page] of pages('same-origin', second).entries())
      expect((await press(sids[index], page)).body).toMatchObject({ sid: sids[index], state: 'closed' });
  });

  test('is opened on the process of its slot, whichever process gets the request', async () => {
    await first.database.prisma.environment.updateMany({ where: { name: 'ctf' }, data: { sessionPolicy: { capacity: 1 } } });
    const task = { environment: 'palestra/ctf', run: { name: 'here or there', metadata: { big: 1 } } };
    const opened = [await open(task), await open(task)];
    expect(new Set(opened.map((session) => session.owner_replica)).size).toBe(2);
    for (const { sid, state, recording } of opened) {
      expect(['starting', 'ready']).toContain(state);
      expect(recording).toMatchObject({ run: 'here or there', metadata: { big: 1 } });
      expect((await second.request('GET', '/prompt', { headers: { 'x-session-id': sid } })).status).toBe(200);
    }
    const { body } = await first.request('GET', '/v1/slots?environment=palestra/ctf');
    expect(body.environments).toMatchObject([{ capacity: 2, used: 2, waiting: 0 }]);
    await Promise.all(opened.map(({ sid }) => end(sid)));
  });

  test('is forked under a new id after one of its calls, in another run', async () => {
    const { sid } = await open({ index: 1 });
    for (const by of [1, 2, 3]) await call(sid, 'add', { by });
    const forked = await second.request('POST', `/v1/sessions/${sid}/fork`, { body: { at_call: 2, run: { name: 'branches' } } });
    expect(forked).toMatchObject({ status: 200, body: { forked_from: sid, at_call: 2 } });
    const fork = forked.body.sid as string;
    expect((await call(fork, 'add', { by: 100 })).body).toContain('now 113');
    expect((await first.request('GET', `/v1/sessions/${fork}`)).body).toMatchObject({
      forked_from: { sid, at_call: 2 },
      recording: { run: 'branches' },
      num_calls: 3,
    });
    expect((await first.request('GET', `/v1/sessions?forked_from=${sid}`)).body.sessions).toMatchObject([{ sid: fork }]);
    expect((await first.request('POST', `/v1/sessions/${sid}/fork`, { body: { at_call: 9 } })).body.code).toBe('invalid_request');
    expect((await first.request('POST', `/v1/sessions/${sid}/fork`, { body: { at_call: -1 } })).body.code).toBe('invalid_body');
    await Promise.all([end(sid), end(fork)]);
  });

  test('is opened once when its client chose the id and repeats the request', async () => {
    const sid = randomUUID();
    await open({ sid });
    const again = await second.request('POST', '/v1/sessions', { body: { environment, split: 'train', index: 0, sid } });
    expect(again.body.code).toBe('session_exists');
    expect((await call(sid, 'add', { by: 1 })).body).toContain('now 1');
    await end(sid);
  });
});

test('the client library opens, plays, follows, forks and ends sessions', async () => {
  const client = new PalestraClient({ url: second.url, apiKey: second.apiKey });
  const { sid } = await client.sessions.open({ environment, split: 'train', index: 1, run: { name: 'client' } });
  const events: string[] = [];
  const followed = (async () => {
    for await (const event of client.sessions.events(sid, { after: 0 })) events.push(event.type);
  })();
  const session = client.attach(sid);
  expect(await session.call('add', { by: 4 })).toMatchObject({ blocks: [{ text: 'now 14' }] });
  const fork = await client.sessions.fork(sid, { atCall: 1 });
  expect(await client.attach(fork.sid).call('add', { by: 1 })).toMatchObject({ blocks: [{ text: 'now 15' }] });
  expect((await client.sessions.slots(environment))[0]!.sessions.map((session) => session.sid)).toContain(sid);
  const open: string[] = [];
  for await (const row of client.sessions.list({ states: ['live'], environment })) open.push(row.sid);
  expect(open.toSorted()).toEqual([sid, fork.sid].toSorted());
  await session.close();
  await followed;
  expect(events[0]).toBe('session');
  expect(events).toContain('call');
  expect(events.at(-1)).toBe('end');
  expect(await client.sessions.end(fork.sid)).toMatchObject({ state: 'closed' });
  const calls: string[] = [];
  for await (const call of client.sessions.calls(fork.sid)) calls.push((await client.sessions.call(fork.sid, call.task_id)).text!);
  expect(calls).toEqual(['now 14', 'now 15']);
  await client.close();
});

describe('slots', () => {
  test('show an organisation its sessions, and the owner of an environment how many slots others hold', async () => {
    const mine = await open({ run: { name: 'slots' } });
    const theirs = await open({}, { headers: stranger });
    await call(mine.sid, 'add', { by: 1 });
    const { body } = await first.request('GET', `/v1/slots?environment=${environment}`);
    const [group] = slotListSchema.parse(body).environments;
    expect(group).toMatchObject({ environment, version: 1, managed: true, capacity: 40, used: 2, waiting: 0 });
    expect(group!.sessions).toMatchObject([
      {
        sid: mine.sid,
        org: first.orgName,
        run: 'slots',
        last_call: { tool: 'add' },
        holder: { key: { prefix: first.apiKey.slice(0, 9) } },
      },
      { sid: null, org: world.strangerName, run: null, holder: null },
    ]);
    const seen = slotListSchema.parse((await second.request('GET', '/v1/slots', { headers: stranger })).body).environments;
    expect(seen).toMatchObject([
      { environment, managed: false, capacity: 40, used: 2, sessions: [{ sid: theirs.sid, org: world.strangerName }] },
    ]);
    expect(JSON.stringify(seen)).not.toContain(mine.sid);
    await Promise.all([end(mine.sid), first.request('DELETE', `/v1/sessions/${theirs.sid}`, { headers: stranger })]);
    const after = (await first.request('GET', `/v1/slots?environment=${environment}`)).body.environments;
    expect(after).toMatchObject([{ environment, used: 0, waiting: 0, sessions: [] }]);
  });

  test('a full environment shows waiting sessions, and an ended session admits the next one', async () => {
    await first.request('PUT', `/v1/environments/${environment}/details`, { body: { sessions: { capacity: 1, deterministic: true } } });
    const holding = await open();
    const waiting = open();
    const group = async () => (await first.request('GET', `/v1/slots?environment=${environment}`)).body.environments[0];
    await expect.poll(group).toMatchObject({ capacity: 1, used: 1, waiting: 1 });
    expect((await group()).sessions).toMatchObject([
      { sid: holding.sid, waiting: false },
      { waiting: true, state: 'reserved' },
    ]);
    await end(holding.sid);
    const { sid, queue } = await waiting;
    expect(queue).toMatchObject({ waiting: false, queued_at: expect.any(String), admitted_at: expect.any(String) });
    await end(sid);
  });

  test('bundled environments have their capacity per process', async () => {
    // Nobody manages those over HTTP.
    await first.database.prisma.environment.updateMany({ where: { name: 'math' }, data: { sessionPolicy: { capacity: 3 } } });
    const { body } = await first.request('GET', '/v1/slots?environment=palestra/math');
    expect(body.environments).toMatchObject([{ environment: 'palestra/math', managed: false, capacity: 6, used: 0, sessions: [] }]);
  });
});
