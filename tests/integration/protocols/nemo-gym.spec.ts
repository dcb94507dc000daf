import { randomUUID } from 'node:crypto';
import { defineEnvironment, type RunningServer, serve, tool, z } from '@palestra/environment-kit';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createCaller } from '../../support/callers.ts';
import { createOrganisation } from '../../support/organisation.ts';
import { sharedServer, type TestServer } from '../../support/server.ts';
import { gallery } from './mcp.world.ts';

/** `/nemo-gym/{owner}/{env}`: the requests of NeMo Gym's agents and environment servers. */
const speech = defineEnvironment<{ id: number }, null>({
  name: 'speech',
  splits: ['train'],
  tasks: () => [{ id: 0 }],
  create: () => null,
  prompt: () => 'Say hello.',
  tools: {
    answer: tool({
      description: 'Gets the last message',
      terminal: true,
      input: z.object({ text: z.string() }),
      run: ({ text }) => ({ content: 'heard', reward: text === 'hello' ? 1 : 0, finished: true }),
    }),
  },
});

let server: TestServer;
let upstream: RunningServer;
let doomed: RunningServer;
beforeAll(async () => {
  server = await sharedServer();
  [upstream, doomed] = await Promise.all([serve([gallery]), serve([gallery])]);
  for (const [name, url] of [
    ['gym', upstream.url],
    ['doomed', doomed.url],
  ]) {
    const answer = await server.request('POST', '/v1/environments', { body: { name, source: { kind: 'remote', url } } });
    if (answer.status !== 200) throw new Error(JSON.stringify(answer.body));
  }
});
afterAll(async () => {
  await server?.close();
  await upstream?.close();
  await doomed?.close();
});

interface Options {
  name?: string;
  cookie?: string | null;
  headers?: Record<string, string>;
  method?: string;
  signal?: AbortSignal;
}
/** Members of JSON answers that tests read one by one. */
interface Answer {
  failure_kind?: string;
  failure_reason?: string;
  agent_metrics?: object;
}
async function send(route: string, body: unknown, { name = 'gym', cookie = null, headers, method = 'POST', signal }: Options = {}) {
  const answer = await fetch(`${server.url}/nemo-gym/${server.orgName}/${name}/${route}`, {
    method,
    headers: {
      'content-type': 'application/json',
      ...(headers ?? { authorization: `Bearer ${server.apiKey}` }),
      ...(cookie !== null && { cookie }),
    },
    ...(method === 'POST' && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    ...(signal !== undefined && { signal }),
  });
  const text = await answer.text();
  const isJson = answer.headers.get('content-type')?.startsWith('application/json') === true;
  return {
    status: answer.status,
    text,
    json: (isJson ? JSON.parse(text) : null) as Answer,
    cookie: answer.headers.get('set-cookie')?.split(';')[0] ?? null,
  };
}

const row = (index: number, more: object = {}) => ({
  responses_create_params: { input: [{ role: 'user', content: 'Look.' }] },
  verifier_metadata: { palestra: { split: 'train', task_index: index } },
  ...more,
});
const message = (text: string) => ({ output: [{ type: 'message', role: 'assistant', content: [{ type: 'output_text', text }] }] });
const sidOf = (cookie: string) => cookie.split('=')[1]!;
const session = async (sid: string) => (await server.request('GET', `/v1/sessions/${sid}`)).body;
async function isOver(sid: string): Promise<void> {
  await expect.poll(async () => (await session(sid)).live).toBe(false);
}

async function seeded(options: Options = {}, more: object = {}): Promise<string> {
  const answer = await send('seed_session', row(1, more), options);
  expect(answer, answer.text).toMatchObject({ status: 200, json: {} });
  return answer.cookie!;
}

describe('an agent', () => {
  test('seeds with its row, calls tools, verifies and leaves no session', async () => {
    const cookie = await seeded({ name: 'gym/runs/gym%20run:80' }, { _ng_task_index: 5, _ng_rollout_index: 2 });
    const at = { cookie, name: 'gym/runs/gym%20run:80' };
    expect(await send('look', { at: 1.0 }, at)).toMatchObject({ status: 200, text: 'look 1 at 1\n[image]' });
    expect((await send('look', { at: 'x' }, at)).status).toBe(422);
    for (const argument of [[7], 'x', 3]) {
      expect(await send('look', JSON.stringify(argument), at)).toMatchObject({ status: 422, text: expect.stringContaining('JSON object') });
    }
    expect((await send('no_such_tool', {}, at)).status).toBe(422);
    expect(await send('say', { answer: 'a pixel' }, at)).toMatchObject({ status: 200, text: 'heard' });
    const verified = await send('verify', { ...row(1), response: message('done'), kept: [1.5] }, at);
    expect(verified).toMatchObject({
      status: 200,
      json: { reward: 1, mask_sample: false, failure_kind: null, failure_reason: null, kept: [1.5], response: message('done') },
    });
    await isOver(sidOf(cookie));
    const { recording } = await session(sidOf(cookie));
    expect(recording).toMatchObject({ run: 'gym run', split: 'train', task_index: 1, metadata: { group_id: '5', sample_idx: 2 } });
    await expect
      .poll(async () => (await server.request('GET', `/v1/rollouts/${recording.rollout_id}`)).body, { timeout: 60_000 })
      .toMatchObject({ reward: 1, rollout_info: { session_state: 'closed' } });
  });

  test('begins another episode, whatever cookie it still has', async () => {
    const first = await seeded();
    const second = await seeded({ cookie: first });
    expect(second).not.toBe(first);
    for (const cookie of [first, second]) expect((await send('close_session', {}, { cookie })).json).toEqual({});
    await isOver(sidOf(first));
  });

  test('that plays nothing gets 0, which is a valid reward', async () => {
    const cookie = await seeded();
    expect((await send('verify', { response: { output: [] } }, { cookie })).json).toMatchObject({ reward: 0, mask_sample: false });
  });

  test('is observed under a longer path', async () => {
    const cookie = await seeded({ name: 'gym/ng-rollout/5-2' });
    expect((await send('ng-rollout/5-2/look', {}, { cookie })).text).toMatch(/^look 1/);
    expect((await send('ng-rollout/5-2/verify', {}, { cookie })).json).toMatchObject({ reward: 0 });
  });

  test('of an environment with a terminal tool gives it the last message', async () => {
    const running = await serve([speech]);
    try {
      await server.request('POST', '/v1/environments', { body: { name: 'speech', source: { kind: 'remote', url: running.url } } });
      for (const [text, reward] of [
        ['hello', 1],
        ['bye', 0],
      ] as const) {
        const { cookie } = await send('seed_session', row(0), { name: 'speech' });
        // As if the store did not know yet that the session is ready.
        await server.database.pool.query(`UPDATE sessions SET state = 'starting' WHERE sid = $1`, [sidOf(cookie!)]);
        const verified = await send('verify', { response: message(text) }, { name: 'speech', cookie });
        expect(verified.json).toMatchObject({ reward, mask_sample: false });
        await isOver(sidOf(cookie!));
      }
    } finally {
      await running.close();
    }
  });
});

describe('an environment server', () => {
  const request = (id: string, index = 1) => ({
    resources_session_id: id,
    episode_id: { rollout_id: '3-1', attempt: 0 },
    task_id: { taskset: 'gym:tasks', task_id: '3' },
    task_data: { palestra: { split: 'train', task_index: index } },
  });
  const closing = (id: string) => ({ resources_session_id: id, episode_id: { rollout_id: '3-1', attempt: 0 } });

  test('may repeat a seed and a close; a closed or never seeded session is not opened again', async () => {
    const id = `resources-session-${crypto.randomUUID()}`;
    const [first, again] = [await send('seed_session', request(id)), await send('seed_session', request(id))];
    for (const answer of [first, again]) expect(answer).toMatchObject({ status: 200, json: { resources_session_id: id } });
    expect(again.cookie).toBe(first.cookie);
    expect((await send('look', {}, { cookie: first.cookie })).text).toMatch(/^look 1/);
    for (const never of [id, `${id}-never`]) {
      for (let time = 0; time < 2; time += 1) {
        expect(await send('close_session', closing(never))).toMatchObject({ status: 200, json: { resources_session_id: never } });
      }
      expect((await send('seed_session', request(never))).status).toBe(410);
    }
    await isOver(sidOf(first.cookie!));
  });

  test('seeds of other organisations with the same id are other sessions', async () => {
    const id = `shared-${crypto.randomUUID()}`;
    const ours = await send('seed_session', request(id));
    const stranger = await createCaller(server, 'strangers-of-nemo-gym');
    expect((await send('look', {}, { cookie: ours.cookie, headers: stranger.headers })).status).toBe(404);
    expect((await send('verify', {}, { cookie: ours.cookie, headers: stranger.headers })).status).toBe(404);
    expect((await send('seed_session', request(id), { headers: stranger.headers })).status).toBe(404);
    await send('close_session', closing(id));
  });
});

describe('failures', () => {
  test('a tool that raises masks the sample', async () => {
    const cookie = await seeded();
    expect((await send('raise', {}, { cookie })).json).toMatchObject({
      code: 'environment_failed',
      detail: expect.stringContaining('the lamp fell'),
    });
    const { json } = await send('verify', { response: message('x') }, { cookie });
    expect(json).toMatchObject({ reward: 0, mask_sample: true, failure_kind: 'palestra:environment_failed' });
    expect(json.failure_reason).toContain('the lamp fell');
  });

  test('a session that ended in the middle masks the sample', async () => {
    const cookie = await seeded();
    await server.request('DELETE', `/v1/sessions/${sidOf(cookie)}`);
    expect((await send('look', {}, { cookie })).status).toBe(410);
    expect((await send('verify', {}, { cookie })).json).toMatchObject({ mask_sample: true, failure_kind: 'cancelled' });
  });

  test('a setup that fails refuses the seed and leaves no session', async () => {
    const failing = { palestra: { split: 'validation', task_index: 0 } };
    const answer = await send('seed_session', { ...row(0), verifier_metadata: failing });
    expect(answer).toMatchObject({ cookie: null, json: { code: 'setup_failed' } });
    const live = async () => (await server.request('GET', `/v1/sessions?state=live&environment=${server.orgName}/gym`)).body.sessions;
    // Sessions that were verified end after the client has read the answer.
    await expect.poll(live).toEqual([]);
  });

  test('a server that disappears masks the sample', async () => {
    const cookie = await seeded({ name: 'doomed' });
    expect((await send('look', {}, { cookie, name: 'doomed' })).status).toBe(200);
    await doomed.close();
    expect((await send('look', {}, { cookie, name: 'doomed' })).status).toBeGreaterThanOrEqual(400);
    const { json } = await send('verify', {}, { cookie, name: 'doomed' });
    expect(json).toMatchObject({ reward: 0, mask_sample: true });
    expect(json.failure_kind).toMatch(/^(session_lost|transport_unreachable|provider_unavailable)$/);
    await isOver(sidOf(cookie));
  });
});

describe('refusals', () => {
  test.each([
    ['401 without a key', 401, 'seed_session', row(0), { headers: {} }],
    ['401 with a wrong key', 401, 'verify', {}, { headers: { 'x-api-key': 'or_wrong' } }],
    ['404 for an unknown environment', 404, 'seed_session', row(0), { name: 'nothing' }],
    ['400 for a row without a task', 400, 'seed_session', {}, {}],
    ['400 for a row of another environment', 400, 'seed_session', { palestra: { env_name: 'a/b', split: 'train', task_index: 0 } }, {}],
    ['400 for an unknown split', 400, 'seed_session', { palestra: { split: 'none', task_index: 0 } }, {}],
    ['404 for an unknown variant', 404, 'seed_session', { palestra: { split: 'train', task_index: 0, variant: 'none' } }, {}],
    ['400 for an id that cannot stand in a header', 400, 'close_session', { resources_session_id: 'a b' }, {}],
    ['422 for no JSON', 422, 'seed_session', '{', {}],
    ['400 for a tool without a session', 400, 'look', {}, {}],
    ['404 for an unknown session', 404, 'look', {}, { cookie: 'palestra_episode=00000000-0000-4000-8000-000000000000' }],
    ['404 for a longer path', 404, 'a/b', {}, {}],
    ['405 for reading a tool', 405, 'look', {}, { method: 'GET' }],
    [
      '403 for a page of another site',
      403,
      'seed_session',
      row(0),
      { headers: { origin: 'http://evil.example', cookie: 'palestra_session=x' } },
    ],
  ] as [string, number, string, unknown, Options][])('%s', async (_name, status, route, body, options) => {
    const answer = await send(route, body, options);
    expect(answer.status, answer.text).toBe(status);
  });

  test("a key of another organisation, with a private environment and its session's cookie", async () => {
    const source = { kind: 'remote', url: upstream.url };
    await server.request('POST', '/v1/environments', { body: { name: 'hidden', source, isPrivate: true } });
    const cookie = await seeded({ name: 'hidden' });
    const { apiKey } = await createOrganisation(server.url, server.apiKey);
    const foreign = { name: 'hidden', headers: { authorization: `Bearer ${apiKey}` } };
    expect((await send('seed_session', row(0), foreign)).status).toBe(404);
    for (const name of ['hidden', 'gym']) {
      for (const route of ['look', 'verify', 'close_session']) {
        const answer = await send(route, { response: { output: [] } }, { ...foreign, name, cookie });
        const missing = await send(route, { response: { output: [] } }, { ...foreign, name, cookie: `palestra_episode=${randomUUID()}` });
        expect([route, answer.status, answer.text.replace(sidOf(cookie), '')]).toEqual([
          route,
          missing.status,
          missing.text.replace(sidOf(cookie), ''),
        ]);
      }
    }
    expect(await send('look', { at: 1 }, { name: 'hidden', cookie })).toMatchObject({ status: 200, text: 'look 1 at 1\n[image]' });
    await send('close_session', {}, { name: 'hidden', cookie });
  });

  test('a key in the path or in the user information, because NeMo Gym sends no headers', async () => {
    const { host } = new URL(server.url);
    const path = `nemo-gym/${server.orgName}/gym:80/seed_session`;
    const init = { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(row(1)) };
    expect((await fetch(`http://${host}/k/${server.apiKey}/${path}`, init)).status).toBe(200);
    const authorization = `Basic ${Buffer.from(`key:${server.apiKey}`).toString('base64')}`;
    expect((await fetch(`http://${host}/${path}`, { ...init, headers: { ...init.headers, authorization } })).status).toBe(200);
  });

  test('what needs no session', async () => {
    expect((await send('', null, { method: 'GET', headers: {} })).json).toEqual({ status: 'ok' });
    expect((await send('reverify_mode', null, { method: 'GET' })).json).toBe('unsupported');
    const samples = [
      { reward: 1, _ng_task_index: 0 },
      { reward: 0, mask_sample: true },
    ];
    expect((await send('aggregate_metrics', { verify_responses: samples })).json.agent_metrics).toMatchObject({
      'mean/reward': 1,
      'coverage/masked_rollouts': 1,
    });
  });

  test('the metrics of 200 000 samples of one task, before a deadline that work for each pair of samples would miss', async () => {
    const samples = 200_000;
    const body = `{"verify_responses":[${Array(samples).fill('{}').join()}]}`;
    const signal = AbortSignal.timeout(30_000);
    const [{ status, json }, health] = await Promise.all([
      send('aggregate_metrics', body, { signal }),
      fetch(`${server.url}/health`, { signal }),
    ]);
    expect([status, health.status]).toEqual([200, 200]);
    expect(json).toMatchObject({ group_level_metrics: [{ _ng_task_index: 0, 'mean/reward': 0 }], agent_metrics: { 'mean/reward': 0 } });
  });
});
