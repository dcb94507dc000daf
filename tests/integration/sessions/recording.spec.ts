import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { serve } from '@palestra/environment-kit';
import { nextCalls } from '../../../apps/api/src/sessions/recording/recording.sql.ts';
import { EraseService } from '../../../apps/api/src/store/storage/erase.service.ts';
import { RetentionService } from '../../../apps/api/src/store/storage/retention.service.ts';
import { settled } from '../../support/derived-rows.ts';
import { startPalestra } from '../../support/palestra.ts';
import { startServer, type TestServer } from '../../support/server.ts';
import { callTool, closeSession, eventually, observed, openSession, overHttp, startObserved, type World } from '../observed.world.ts';

/** Sessions that are written as rollouts from the ledger, on the whole service. */
let server: TestServer;
let world: World;

beforeAll(async () => {
  server = await startServer();
  world = await startObserved(server);
});
afterAll(async () => {
  await server?.close();
  await world?.upstream.close();
});

const recorded = (run: string, more: Record<string, string> = {}) => ({ 'x-palestra-run': run, ...more });
const sql = async (text: string, values: unknown[] = []) => (await server.database.pool.query(text, values)).rows;

/** When the session has been written to its end. */
async function whenRecorded(sid: string): Promise<void> {
  await eventually(async () => {
    const [row] = await sql('SELECT recorded_seq FROM sessions WHERE sid = $1', [sid]);
    return row.recorded_seq === '-1' ? true : null;
  });
}

/** With all of its figures: reads wait for what was acknowledged, but not for as long as a busy machine takes. */
async function runNamed(name: string) {
  await settled(server.database.pool);
  const { body } = await server.request('GET', `/v1/runs?name=${encodeURIComponent(name)}`);
  const run = body.runs[0];
  const { rollouts } = (await server.request('GET', `/v1/runs/${run.id}/rollouts`)).body;
  return { run, rollouts };
}

test('a step that is not a number is refused', async () => {
  const headers = { 'x-deployment': world.environment, ...recorded('bad', { 'x-palestra-step': 'three' }) };
  expect(await server.request('POST', '/create_session', { body: {}, headers })).toMatchObject({
    status: 400,
    body: { code: 'invalid_request' },
  });
});

test('a session becomes a rollout of its calls', async () => {
  const facts = { 'x-palestra-step': '3', 'x-palestra-split': 'train', 'x-palestra-task-index': '0', 'x-palestra-rollout': 'a%20rollout' };
  const sid = await openSession(server, world.environment, recorded('equal', facts));
  const calls = [
    await callTool(server, sid, 'score', { reward: 0.25 }),
    await callTool(server, sid, 'nonsense', { a: 1 }),
    await callTool(server, sid, 'raise'),
    await callTool(server, sid, 'tell'),
    await callTool(server, sid, 'score', { reward: 0.5, finished: true }),
  ];
  await closeSession(server, sid);
  await whenRecorded(sid);
  const { run, rollouts } = await runNamed('equal');
  expect(run).toMatchObject({ num_rollouts: 1, num_scored: 1, num_errors: 0, avg_rollout_reward: 0.75, environments: [world.environment] });
  expect(rollouts).toMatchObject([
    { rolloutName: 'a rollout', environment: world.environment, split: 'train', step: 3, task_index: 0, reward: 0.75, max_reward: 0.5 },
  ]);
  expect(rollouts[0]).toMatchObject({ finished: true, stop: 'finished', failure_class: null, num_messages: 10, num_tool_calls: 5 });
  const { body } = await server.request('GET', `/v1/rollouts/${rollouts[0].id}`);
  expect(body.missing_indexes).toEqual([]);
  expect(body.metadata).toEqual({ session_id: sid, environment_version: 1 });
  expect(body.messages.map(({ index }: any) => index)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
  const asked = body.messages.filter(({ type }: any) => type === 'tool_call');
  const answered = body.messages.filter(({ type }: any) => type === 'tool_result');
  expect(asked.map(({ name, callId, content }: any) => [name, callId, JSON.parse(content)])).toEqual([
    ['score', calls[0]!.taskId, { reward: 0.25 }],
    ['nonsense', calls[1]!.taskId, { a: 1 }],
    ['raise', calls[2]!.taskId, {}],
    ['tell', calls[3]!.taskId, {}],
    ['score', calls[4]!.taskId, { reward: 0.5, finished: true }],
  ]);
  expect(answered.map(({ reward, isFinished }: any) => [reward, isFinished])).toEqual([
    [0.25, false],
    [null, false],
    [null, false],
    [null, false],
    [0.5, true],
  ]);
  expect(answered.map(({ metadata }: any) => metadata.failure_class)).toEqual(['ok', 'policy', 'environment', 'ok', 'ok']);
  expect(answered.map(({ metadata }: any) => metadata.task_id)).toEqual(calls.map(({ taskId }) => taskId));
  expect(answered.every(({ metadata }: any) => metadata.latency_ms >= 0)).toBe(true);
  expect(answered[0].content).toBe('scored\nwell');
  expect(answered[1].content).toContain('nonsense');
  expect(answered[2].content).toContain('it broke with');
  expect(answered[3].content).toBe('the secret is no secret');
});

test('a client says beforehand why it closes an episode that is not over', async () => {
  for (const finished of [false, true]) {
    const sid = await openSession(server, world.environment, recorded('closed', { 'x-palestra-stop': 'max_turns' }));
    await callTool(server, sid, 'score', { reward: 1, finished });
    await closeSession(server, sid);
    await whenRecorded(sid);
  }
  const { rollouts } = await runNamed('closed');
  const ends = rollouts.map((one: any) => [one.stop, one.finished, one.reward, one.failure_class]);
  expect(ends.toSorted()).toEqual([
    ['finished', true, 1, null],
    ['max_turns', false, 1, null],
  ]);
});

test('a running session is written as it progresses', async () => {
  const sid = await openSession(server, world.environment, recorded('live'));
  await callTool(server, sid, 'score', { reward: 0 });
  const rollout = await eventually(async () => {
    const { body } = await server.request('GET', '/v1/runs?name=live');
    if (body.runs.length === 0) return null;
    const { rollouts } = await runNamed('live');
    return rollouts[0]?.num_messages === 2 ? rollouts[0] : null;
  });
  // A reward of 0 that the environment gave is one.
  expect(rollout).toMatchObject({ reward: 0, finished: false, task_index: 0, split: 'train' });
  await closeSession(server, sid);
  await whenRecorded(sid);
});

test('writing again after a replica died before it moved the pointer changes nothing', async () => {
  const sid = await openSession(server, world.environment, recorded('again'));
  for (let i = 0; i < 3; i += 1) await callTool(server, sid, 'score', { reward: 1 });
  await closeSession(server, sid);
  await whenRecorded(sid);
  const before = await runNamed('again');
  const read = async () => (await server.request('GET', `/v1/rollouts/${before.rollouts[0].id}`)).body.messages;
  const messages = await read();
  expect(messages).toHaveLength(6);
  const [{ seq }] = await sql('SELECT min(seq) AS seq FROM session_calls WHERE sid = $1', [sid]);
  for (const pointer of [null, seq]) {
    await sql('UPDATE sessions SET recorded_seq = $2, ended_at = ended_at - interval $$6 s$$ WHERE sid = $1', [sid, pointer]);
    // Its own events are over: only a start, or the sweep, finds it.
    const other = await startServer({ databaseUrl: server.config.databaseUrl, dataDir: server.config.dataDir });
    await whenRecorded(sid);
    await other.close();
    expect(await read()).toEqual(messages);
    expect((await runNamed('again')).run).toMatchObject({ num_rollouts: 1, avg_rollout_reward: 3 });
  }
});

test('a lost session is unscored, counted, and excluded from the mean', async () => {
  const fine = await openSession(server, world.environment, recorded('lossy'));
  await callTool(server, fine, 'score', { reward: 1, finished: true });
  await closeSession(server, fine);
  const lost = await openSession(server, world.environment, recorded('lossy'));
  await callTool(server, lost, 'score', { reward: 0.5 });
  // Restarted, its server knows the episode no more.
  await world.upstream.close();
  world.upstream = await serve([observed], { port: Number(new URL(world.upstream.url).port) });
  const failed = await callTool(server, lost, 'score', { reward: 0.5 });
  expect(failed.text).not.toContain('scored');
  await Promise.all([fine, lost].map(whenRecorded));
  const { run, rollouts } = await runNamed('lossy');
  expect(run).toMatchObject({ num_rollouts: 2, num_scored: 1, num_errors: 1, avg_rollout_reward: 1 });
  const row = rollouts.find(({ failure_class: failureClass }: any) => failureClass !== null);
  expect(row).toMatchObject({ reward: null, max_reward: null, failure_class: 'infrastructure', stop: 'infra_error', num_messages: 4 });
  const sorted = await server.request('GET', `/v1/runs/${run.id}/rollouts?sort=reward&order=asc`);
  expect(sorted.body.rollouts.map(({ reward }: any) => reward)).toEqual([1, null]);
  const { body } = await server.request('GET', `/v1/rollouts/${row.id}`);
  expect(body.rollout_info).toMatchObject({ session_state: 'lost', failure_class: 'infrastructure' });
  expect(body.messages.at(-1)).toMatchObject({ type: 'tool_result', reward: null });
});

test('a failed setup and a client that gave up after a tool error are unscored', async () => {
  const broken = await openSession(server, world.environment, recorded('failing'), 1);
  await callTool(server, broken, 'score', { reward: 1 });
  await closeSession(server, broken);
  const raised = await openSession(server, world.environment, recorded('failing'));
  await callTool(server, raised, 'score', { reward: 1 });
  await callTool(server, raised, 'raise');
  await closeSession(server, raised);
  const policy = await openSession(server, world.environment, recorded('failing'));
  await callTool(server, policy, 'score', { reward: 0.25 });
  await callTool(server, policy, 'nonsense');
  await closeSession(server, policy);
  await Promise.all([broken, raised, policy].map(whenRecorded));
  const { run, rollouts } = await runNamed('failing');
  const ends = rollouts.map(({ failure_class: failureClass, reward, stop }: any) => `${failureClass} ${reward} ${stop}`) as string[];
  expect(ends.toSorted()).toEqual(['environment null env_error', 'environment null env_error', 'null 0.25 null']);
  expect(run).toMatchObject({ num_rollouts: 3, num_scored: 1, num_errors: 2, avg_rollout_reward: 0.25 });
});

test('a call whose outcome was lost with its replica leaves the rollout unscored', async () => {
  const sid = await openSession(server, world.environment, recorded('unknown'));
  await callTool(server, sid, 'score', { reward: 1 });
  await callTool(server, sid, 'score', { reward: 0, finished: true });
  await closeSession(server, sid);
  await whenRecorded(sid);
  const { run } = await runNamed('unknown');
  // The ledger goes with what was recorded of it; this one is to be recorded anew.
  await sql(`CREATE TABLE ledger_of_unknown AS SELECT * FROM session_calls WHERE sid = '${sid}'`);
  await server.request('DELETE', `/v1/runs/${run.id}`);
  await sql('INSERT INTO session_calls SELECT * FROM ledger_of_unknown');
  await sql(
    `UPDATE session_calls SET state = 'running', ended_at = NULL, result = NULL, reward = NULL, failure_class = NULL
     WHERE sid = $1 AND seq = (SELECT min(seq) FROM session_calls WHERE sid = $1)`,
    [sid],
  );
  await sql(`UPDATE sessions SET recorded_seq = NULL, ended_at = ended_at - interval '20 s' WHERE sid = $1`, [sid]);
  const other = await startServer({ databaseUrl: server.config.databaseUrl, dataDir: server.config.dataDir });
  await whenRecorded(sid);
  await other.close();
  const after = await runNamed('unknown');
  expect(after.run).toMatchObject({ num_rollouts: 1, num_scored: 0, num_errors: 1, avg_rollout_reward: null });
  const { body } = await server.request('GET', `/v1/rollouts/${after.rollouts[0].id}`);
  expect(body.messages.map(({ type }: any) => type)).toEqual(['tool_call', 'tool_call', 'tool_result']);
});

test.each(['54000', 'XX001'])('a session that PostgreSQL does not store, with %s, keeps no other from being recorded', async (state) => {
  const [stuck, other] = [
    await openSession(server, world.environment, recorded('stuck')),
    await openSession(server, world.environment, recorded('free')),
  ];
  await sql(`CREATE FUNCTION fail_here() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION USING ERRCODE = '${state}'; END $$`);
  await sql(
    `CREATE TRIGGER fail BEFORE INSERT ON rollout_messages FOR EACH ROW WHEN (NEW.content LIKE '%12345%') EXECUTE FUNCTION fail_here()`,
  );
  try {
    await callTool(server, stuck, 'score', { reward: 12_345 });
    await callTool(server, other, 'score', { reward: 1 });
    await closeSession(server, other);
    await whenRecorded(other);
    expect((await runNamed('free')).rollouts.length).toBeGreaterThan(0);
  } finally {
    await sql('DROP FUNCTION fail_here CASCADE');
  }
  await closeSession(server, stuck);
  await whenRecorded(stuck);
});

test('very large results of one session do not keep the calls of others from being read', async () => {
  const sids = [];
  for (let at = 0; at < 2; at += 1) sids.push(await openSession(server, world.environment, recorded('large')));
  const [large, other] = sids.toSorted() as [string, string];
  for (const sid of [large, large, other]) await callTool(server, sid, 'score', { reward: 1 });
  for (const sid of sids) await closeSession(server, sid);
  for (const sid of sids) await whenRecorded(sid);
  await sql(`UPDATE session_calls SET result = (SELECT string_agg(md5(n::text), '') FROM generate_series(1, 300000) n) WHERE sid = $1`, [
    large,
  ]);
  const calls = await nextCalls(
    server.database.pool,
    [large, other].map((sid) => ({ sid, recorded_seq: null })),
  );
  expect([large, other].map((sid) => calls.get(sid)?.length)).toEqual([1, 1]);
});

test('reservations without an episode and sessions without a run become no rollouts', async () => {
  const headers = { 'x-deployment': world.environment, ...recorded('never') };
  const answer = await server.request('POST', '/create_session', { body: {}, headers });
  const sid = /data: (.*)/.exec(String(answer.body))![1]!;
  await server.request('POST', '/delete', { headers: { 'x-session-id': sid } });
  await whenRecorded(sid);
  const plain = await openSession(server, world.environment);
  await closeSession(server, plain);
  expect((await server.request('GET', '/v1/runs?name=never')).body.runs).toEqual([]);
});

describe('the ledger of a recording', () => {
  const callsOf = async (sid: string) =>
    (await sql('SELECT count(*)::int AS calls FROM session_calls WHERE sid = $1', [sid]))[0].calls as number;
  /** A session with one call, which is over. */
  async function played(headers: Record<string, string>): Promise<string> {
    const sid = await openSession(server, world.environment, headers);
    await callTool(server, sid, 'score', { reward: 1 });
    await closeSession(server, sid);
    await expect.poll(() => callsOf(sid)).toBe(1);
    return sid;
  }
  async function playedInto(run: string): Promise<string> {
    const sid = await played(recorded(run));
    await whenRecorded(sid);
    return sid;
  }

  test('is erased with its rollout and with its run, and no other ledger is', async () => {
    const [gone, stays] = [await playedInto('erased'), await playedInto('erased')];
    const { run, rollouts } = await runNamed('erased');
    const rolloutOf = (sid: string) => rollouts.find(({ session }: any) => session === sid).id as string;
    expect(await server.request('DELETE', `/v1/rollouts/${rolloutOf(gone)}`)).toMatchObject({ status: 200 });
    expect([await callsOf(gone), await callsOf(stays)]).toEqual([0, 1]);
    // A rollout that only says that it is of a session is no copy of its ledger.
    const claimed = randomUUID();
    const start = { eventType: 'rollout', eventId: claimed, timestamp: Date.now(), runName: 'claims', metadata: { session_id: stays } };
    expect((await server.request('POST', '/v1/rollouts', { body: { events: [start] } })).status).toBeLessThan(300);
    expect(await server.request('DELETE', `/v1/rollouts/${claimed}`)).toMatchObject({ status: 200 });
    expect(await callsOf(stays)).toBe(1);
    expect(await server.request('DELETE', `/v1/runs/${run.id}`)).toMatchObject({ status: 200 });
    expect(await callsOf(stays)).toBe(0);
  });

  test('of a running session is erased after its end, and nothing more is written', async () => {
    const sid = await openSession(server, world.environment, recorded('erased live'));
    await callTool(server, sid, 'score', { reward: 1 });
    const { rollouts } = await eventually(async () => {
      const { body } = await server.request('GET', '/v1/runs?name=erased%20live');
      return body.runs.length > 0 ? runNamed('erased live') : null;
    });
    const erased = `/v1/rollouts/${rollouts[0].id}`;
    // As a recorder that holds the session right now: the one that erases waits for it, and it for nobody.
    const recorder = await server.database.pool.connect();
    await recorder.query('BEGIN');
    await recorder.query('SELECT pg_advisory_xact_lock(1885431907, hashtext($1))', [sid]);
    const deleting = server.request('DELETE', erased);
    await eventually(async () => {
      const [{ waiting }] = await sql(
        `SELECT count(*)::int AS waiting FROM pg_locks WHERE locktype = 'advisory' AND classid = 1885431907 AND NOT granted`,
      );
      return waiting === 1 ? true : null;
    });
    await recorder.query('SELECT FROM rollout_heads WHERE id = $1 FOR UPDATE', [rollouts[0].id]);
    await recorder.query('COMMIT');
    recorder.release();
    expect(await deleting).toMatchObject({ status: 200 });
    // It goes on for its client.
    expect(await callTool(server, sid, 'score', { reward: 2 })).toMatchObject({ status: 200 });
    await closeSession(server, sid);
    const other = await playedInto('erased live');
    expect((await server.request('GET', erased)).status).toBe(404);
    expect((await runNamed('erased live')).rollouts.map(({ session }: any) => session)).toEqual([other]);
    const eraser = new EraseService(server.database, null as never);
    await eraser.eraseEnded();
    expect(await callsOf(sid)).toBe(2);
    await sql(`UPDATE sessions SET ended_at = ended_at - interval '16 minutes' WHERE sid = ANY($1::text[])`, [[sid, other]]);
    expect(await eraser.eraseEnded()).toBe(1);
    expect([await callsOf(sid), await callsOf(other)]).toEqual([0, 1]);
  });

  test('and any other is erased after the retention of its organisation', async () => {
    const retention = new RetentionService(server.database, null as never);
    const [old, young] = [await played({}), await played({})];
    const living = await openSession(server, world.environment);
    await callTool(server, living, 'score', { reward: 1 });
    await expect.poll(() => callsOf(living)).toBe(1);
    await sql(`UPDATE sessions SET created_at = now() - interval '5 days' WHERE sid = ANY($1::text[])`, [[old, young, living]]);
    await sql(`UPDATE sessions SET ended_at = now() - interval '4 days' WHERE sid = $1`, [old]);
    const left = () => Promise.all([old, young, living].map(callsOf));
    await retention.sweepSessions();
    expect(await left()).toEqual([1, 1, 1]);
    expect(await server.request('PATCH', '/v1/organisation', { body: { retention_days: 3 } })).toMatchObject({ status: 200 });
    await retention.sweepSessions();
    expect(await left()).toEqual([0, 1, 1]);
    expect((await server.request('GET', `/v1/sessions/${old}`)).status).toBe(404);
    await callTool(server, living, 'score', { reward: 1 });
    await closeSession(server, living);
    expect(await server.request('PATCH', '/v1/organisation', { body: { retention_days: null } })).toMatchObject({ status: 200 });
  });
});

test('a service that is killed writes the rest once after its restart', { timeout: 180_000 }, async () => {
  const palestra = await startPalestra();
  const service = overHttp(palestra);
  const there = await startObserved(service);
  const sid = await openSession(service, there.environment, recorded('killed'));
  const messagesOf = async () => {
    const { body } = await service.request('GET', '/v1/runs?name=killed');
    if (body.runs.length === 0) return 0;
    return (await service.request('GET', `/v1/runs/${body.runs[0].id}/rollouts`)).body.rollouts[0]?.num_messages;
  };
  for (let i = 0; i < 20; i += 1) {
    // Equal calls right before and after a death would be one (ADR 7).
    await callTool(service, sid, 'score', { reward: i });
    // Some rounds of the recorder fall between the calls; the last calls are younger than a round when it dies.
    if (i % 8 === 7) await eventually(async () => ((await messagesOf()) === 2 * (i + 1) ? true : null));
  }
  // The service tells a client its outcome before the ledger has it.
  const ended = async () => {
    const { calls } = (await service.request('GET', `/v1/sessions/${sid}/calls?limit=100`)).body;
    return calls.filter(({ state }: any) => state === 'result').length as number;
  };
  await expect.poll(ended).toBe(20);
  await palestra.kill();
  await palestra.restart();
  for (let i = 20; i < 25; i += 1) await callTool(service, sid, 'score', { reward: i });
  await closeSession(service, sid);
  const rollout = await eventually(async () => {
    const { body } = await service.request('GET', '/v1/runs?name=killed');
    const { rollouts } = (await service.request('GET', `/v1/runs/${body.runs[0].id}/rollouts`)).body;
    return rollouts[0].num_messages >= 50 ? rollouts[0] : null;
  });
  expect(rollout).toMatchObject({ reward: 300, num_messages: 50, num_tool_calls: 25, failure_class: null });
  const { body } = await service.request('GET', `/v1/rollouts/${rollout.id}`);
  expect(body.missing_indexes).toEqual([]);
  expect(new Set(body.messages.map(({ index }: any) => index)).size).toBe(50);
  await palestra.stop();
  await there.upstream.close();
});
