import { describe, expect, onTestFinished, test } from 'vitest';
import { type SseEvent, SseParser } from '@palestra/kit/sse';
import { SqlAdmissionStore } from '../../../apps/api/src/sessions/slots/admission.sql.ts';
import { InProcessBackend } from '../../../libs/session/src/in-process.fixture.ts';
import { ask, encode, open, sidOf, until } from './session-requests.ts';
import { useReplicas } from './replicas.world.ts';
import type { Replica } from './sessions.world.ts';

/** Slots of an environment over several API processes on one PostgreSQL. */
const { start, stored, query, pool } = useReplicas();

describe('slots', () => {
  const secret = { 'x-secrets': encode({ api_key: { value: 'alice' } }) };

  test('a full environment queues sessions in a fair order and reports positions on request', async () => {
    const backend = new InProcessBackend();
    const options = { policy: { capacity: 1 } };
    const [one, two] = [await start(options, backend), await start(options, backend)];
    const sid = await open(one, secret);
    const controller = new AbortController();
    onTestFinished(() => controller.abort());
    const places: string[] = [];
    const response = await fetch(`${two.url}/create_session`, {
      method: 'POST',
      signal: controller.signal,
      headers: { 'x-api-key': 'bob', 'x-deployment': 'acme/math', 'x-palestra-queue': '1', ...secret },
    });
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
    const parser = new SseParser();
    const seen: SseEvent[] = [];
    const next = async (event: string) => {
      while (!seen.some((one) => one.event === event)) seen.push(...parser.push((await reader.read()).value!));
    };
    await next('queue');
    places.push(seen.find(({ event }) => event === 'queue')!.data);
    expect(JSON.parse(places[0]!)).toEqual({ position: 1, waiting: 1, estimated_wait_s: null });
    const waiting = seen.find(({ event }) => event === 'task_id')!.data;
    expect(await stored(waiting)).toMatchObject({ state: 'reserved', admitted_at: null });
    await ask(one, 'POST', '/delete', { sid });
    await next('end');
    expect((await stored(waiting))['admitted_at']).not.toBeNull();
  });

  test('a client that asks for its position waits without secrets, and learns the code of a refusal', async () => {
    const backend = new InProcessBackend();
    // Long enough for the position to be told before.
    const one = await start({ policy: { capacity: 1 }, queue: { limit: 10, patienceMs: 2_000 } }, backend);
    await open(one, secret);
    const response = await fetch(`${one.url}/create_session`, {
      method: 'POST',
      headers: { 'x-api-key': 'bob', 'x-deployment': 'acme/math', 'x-palestra-queue': '1', 'x-palestra-failure': '1' },
    });
    const events = new SseParser().push(await response.text());
    expect(events.map(({ event }) => event)).toEqual(['task_id', 'queue', 'failure']);
    expect(JSON.parse(events[2]!.data)).toMatchObject({
      code: 'capacity_exhausted',
      status: 429,
      failure_class: 'infrastructure',
      retryable: true,
    });
  });

  test('a client that leaves gets no slot and keeps its position', async () => {
    const backend = new InProcessBackend();
    const options = { policy: { capacity: 1 } };
    const [one, two] = [await start(options, backend), await start(options, backend)];
    const held = await open(one, secret);
    const wait = async (replica: Replica, key: string, sid?: string) => {
      const controller = new AbortController();
      const headers = { 'x-api-key': key, 'x-deployment': 'acme/math', 'x-palestra-queue': '1', ...secret };
      const body = sid === undefined ? '{}' : JSON.stringify({ task_id: sid });
      const response = await fetch(`${replica.url}/create_session`, { method: 'POST', body, headers, signal: controller.signal });
      const reader = response.body!.getReader();
      const first = new SseParser().push(new TextDecoder().decode((await reader.read()).value))[0]!.data;
      return {
        sid: first,
        leave: () => controller.abort(),
        done: async () => {
          while (!(await reader.read()).done);
        },
      };
    };
    const first = await wait(one, 'bob');
    await until(
      () => stored(first.sid),
      ({ waiting_on: on }) => on !== null,
    );
    const second = await wait(two, 'carol');
    await until(
      () => stored(second.sid),
      ({ waiting_on: on }) => on !== null,
    );
    first.leave();
    await until(
      () => stored(first.sid),
      ({ waiting_on: on }) => on === null,
    );
    const back = await wait(two, 'bob', first.sid);
    expect(back.sid).toBe(first.sid);
    await until(
      () => stored(first.sid),
      ({ waiting_on: on }) => on !== null,
    );
    await ask(one, 'POST', '/delete', { sid: held });
    await back.done();
    expect((await stored(first.sid))['admitted_at']).not.toBeNull();
    expect((await stored(second.sid))['admitted_at']).toBeNull();
    second.leave();
  });

  test('a full queue and a long wait refuse with the limit and the time to retry', async () => {
    const one = await start({ policy: { capacity: 1 }, queue: { limit: 0, patienceMs: 60_000 } });
    await open(one, secret);
    const refused = await ask(one, 'POST', '/create_session', { headers: secret });
    expect(refused.status).toBe(429);
    expect(refused.headers.get('retry-after')).toBe('10');
    expect(JSON.parse(refused.text)).toMatchObject({ code: 'capacity_exhausted' });
    expect(refused.text).toContain('acme/math runs 1 sessions');
    const impatient = await start({ policy: { capacity: 1 }, queue: { limit: 10, patienceMs: 300 } });
    expect((await ask(impatient, 'POST', '/create_session', { headers: secret })).text).toContain('none became free within 0.3 s');
  });

  test('discovery needs no slot, and a client without secrets waits in /create', async () => {
    const one = await start({ policy: { capacity: 1 } });
    const sid = await open(one, secret);
    const discovery = sidOf((await ask(one, 'POST', '/create_session', { body: {} })).text);
    expect((await ask(one, 'GET', '/tools', { sid: discovery })).status).toBe(200);
    const creating = ask(one, 'POST', '/create', { sid: discovery, body: { split: 'train', index: 0 } });
    await until(
      () => stored(discovery),
      ({ waiting_on: on }) => on !== null,
    );
    await ask(one, 'POST', '/delete', { sid });
    expect((await creating).status).toBe(200);
  });

  /** Stores a copy of a session for each of these sets of columns. */
  const copy = (sid: string, rows: object[]) =>
    query(
      `INSERT INTO sessions SELECT c.* FROM sessions AS s, jsonb_array_elements($2::jsonb) AS n, jsonb_populate_record(s, n) AS c WHERE s.sid = $1`,
      [sid, JSON.stringify(rows)],
    );

  test.each([
    ['of another organisation', () => ({ org_id: 'crowd', version_id: 'full' })],
    ['of its organisation', () => ({ version_id: 'full' })],
    ['of many keys', (n: number) => ({ version_id: 'full', user_id: `user-${n}` })],
    ['of a key at its quota', () => ({ slot_limits: JSON.stringify({ capacity: 1, owned: false, key: 1, org: null }) })],
  ])('very many sessions that cannot get a slot hide no other one: %s', async (_name, columns) => {
    const one = await start({ policy: { capacity: 1 } });
    const held = await open(one, secret);
    const sid = sidOf((await ask(one, 'POST', '/create_session', { body: {} })).text);
    const creating = ask(one, 'POST', '/create', { sid, body: { split: 'train', index: 0 } });
    await until(
      () => stored(sid),
      ({ waiting_on: on }) => on !== null,
    );
    const at = '2020-01-01T00:00:00Z';
    // The only slot of another environment, and before `sid` as many that wait as a round reads.
    await copy(sid, [{ sid: 'full', user_id: 'crowd', version_id: 'full', waiting_on: null, queued_at: at, admitted_at: at }]);
    await copy(
      sid,
      Array.from({ length: 2_000 }, (_, n) => ({ sid: `crowd-${n}`, user_id: 'crowd', queued_at: at, ...columns(n) })),
    );
    await ask(one, 'POST', '/delete', { sid: held });
    await until(
      () => stored(sid),
      ({ admitted_at: admitted }) => admitted !== null,
    );
    expect((await creating).status).toBe(200);
  });

  test('of very many sessions a round sees the oldest of each key, and shares of each organisation and environment', async () => {
    const one = await start({ policy: { capacity: 1 } });
    const waiting = { state: 'reserved', admitted_at: null, waiting_on: (await query('SELECT id FROM session_replicas')).rows[0].id };
    const slotLimits = JSON.stringify({ capacity: 1, owned: false, key: null, org: null });
    const all = Array.from({ length: 6_000 }, (_, n) => ({
      sid: `crowd-${n}`,
      org_id: n % 6 === 0 ? 'b' : 'a',
      version_id: n % 10 === 0 ? 'w' : 'v',
      key_id: n % 7 === 0 ? 'l' : 'k',
      queued_at: new Date(Date.now() - ((n * 7_919) % 6_000) * 1_000).toISOString(),
    }));
    await copy(
      await open(one),
      all.map((columns) => ({ ...waiting, slot_limits: slotLimits, ...columns })),
    );
    let read: string[] = [];
    await new SqlAdmissionStore(pool(), 60_000, null).round((snapshot) => {
      read = snapshot.waiting.map(({ sid }) => sid);
      return [];
    });
    const seen = new Set(read);
    const readOf = (org: string, version: string, key: string) => {
      const rows = all.filter((row) => row.org_id === org && row.version_id === version && row.key_id === key);
      const oldest = rows.toSorted((a, b) => (a.queued_at < b.queued_at ? -1 : 1)).map(({ sid }) => sid);
      const count = oldest.filter((sid) => seen.has(sid)).length;
      expect(oldest.slice(0, count).every((sid) => seen.has(sid))).toBe(true);
      return count;
    };
    const counts = ['a', 'b'].map((org) => ['v', 'w'].map((version) => ['k', 'l'].map((key) => readOf(org, version, key))));
    // All 1 000 of `b`, and as many of `a`: all 400 of `w`, the others half and half.
    expect(counts.flat(2).reduce((sum, count) => sum + count)).toBe(2_000);
    expect(counts[1]!.flat().reduce((sum, count) => sum + count)).toBe(1_000);
    expect(counts[0]![0]).toEqual([300, 300]);
  });

  test('slots of a dead process are freed', async () => {
    const options = { owned: true, policy: { capacity: 1 } };
    const one = await start(options);
    await open(one, secret);
    const two = await start(options);
    await one.kill();
    const [first, second] = [open(two, secret), open(two, secret)];
    await Promise.race([first, second]);
    const { rows } = await query(`SELECT count(*)::int AS held FROM sessions WHERE admitted_at IS NOT NULL AND ended_at IS NULL`);
    expect(rows[0].held).toBeLessThanOrEqual(2);
    // As another process ends them: with its name, or their owner takes the change for its own write.
    await query(`UPDATE sessions SET state = 'closed', version = version + 1, written_by = 'another', ended_at = now(), waiting_on = NULL`);
    await Promise.allSettled([first, second]);
  });
});
