import { gzipSync } from 'node:zlib';
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { sharedServer, type TestServer } from '../../support/server.ts';

let server: TestServer;
beforeAll(async () => {
  server = await sharedServer();
});
afterAll(() => server.close());

const start = (id: string, more: object = {}) => ({
  eventType: 'rollout',
  eventId: id,
  timestamp: Date.now(),
  runName: 'run',
  rolloutName: 'r',
  ...more,
});
const message = (rollout: string, index: number, more: object = {}) => ({
  eventType: 'message',
  eventId: randomUUID(),
  rolloutEventId: rollout,
  timestamp: Date.now(),
  index,
  type: 'assistant_message',
  content: `message ${index}`,
  isFinished: false,
  metadata: {},
  ...more,
});
const post = (events: unknown[], headers = {}) => server.request('POST', '/v1/rollouts', { body: { events }, headers });
const postText = (text: string) => server.request('POST', '/v1/rollouts', { body: text });
const get = async (id: string) => (await server.request('GET', `/v1/rollouts/${id}`)).body;
const secondTenant = async () => {
  const { rows } = await server.database.pool.query(`INSERT INTO organisations (name) VALUES ('other-${randomUUID()}') RETURNING id`);
  const key = `or_${randomUUID()}`;
  await server.database.pool.query(
    `INSERT INTO api_keys (org_id, user_id, name, prefix, hash, scopes) SELECT $1, id, 'x', 'or_', sha256($2::bytea), '{rollouts}' FROM users LIMIT 1`,
    [rows[0].id, Buffer.from(key)],
  );
  return { 'x-api-key': key };
};

describe('POST /v1/rollouts refuses', () => {
  it('a missing key, malformed JSON and a body that is not a batch', async () => {
    expect(await post([], { 'x-api-key': '' })).toMatchObject({ status: 401 });
    expect(await postText('{"events":[')).toMatchObject({ status: 422, body: { code: 'invalid_json' } });
    expect(await postText('{"events":{}}')).toMatchObject({ status: 422, body: { code: 'invalid_body' } });
    expect(await postText('')).toMatchObject({ status: 422 });
  });

  it('one bad event and stores the others', async () => {
    const id = randomUUID();
    const answer = await post([start(id), message(id, 0), message(id, -1), { eventType: 'nonsense', eventId: id }]);
    expect(answer).toMatchObject({ status: 200, body: { accepted: 2, duplicates: 0, rejected: [{ position: 2 }, { position: 3 }] } });
    expect((await get(id)).messages).toHaveLength(1);
  });
});

describe('POST /v1/rollouts with large bodies', () => {
  it('refuses a body that exceeds the limit after decompression', async () => {
    const bomb = gzipSync(Buffer.alloc(70 * 1024 * 1024, 32));
    const headers = { 'x-api-key': server.apiKey, 'content-encoding': 'gzip', 'content-type': 'application/json' };
    const answer = await fetch(`${server.url}/v1/rollouts`, { method: 'POST', body: bomb, headers });
    expect({ status: answer.status, body: await answer.json() }).toMatchObject({ status: 413, body: { code: 'body_too_large' } });
  });

  it('refuses a plain body beyond the limit before it has arrived', async () => {
    const answer = await postText('x'.repeat(65 * 1024 * 1024));
    expect(answer).toMatchObject({ status: 413, body: { code: 'body_too_large' } });
  });

  it('returns 422 when no event of a batch can be stored', async () => {
    expect(await post([{ eventType: 'message' }])).toMatchObject({
      status: 422,
      body: { code: 'invalid_body', detail: [{ loc: ['body', 'events', 0] }] },
    });
  });
});

describe('POST /v1/rollouts stores', () => {
  it('every event type, read back equal', async () => {
    const id = randomUUID();
    const types = ['system_message', 'user_message', 'reasoning', 'assistant_message', 'tool_call', 'tool_result'];
    const sent = types.map((type, index) =>
      message(id, index, {
        type,
        ...(type === 'tool_call' ? { name: 'echo', callId: 'c1', content: '{"text": "hi"}' } : {}),
        ...(type === 'tool_result' ? { callId: 'c1', content: '', reward: 0.5, isFinished: true, metadata: { k: [1, null] } } : {}),
        ...(type === 'reasoning' ? { contentReference: 'reasoning:1', summary: 'thought' } : {}),
      }),
    );
    const facts = {
      environment: 'acme/math',
      split: 'train',
      metadata: { a: { b: 1.5 } },
      task_spec: { q: '1+1' },
      run_info: { model_name: 'm' },
    };
    await post([start(id, facts)]);
    await post([
      ...sent,
      { eventType: 'rollout_update', eventId: id, timestamp: Date.now(), rollout_info: { task_index: 7, current_step: 3 } },
    ]);
    const read = await get(id);
    expect(read).toMatchObject({
      id,
      reward: 0.5,
      max_reward: 0.5,
      num_messages: 6,
      num_tool_calls: 1,
      turns: 1,
      finished: true,
      stop: 'finished',
      state: 'complete',
      step: 3,
      task_index: 7,
      task_spec: { q: '1+1' },
      metadata: { a: { b: 1.5 } },
      run_info: { model_name: 'm' },
      missing_indexes: [],
      run: { name: 'run', org: server.orgName },
    });
    expect(
      read.messages.map(({ eventId, type, content, reward, callId, summary }: any) => ({
        eventId,
        type,
        content,
        reward,
        callId,
        summary,
      })),
    ).toEqual(
      sent.map((event: any) => ({
        eventId: event.eventId,
        type: event.type,
        content: event.content,
        reward: event.reward ?? null,
        callId: event.callId ?? null,
        summary: event.summary ?? null,
      })),
    );
  });

  it('the same numbers for any order, duplication and concurrency', async () => {
    const id = randomUUID();
    const events = Array.from({ length: 300 }, (_, index) =>
      message(id, index, {
        type: index % 2 ? 'tool_result' : 'tool_call',
        name: 't',
        reward: index % 2 ? 0.5 : undefined,
        isFinished: index === 299,
      }),
    );
    const batches = Array.from({ length: 30 }, (_, i) => events.slice(i * 10, i * 10 + 10)).toReversed();
    const answers = await Promise.all([...batches, ...batches, [start(id)], [start(id)]].map((batch) => post(batch)));
    expect(answers.every(({ status }) => status === 200)).toBe(true);
    // Of two start events in one moment both may be told as new.
    expect(answers.slice(0, -2).reduce((sum, { body }) => sum + body.duplicates, 0)).toBe(300);
    expect(await get(id)).toMatchObject({
      num_messages: 300,
      num_tool_calls: 150,
      reward: 75,
      max_reward: 0.5,
      turns: 150,
      finished: true,
    });
    const again = await post(events);
    expect(again.body).toMatchObject({ accepted: 0, duplicates: 300 });
    expect(await get(id)).toMatchObject({ num_messages: 300, reward: 75 });
  });

  it('values of Python: NaN, infinities, NUL, lone surrogates, odd keys', async () => {
    const id = randomUUID();
    const text = JSON.stringify({
      events: [
        start(id, { metadata: { 'k\u0000': 'a\u0000b', lone: '\ud800' } }),
        message(id, 0, { reward: 'R', content: 'x' }),
        message(id, 1, { reward: 1 }),
      ],
    });
    expect(await postText(text.replace('"R"', 'NaN'))).toMatchObject({ status: 200, body: { accepted: 3, rejected: [] } });
    const read = await get(id);
    expect(read).toMatchObject({ metadata: { k: 'ab', lone: '\ufffd' }, reward: null, flags: ['nonfinite'], num_messages: 2 });
    expect(read.messages[0]).toMatchObject({ reward: null, nonfinite: true });
  });

  it('a flag for values that are not finite in an update or a start event', async () => {
    const sent = [randomUUID(), randomUUID(), randomUUID()] as const;
    const [updated, begun, finite] = sent;
    const update = (id: string, reward: unknown) => ({
      eventType: 'rollout_update',
      eventId: id,
      timestamp: Date.now(),
      rollout_info: { reward },
    });
    // One update comes with its rollout, one later.
    const text = JSON.stringify({ events: [start(updated), start(begun), start(finite), update(begun, 'R'), update(finite, 1)] });
    expect(await postText(text.replace('"R"', '-Infinity'))).toMatchObject({ status: 200, body: { accepted: 5 } });
    expect(await postText(JSON.stringify({ events: [update(updated, 'R')] }).replace('"R"', 'NaN'))).toMatchObject({ status: 200 });
    for (const id of [updated, begun]) expect(await get(id)).toMatchObject({ reward: null, flags: ['nonfinite'] });
    expect((await get(finite)).flags).toEqual([]);
  });

  it('a gzipped body, three megabytes and nine megabytes in one event', async () => {
    const id = randomUUID();
    const body = gzipSync(JSON.stringify({ events: [start(id)] }));
    const answer = await fetch(`${server.url}/v1/rollouts`, {
      method: 'POST',
      body,
      headers: { 'x-api-key': server.apiKey, 'content-encoding': 'gzip', 'content-type': 'application/json' },
    });
    expect(answer.status).toBe(200);
    expect((await post([message(id, 0, { content: 'x'.repeat(3_000_000) })])).status).toBe(200);
    const escaped = JSON.stringify({ events: [message(id, 1, { content: 'E' })] }).replace('"E"', `"${'\\u00fc'.repeat(1_500_000)}"`);
    expect((await postText(escaped)).status).toBe(200);
    const { messages } = await get(id);
    expect(messages[0].content).toHaveLength(3_000_000);
    expect(messages[1].content).toBe('ü'.repeat(1_500_000));
  });

  it('step and task of the newest update, whatever arrives last', async () => {
    const id = randomUUID();
    const update = (timestamp: number, rollout_info: object) => ({ eventType: 'rollout_update', eventId: id, timestamp, rollout_info });
    await post([start(id), update(300, { current_step: 3 })]);
    await post([update(100, { current_step: 1, task_index: 7, extra: 'old' })]);
    await post([update(200, { current_step: 2, extra: 'new' })]);
    const read = await get(id);
    expect(read).toMatchObject({ step: 3, task_index: 7, rollout_info: { current_step: 3, task_index: 7, extra: 'new' } });
  });

  it('the flag of a reward that one turn stamped on several results', async () => {
    const id = randomUUID();
    const result = (index: number, reward: number) => message(id, index, { type: 'tool_result', callId: `c${index}`, reward });
    await post([
      start(id),
      message(id, 0, { type: 'tool_call', name: 'a', reward: 1 }),
      message(id, 1, { type: 'tool_call', name: 'b', reward: 1 }),
      result(2, 1),
      result(3, 1),
    ]);
    expect(await get(id)).toMatchObject({ flags: expect.arrayContaining(['stamped_turn']), reward: 1 });
    const fine = randomUUID();
    await post([start(fine), message(fine, 0, { type: 'tool_call', name: 'a' }), message(fine, 1, { type: 'tool_result', reward: 1 })]);
    expect((await get(fine)).flags).not.toContain('stamped_turn');
  });

  it('updates in client order when they arrive in reverse', async () => {
    const id = randomUUID();
    const update = (timestamp: number, current_step: number) => ({
      eventType: 'rollout_update',
      eventId: id,
      timestamp,
      rollout_info: { current_step, [`only${timestamp}`]: true },
    });
    await post([update(200, 2)]);
    await post([update(100, 1)]);
    await post([start(id)]);
    expect((await get(id)).rollout_info).toEqual({ current_step: 2, only200: true, only100: true });
  });

  it('a run name of ten kilobytes', async () => {
    const id = randomUUID();
    const runName = 'n'.repeat(10_000);
    expect((await post([start(id, { runName })])).body).toMatchObject({ accepted: 1 });
    expect((await get(id)).run.name).toBe(runName);
  });
});

describe('tenants', () => {
  it('neither read nor write each other’s rollouts, for any id', async () => {
    const id = randomUUID();
    const headers = await secondTenant();
    await post([start(id), message(id, 0)]);
    expect(await server.request('GET', `/v1/rollouts/${id}`, { headers })).toMatchObject({
      status: 404,
      body: { code: 'rollout_not_found' },
    });
    await post([message(id, 1, { content: 'intruder' })], headers);
    expect((await get(id)).messages).toHaveLength(1);
    expect(await server.request('DELETE', `/v1/rollouts/${id}`, { headers })).toMatchObject({ status: 200 });
    expect((await get(id)).messages).toHaveLength(1);
  });
});

describe('erasing', () => {
  it('removes a rollout, and a run with all its rollouts', async () => {
    const [one, two] = [randomUUID(), randomUUID()];
    await post([start(one, { runName: 'gone' }), message(one, 0), start(two, { runName: 'gone' }), message(two, 0)]);
    expect(await server.request('DELETE', `/v1/rollouts/${one}`)).toMatchObject({ status: 200, body: { deleted: true } });
    expect(await server.request('DELETE', `/v1/rollouts/${one}`)).toMatchObject({ status: 404 });
    const { run } = await get(two);
    expect(await server.request('DELETE', `/v1/runs/${run.id}`)).toMatchObject({ status: 200 });
    const { rows } = await server.database.pool.query('SELECT count(*)::int AS n FROM rollout_heads WHERE id = ANY($1::uuid[])', [
      [one, two],
    ]);
    expect(rows[0].n).toBe(0);
    const left =
      'SELECT count(*)::int AS n FROM rollout_messages m WHERE NOT EXISTS (SELECT FROM rollout_heads h WHERE h.seq = m.rollout_seq)';
    expect((await server.database.pool.query(left)).rows[0].n).toBe(0);
    await post([start(two, { runName: 'gone' })]);
    expect((await get(two)).run.id).not.toBe(run.id);
  });
});
