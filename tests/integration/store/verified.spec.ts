import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { PalestraClient, type Session } from '@palestra/client';
import { defineEnvironment, type RunningServer, serve, tool, z } from '@palestra/environment-kit';
import { selectUnverified } from '../../../apps/api/src/store/derive/verify/verify.sql.ts';
import { selectSessions } from '../../../apps/api/src/sessions/views/session-list.sql.ts';
import { holdLanes, releaseLanes } from '../../support/lanes.ts';
import { sharedServer, type TestServer } from '../../support/server.ts';
import { callTool, closeSession, eventually, observed, openSession } from '../observed.world.ts';

/** Uploads of trainers against sessions that really happened here: a real environment, real sessions, real uploads. */
const WAIT_MS = 120;
const timed = defineEnvironment({
  name: 'timed',
  splits: ['train'],
  tasks: () => [{}, {}, {}, {}],
  prompt: () => 'Look, wait, answer.',
  tools: {
    look: tool({ description: 'Looks', input: z.object({ at: z.string() }), run: ({ at }) => `${at} is empty` }),
    wait: tool({ description: 'Takes its time', run: () => new Promise<string>((resolve) => setTimeout(() => resolve('done'), WAIT_MS)) }),
    answer: tool({
      description: 'Ends it',
      input: z.object({ value: z.number() }),
      run: ({ value }) => ({ content: [{ type: 'text' as const, text: 'noted', detail: null }], reward: value, finished: true }),
    }),
  },
});

let server: TestServer;
let upstream: RunningServer;
let fragile: RunningServer;
let client: PalestraClient;
const environment = () => `${server.orgName}/timed`;

beforeAll(async () => {
  server = await sharedServer();
  upstream = await serve([timed]);
  fragile = await serve([observed]);
  client = new PalestraClient({ url: server.url, apiKey: server.apiKey });
  for (const [name, url] of [
    ['timed', upstream.url],
    ['observed', fragile.url],
  ]) {
    await client.environments.add({ name: name!, url: url! });
  }
});
afterAll(async () => {
  await client?.close();
  await server?.close();
  await upstream?.close();
  await fragile?.close();
});

type Call = [tool: string, input: object, reward?: number | null, finished?: boolean];
const LOOK: Call = ['look', { at: 'door' }];
const WAIT: Call = ['wait', {}];
const ANSWER: Call = ['answer', { value: 1 }, 1, true];

async function play(index: number, calls: Call[], name = environment()): Promise<string> {
  const session: Session = await client.session({ environment: name, split: 'train', index });
  for (const [toolName, input] of calls) await session.call(toolName, input as never).catch(() => {});
  await session.close();
  return session.sid;
}

/** As SkyRL uploads: one stamp for all, calls named by an md5, no session id, no task index but in the name. */
async function upload(run: string, index: number, calls: Call[], more: { metadata?: object; environment?: string } = {}): Promise<string> {
  const id = randomUUID();
  const [now, place] = [Date.now(), more.environment ?? environment()];
  const tail = place.replaceAll('/', '-');
  const total = calls.reduce((sum, [, , reward]) => sum + (reward ?? 0), 0);
  const metadata = { stop_reason: 'finished', total_reward: total, num_turns: calls.length, ...more.metadata };
  const message = (at: number, rest: object) => {
    const plain = {
      eventType: 'message',
      eventId: randomUUID(),
      rolloutEventId: id,
      timestamp: now,
      index: at,
      isFinished: false,
      metadata: {},
    };
    return { ...plain, ...rest };
  };
  const events: object[] = [
    {
      eventType: 'rollout',
      eventId: id,
      timestamp: now,
      runName: run,
      rolloutName: `${tail}-train-${index}`,
      environment: place,
      split: 'train',
      metadata,
    },
    message(0, { type: 'system_message', content: 'You are an agent.' }),
    message(1, { type: 'user_message', content: `task ${index}` }),
  ];
  calls.forEach(([name, input, reward = null, finished = false], turn) => {
    const callId = randomUUID().replaceAll('-', '').slice(0, 12);
    events.push(message(3 * turn + 2, { type: 'assistant_message', content: `turn ${turn}` }));
    events.push(message(3 * turn + 3, { type: 'tool_call', name, callId, content: JSON.stringify(input, null, 1) }));
    const result = { type: 'tool_result', callId, content: 'ok', ...(reward === null ? {} : { reward }), isFinished: finished };
    events.push(message(3 * turn + 4, result));
  });
  expect(await server.request('POST', '/v1/rollouts', { body: { events } })).toMatchObject({
    status: 200,
    body: { accepted: events.length },
  });
  return id;
}

const rollout = async (id: string) => (await server.request('GET', `/v1/rollouts/${id}`)).body;
const verdictOf = (id: string) =>
  eventually(async () => {
    const found = await rollout(id);
    return found.verified === null ? null : found;
  });
const sql = async (text: string, values: unknown[] = []) => (await server.database.pool.query(text, values)).rows;
const callsOf = (id: string) =>
  sql('SELECT c.* FROM rollout_calls c JOIN rollout_heads h ON h.seq = c.rollout_seq WHERE h.id = $1 ORDER BY index', [id]);

test('an upload that names its environment without the owner is found too, and agrees with the session that it names', async () => {
  const calls: Call[] = [['look', { at: 'the bare wall' }], ANSWER];
  const sid = await play(0, calls);
  const id = await upload('bare', 0, calls, { environment: 'timed' });
  expect(await verdictOf(id)).toMatchObject({ verified: 'verified', session: sid });
  const other = await play(1, calls);
  const named = await upload('bare', 1, calls, { environment: 'timed', metadata: { session_id: other } });
  expect(await verdictOf(named)).toMatchObject({ verified: 'verified', session: other });
});

test('rollouts with very many short messages are compared one after another, so that they fit into memory', async () => {
  const ids = [await upload('wordy', 0, [LOOK, ANSWER]), await upload('wordy', 1, [LOOK, ANSWER])];
  await Promise.all(ids.map(verdictOf));
  const client = await server.database.pool.connect();
  const selected = async () =>
    (await selectUnverified(client as never, 500, 64 * 1024 * 1024, 0)).filter(({ id }) => ids.includes(id)).length;
  try {
    await client.query('BEGIN');
    const change = `UPDATE rollout_heads SET unverified = true, dirty = false, verify_at = '2000-01-01', last_at = now() - interval '1 h', messages = $2 WHERE id = ANY($1)`;
    await client.query(change, [ids, 3]);
    expect(await selected()).toBe(2);
    for (const messages of [300_000, 2_000_000_000]) {
      await client.query(change, [ids, messages]);
      expect(await selected()).toBe(1);
    }
  } finally {
    await client.query('ROLLBACK');
    client.release();
  }
});

test('a session is found by its calls, however many later sessions there are', async () => {
  const calls: Call[] = [['look', { at: 'the crowded room' }], ANSWER];
  const sid = await play(2, calls);
  await sql(
    `INSERT INTO sessions SELECT (jsonb_populate_record(s, jsonb_build_object('sid', 'crowd-' || n, 'created_at', now()))).*
     FROM sessions s, generate_series(1, 3000) n WHERE s.sid = $1`,
    [sid],
  );
  const id = await upload('crowded', 2, calls);
  expect(await verdictOf(id)).toMatchObject({ verified: 'verified', session: sid });
});

test('an upload without a session is matched and verified, and its latency is in lists and roll-ups', async () => {
  const sid = await play(0, [LOOK, WAIT, WAIT, ANSWER]);
  const id = await upload('plain', 0, [LOOK, WAIT, WAIT, ANSWER]);
  const found = await verdictOf(id);
  expect(found).toMatchObject({ verified: 'verified', session: sid, provenance: { telemetry: 'inferred' }, reward: 1 });
  expect(found.rules.telemetry).toBe('ledger: the only equal one, confidence 1.00');
  expect(found.latency_ms).toBeGreaterThanOrEqual(2 * WAIT_MS - 2);
  expect(found.latency_ms).toBeLessThan(2 * WAIT_MS + 20_000);
  const listed = async () => (await server.request('GET', `/v1/runs/plain/rollouts`)).body.rollouts;
  await expect.poll(listed).toMatchObject([{ id, verified: 'verified', latency_ms: found.latency_ms, session: sid }]);
  // Who played it is known by the session, in the list of runs, too.
  const [played] = await sql(
    'SELECT u.name AS user, k.name AS key FROM api_keys k JOIN users u ON u.id = k.user_id JOIN sessions s ON s.key_id = k.id::text WHERE s.sid = $1',
    [sid],
  );
  const { runs } = (await server.request('GET', '/v1/runs?name=plain')).body;
  expect(runs[0].origin).toMatchObject({ agent: null, user: played.user, key: played.key });
  const calls = await callsOf(id);
  expect(calls.map(({ index, tool: name, sid: of, failure_class }: any) => [index, name, of, failure_class])).toEqual([
    [3, 'look', sid, null],
    [6, 'wait', sid, null],
    [9, 'wait', sid, null],
    [12, 'answer', sid, null],
  ]);
  const figures = await eventually(async () => {
    const rows = await sql(
      `SELECT figures FROM tool_rollups t JOIN runs u ON u.seq = t.run_seq JOIN organisations o ON o.id = u.org_id
      WHERE u.name = 'plain' AND tool = 'wait' AND o.name = $1`,
      [server.orgName],
    );
    return rows[0]?.figures.timed > 0 ? rows[0].figures : null;
  });
  expect(figures).toMatchObject({ calls: 2, timed: 2, infrastructure: 0 });
  expect(figures.p50_ms).toBeGreaterThanOrEqual(WAIT_MS - 1);
  expect(figures.p50_ms).toBeCloseTo((calls[1].duration_ms + calls[2].duration_ms) / 2, 1);
});

test('a session names the rollout that was uploaded for it, in lists too, and none of another organisation', async () => {
  const calls: Call[] = [['look', { at: 'the shown wall' }], ANSWER];
  const sid = await play(3, calls);
  const shown = async () => (await server.request('GET', `/v1/sessions/${sid}`)).body.uploaded;
  const [{ rollout_seq: seq }] = await sql(
    `WITH org AS (INSERT INTO organisations (name) VALUES ($1) RETURNING id),
     run AS (INSERT INTO runs (org_id, name, name_hash) SELECT id, 'theirs', sha256('theirs') FROM org RETURNING seq, org_id),
     head AS (INSERT INTO rollout_heads (org_id, id, day, run_seq) SELECT org_id, gen_random_uuid(), current_date, seq FROM run RETURNING seq)
     INSERT INTO rollout_meta (rollout_seq, sid) SELECT seq, $2 FROM head RETURNING rollout_seq`,
    [`other-${randomUUID()}`, sid],
  );
  expect(await shown()).toBeNull();
  const id = await upload('shown', 3, calls, { metadata: { session_id: sid } });
  await verdictOf(id);
  expect(await shown()).toEqual({ run: 'shown', rollout_id: id });
  const { sessions } = (await server.request('GET', '/v1/sessions?state=closed&limit=5')).body;
  expect(sessions.find((one: any) => one.sid === sid)?.uploaded).toEqual({ run: 'shown', rollout_id: id });
  await sql('DELETE FROM rollout_heads WHERE seq = $1', [seq]);

  const reader = await server.database.pool.connect();
  try {
    await reader.query('BEGIN; SET LOCAL enable_seqscan = off');
    const explain = { query: (text: string, values: unknown[]) => reader.query(`EXPLAIN ${text}`, values) };
    const rows: any[] = await selectSessions(explain as never, { orgId: randomUUID(), after: null, limit: 50 });
    expect(rows.map((row) => row['QUERY PLAN']).join('\n')).toContain('Index Scan using rollout_meta_sid_idx');
  } finally {
    await reader.query('ROLLBACK');
    reader.release();
  }
});

test('the ledger match survives new settings of the run', async () => {
  const id = await upload('settings', 1, [LOOK, ANSWER], { metadata: { session_id: await play(1, [LOOK, ANSWER]) } });
  await verdictOf(id);
  const other = await upload('settings', 1, [WAIT, ANSWER]);
  await play(1, [WAIT, ANSWER]);
  const before = [await verdictOf(id), await verdictOf(other)];
  await sql(
    `UPDATE rollout_heads SET dirty = true, revision = revision + 1 WHERE run_seq = (SELECT run_seq FROM rollout_heads WHERE id = $1)`,
    [id],
  );
  const after = [await rollout(id), await rollout(other)];
  for (const at of [0, 1])
    for (const key of ['verified', 'session', 'latency_ms', 'rules', 'provenance']) expect(after[at][key]).toEqual(before[at][key]);
});

describe('a rollout with differences is partial', () => {
  test('in a reward', async () => {
    const sid = await play(2, [LOOK, ['answer', { value: 0.5 }]]);
    const found = await verdictOf(await upload('reward', 2, [LOOK, ['answer', { value: 0.5 }, 1, true]]));
    expect(found).toMatchObject({ verified: 'partial', session: sid, reward: 1 });
    expect(found.rules.telemetry).toMatch(/^ledger: most alike, .*; reward of message 6 is 1, recorded 0.5$/);
  });

  test('in a call that did not happen', async () => {
    const sid = await play(3, [LOOK, ANSWER]);
    const found = await verdictOf(await upload('call', 3, [LOOK, ['look', { at: 'window' }], ANSWER]));
    expect(found).toMatchObject({ verified: 'partial', session: sid });
    expect(found.rules.telemetry).toContain('call of message 6 (look) is not recorded');
    expect(await callsOf(found.id)).toHaveLength(2);
  });

  test('although it names its session, with the calls that it omits', async () => {
    const sid = await play(3, [LOOK, WAIT, ANSWER]);
    const found = await verdictOf(await upload('named', 3, [LOOK, ANSWER], { metadata: { session_id: sid } }));
    expect(found).toMatchObject({ verified: 'partial', session: sid, provenance: { telemetry: 'reported' } });
    expect(found.rules.telemetry).toBe('ledger: named, confidence 1.00; a recorded call (wait) was not uploaded');
  });
});

describe('a rollout is unverified', () => {
  test('that matches no session, or names a missing one', async () => {
    const never = await upload('never', 0, [
      ['look', { at: 'nowhere' }],
      ['answer', { value: 7 }, 7, true],
    ]);
    const unknown = await upload('never', 0, [LOOK, ANSWER], { metadata: { session_id: 'nobody' } });
    expect(await verdictOf(never)).toMatchObject({
      verified: 'unverified',
      session: null,
      latency_ms: null,
      provenance: { telemetry: 'unknown' },
    });
    const found = await verdictOf(unknown);
    expect(found).toMatchObject({ verified: 'unverified', session: 'nobody' });
    expect(found.rules.telemetry).toBe('ledger: the session that it names is not known');
  });

  test('that only a session of another organisation matches, even by name', async () => {
    const sid = await play(0, [LOOK, ['answer', { value: 0.125 }]]);
    await sql(`UPDATE sessions SET org_id = $2 WHERE sid = $1`, [sid, randomUUID()]);
    const calls: Call[] = [LOOK, ['answer', { value: 0.125 }, 0.125, true]];
    expect(await verdictOf(await upload('foreign', 0, calls, { metadata: { session_id: sid } }))).toMatchObject({ verified: 'unverified' });
    expect(await verdictOf(await upload('foreign', 0, calls))).toMatchObject({ verified: 'unverified', session: null });
  });
});

test('the retries of a client are one call', async () => {
  const again: Call = ['look', { at: 'again' }];
  const sid = await play(0, [again, again, again, ANSWER]);
  const found = await verdictOf(await upload('retries', 0, [again, ANSWER]));
  expect(found).toMatchObject({ verified: 'verified', session: sid });
  expect(await callsOf(found.id)).toHaveLength(2);
});

test('four samples of a task at the same time get a session each', async () => {
  const own = (sample: number): Call[] => [
    LOOK,
    ['look', { at: `room ${sample % 2}` }],
    ['answer', { value: sample / 4 }, sample / 4, true],
  ];
  const sids = await Promise.all([0, 1, 2, 3].map((sample) => play(1, own(sample))));
  const ids = await Promise.all([3, 1, 0, 2].map((sample) => upload('samples', 1, own(sample))));
  const found = await Promise.all(ids.map(verdictOf));
  expect(found.map(({ verified }) => verified)).toEqual(Array(4).fill('verified'));
  expect(found.map(({ session }) => session)).toEqual([3, 1, 0, 2].map((sample) => sids[sample]));
});

test('equal samples get one session each, with a lower confidence', async () => {
  const same: Call[] = [['look', { at: 'twin' }], ANSWER];
  const sids = [await play(1, same), await play(1, same)];
  const found = await Promise.all([await upload('twins', 1, same), await upload('twins', 1, same)].map(verdictOf));
  expect(new Set(found.map(({ session }) => session))).toEqual(new Set(sids));
  expect(found.map(({ verified }) => verified)).toEqual(['verified', 'verified']);
  const third = await verdictOf(await upload('twins', 1, same));
  expect(third).toMatchObject({ verified: 'unverified', session: null });
});

test('a rollout waits for an open session', async () => {
  const session = await client.session({ environment: environment(), split: 'train', index: 2 });
  await session.call('look', { at: 'open' });
  const id = await upload('open', 2, [
    ['look', { at: 'open' }],
    ['answer', { value: 0.75 }, 0.75, true],
  ]);
  const deferred = await eventually(async () => {
    const [head] = await sql('SELECT unverified, verify_at > now() AS later FROM rollout_heads WHERE id = $1', [id]);
    return head.later ? head : null;
  });
  expect(deferred.unverified).toBe(true);
  expect((await rollout(id)).verified).toBeNull();
  await session.call('answer', { value: 0.75 });
  await session.close();
  expect(await verdictOf(id)).toMatchObject({ verified: 'verified', session: session.sid });
});

test('a rollout that comes before the last call of its session is stored waits for it', async () => {
  const calls: Call[] = [['look', { at: 'the late row' }], ANSWER];
  const sid = await play(0, calls);
  // Stored until then.
  await server.request('GET', `/v1/sessions/${sid}`);
  await sql(`UPDATE session_calls SET sid = 'late-' || sid WHERE sid = $1 AND tool = 'answer'`, [sid]);
  const compare = (id: string, age: string) =>
    sql(`UPDATE rollout_heads SET last_at = now() - $2::interval, verify_at = now() WHERE id = $1`, [id, age]);
  const lanes = await server.database.pool.connect();
  await holdLanes(lanes);
  const id = await upload('late row', 0, calls, { metadata: { session_id: sid } });
  // It stays young, however busy the machine is.
  await compare(id, '-1 minute');
  await releaseLanes(lanes);
  lanes.release();
  await eventually(async () => (await sql('SELECT FROM rollout_heads WHERE id = $1 AND verify_at > now()', [id])).length > 0 || null);
  expect((await rollout(id)).verified).toBeNull();
  await sql(`UPDATE session_calls SET sid = $1 WHERE sid = 'late-' || $1`, [sid]);
  await compare(id, '0 s');
  expect(await verdictOf(id)).toMatchObject({ verified: 'verified', session: sid });
});

test('a recording is verified, and its session stays available to the upload of the trainer', async () => {
  const sid = await openSession(server, environment(), { 'x-palestra-run': 'recorded' });
  await callTool(server, sid, 'look', { at: 'record' });
  await callTool(server, sid, 'nonsense', {});
  await callTool(server, sid, 'answer', { value: 1 });
  await closeSession(server, sid);
  const [row] = await eventually(async () => {
    const { body } = await server.request('GET', '/v1/runs/recorded/rollouts');
    return body.rollouts?.[0]?.verified ? body.rollouts : null;
  });
  expect(row).toMatchObject({ verified: 'verified', session: sid, provenance: { telemetry: 'reported' } });
  expect((await callsOf(row.id)).map(({ failure_class }: any) => failure_class)).toEqual([null, 'policy', null]);
  const uploaded = await upload('trained', 0, [
    ['look', { at: 'record' }],
    ['nonsense', {}],
    ['answer', { value: 1 }, 1, true],
  ]);
  expect(await verdictOf(uploaded)).toMatchObject({ verified: 'verified', session: sid });
});

describe('a reward after the environment was lost', () => {
  const score = (reward: number): Call => ['score', { reward }];
  async function lost(before: Call[], last: Call): Promise<string> {
    const session = await client.session({ environment: `${server.orgName}/observed`, split: 'train', index: 0 });
    for (const [name, input] of before) await session.call(name, input as never);
    // Restarted, its server knows the episode no more.
    const { port } = new URL(fragile.url);
    await fragile.close();
    fragile = await serve([observed], { port: Number(port) });
    await session.call(last[0], last[1] as never).catch(() => {});
    await session.close().catch(() => {});
    // Outcomes are written behind their answers.
    await eventually(async () => {
      const [call] = await sql('SELECT failure_class FROM session_calls WHERE sid = $1 ORDER BY seq DESC LIMIT 1', [session.sid]);
      return call?.failure_class === 'infrastructure' ? true : null;
    });
    return session.sid;
  }
  const place = () => ({ environment: `${server.orgName}/observed` });
  const claims = (...rewards: number[]): Call[] => rewards.map((reward, at) => ['score', { reward: at === 0 ? 0 : 0.5 }, reward]);

  test('is unscored: the reported reward is kept, and no mean includes it', async () => {
    const sid = await lost([score(0)], score(0.5));
    const id = await upload('lost', 0, claims(0, 0), { ...place(), metadata: { session_id: sid, total_reward: 0 } });
    expect(await rollout(id)).toMatchObject({ reward: 0 });
    const found = await eventually(async () => {
      const now = await rollout(id);
      return now.failure_class === null ? null : now;
    });
    expect(found).toMatchObject({
      verified: 'partial',
      reward: null,
      reward_reported: 0,
      failure_class: 'infrastructure',
      stop: 'infra_error',
      session: sid,
    });
    expect(found.messages.flatMap(({ reward }: any) => reward ?? [])).toEqual([0, 0]);
    expect(found.rules.telemetry).toMatch(/; its last call was lost, so that its 0 is no score$/);
    const run = async () => (await server.request('GET', '/v1/runs?name=lost')).body.runs[0];
    await expect.poll(run).toMatchObject({ num_rollouts: 1, num_scored: 0, num_errors: 1, avg_rollout_reward: null });
    const figures = () =>
      sql(
        `SELECT figures FROM tool_rollups t JOIN runs u ON u.seq = t.run_seq JOIN organisations o ON o.id = u.org_id WHERE u.name = 'lost' AND o.name = $1`,
        [server.orgName],
      );
    await expect.poll(figures).toMatchObject([{ figures: { infrastructure: 1, timed: 2, scored: 0 } }]);
  });

  test('is a partial sum: it is in no mean, pass@k, group or export', async () => {
    const group = { group_id: 'g', n_samples: 2 };
    const whole: Call[] = [['score', { reward: 1, finished: true }, 1, true]];
    const played = await play(0, whole, place().environment);
    await upload('interrupted', 0, whole, { ...place(), metadata: { session_id: played, ...group } });
    const sid = await lost([score(0.5)], score(0.25));
    const calls: Call[] = [
      ['score', { reward: 0.5 }, 0.5],
      ['score', { reward: 0.25 }, 0],
    ];
    const id = await upload('interrupted', 0, calls, { ...place(), metadata: { session_id: sid, ...group } });
    const found = await eventually(async () => {
      const now = await rollout(id);
      return now.failure_class === null ? null : now;
    });
    expect(found).toMatchObject({ reward: null, partial_reward: 0.5, reward_reported: 0.5, stop: 'infra_error' });
    expect(found.rules.telemetry).toMatch(/; its last call was lost, so that its rewards are no score$/);

    const get = async (path: string) => (await server.request('GET', path)).body;
    const run = async () => (await get('/v1/runs?name=interrupted')).runs[0];
    await expect.poll(run).toMatchObject({ num_rollouts: 2, num_scored: 1, num_errors: 1, avg_rollout_reward: 1 });
    const { kpis } = await get('/v1/runs/interrupted/summary');
    const value = (key: string) => kpis.find((one: any) => one.key === key)?.value;
    expect([value('reward_mean'), value('pass@1')]).toEqual([1, 1]);
    const { groups } = await get('/v1/runs/interrupted/groups');
    expect(groups).toMatchObject([{ received: 2, scored: 1, errors: 1, successes: 1, mean: 1 }]);

    const { body: started } = await server.request('POST', '/v1/exports', { body: { run: 'interrupted', format: 'jsonl' } });
    const view = await eventually(async () => {
      const now = await get(`/v1/exports/${started.id}`);
      return now.state === 'complete' ? now : null;
    });
    const file = view.files.find(({ name }: any) => name.startsWith('data/'));
    const rows = (await (await fetch(file.url)).text())
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line));
    expect(rows.find((row) => row.rollout_id === id)).toMatchObject({
      reward: null,
      reward_reported: 0.5,
      advantage: null,
      group_scored: 1,
      group_mean: 1,
      failure: 'infrastructure',
    });
  });

  test('stays if the upload reports a reward that the session did not give, or the episode had ended', async () => {
    const sid = await lost([score(0)], score(0.5));
    const id = await upload('claimed', 0, claims(0, 0.5), { ...place(), metadata: { session_id: sid } });
    expect(await verdictOf(id)).toMatchObject({ verified: 'partial', reward: 0.5, failure_class: null });
    const over = await lost([['score', { reward: 0, finished: true }]], score(0.5));
    const ended = await upload('claimed', 0, [['score', { reward: 0, finished: true }, 0, true]], {
      ...place(),
      metadata: { session_id: over },
    });
    expect(await verdictOf(ended)).toMatchObject({ verified: 'verified', reward: 0, failure_class: null });
  });
});
