import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createCaller } from '../support/callers.ts';
import { sharedServer, type TestServer } from '../support/server.ts';

/** Finding L3 of the audit: session ids of another tenant cannot be told from unknown ones, and cannot be taken away. */

let server: TestServer;
let stranger: Record<string, string>;
beforeAll(async () => {
  server = await sharedServer();
  stranger = (await createCaller(server, 'strangers')).headers;
});
afterAll(() => server.close());

const deployment = { 'x-deployment': 'palestra/echo' };
const task = { split: 'train', index: 0 };
const create = (sid: string, headers = {}) =>
  server.request('POST', '/create', { headers: { ...deployment, 'x-session-id': sid, ...headers }, body: task });
const call = (sid: string, text: string, headers = {}) =>
  server.request('POST', '/call', { headers: { ...deployment, 'x-session-id': sid, ...headers }, body: { name: 'echo', input: { text } } });
const reserve = async (body = {}, headers = {}) => {
  const answer = await server.request('POST', '/create_session', { headers: { ...deployment, ...headers }, body });
  return { status: answer.status, body: String(answer.body), sid: /event: task_id\r?\ndata: (\S+)/.exec(String(answer.body))?.[1] };
};

/** Sessions of the victim, by how each got its id. */
const victims: Record<string, () => Promise<string>> = {
  'given out by the service': async () => {
    const { sid } = await reserve();
    expect(await create(sid!)).toMatchObject({ status: 200 });
    return sid!;
  },
  'chosen by its client': async () => {
    const sid = randomUUID();
    expect(await create(sid)).toMatchObject({ status: 200, body: { sid } });
    return sid;
  },
  'that has ended': async () => {
    const { sid } = await reserve();
    await create(sid!);
    await server.request('POST', '/delete', { headers: { 'x-session-id': sid! } });
    return sid!;
  },
};

describe.each(Object.keys(victims))('L3: a session %s', (how) => {
  test('looks unknown to another tenant in every request', async () => {
    const theirs = await victims[how]!();
    const attempts = async (sid: string) => {
      const headers = { ...stranger, ...deployment, 'x-session-id': sid };
      const answers: unknown[] = [];
      const note = (answer: { status: number; body: unknown }) =>
        answers.push([
          answer.status,
          JSON.stringify(answer.body)
            .replaceAll(sid, 'SID')
            .replaceAll(/[\w-]{36}/g, 'ID'),
        ]);
      for (const [method, path] of [
        ['POST', '/ping'],
        ['GET', '/prompt'],
        ['GET', `/v1/sessions/${sid}`],
        ['GET', `/v1/sessions/${sid}/calls`],
        ['DELETE', `/v1/sessions/${sid}`],
        ['POST', '/delete'],
      ] as const)
        note(await server.request(method, path, { headers }));
      note(await server.request('POST', '/score_group', { headers, body: { candidates: [] } }));
      note(await reserve({ task_id: sid }, stranger));
      note(await create(sid, stranger));
      note(await create(sid, stranger));
      note(await server.request('POST', '/v1/sessions', { headers: stranger, body: { environment: 'palestra/echo', ...task, sid } }));
      note(await server.request('POST', '/delete', { headers }));
      note(await create(sid, stranger));
      const text = { environment: 'palestra/echo', ...task, id: `${sid}` };
      note(await server.request('GET', `/v1/text-sessions/${sid}`, { headers: stranger }));
      note(await server.request('POST', '/v1/text-sessions', { headers: stranger, body: text }));
      return answers;
    };
    expect(await attempts(theirs)).toEqual(await attempts(randomUUID()));
  });
});

test('L3: an id of another tenant does not prevent its use', async () => {
  const sid = randomUUID();
  expect(await create(sid, stranger)).toMatchObject({ status: 200, body: { sid } });
  expect(await create(sid)).toMatchObject({ status: 200, body: { sid } });
  expect((await call(sid, 'mine')).body).toContain('mine');
  await server.request('POST', '/delete', { headers: { ...stranger, 'x-session-id': sid } });
  expect((await call(sid, 'still here')).body).toContain('still here');
  expect((await call(sid, 'theirs', stranger)).status).toBe(410);
  expect(await server.request('GET', `/v1/sessions/${sid}`)).toMatchObject({ status: 200, body: { state: 'ready' } });
});

test('a rollout that names the session of another tenant shows nothing of it', async () => {
  const theirs = await victims['given out by the service']!();
  const [id, run] = [randomUUID(), `named ${randomUUID()}`];
  const start = { eventType: 'rollout', eventId: id, timestamp: 1, runName: run, metadata: { session_id: theirs } };
  expect(await server.request('POST', '/v1/rollouts', { headers: stranger, body: { events: [start] } })).toMatchObject({ status: 200 });
  const list = await server.request('GET', `/v1/runs/${encodeURIComponent(run)}/rollouts?q=env.version:null`, { headers: stranger });
  expect(list.body).toMatchObject({ total: 1, rollouts: [{ id, session: theirs }] });
  const made = await server.request('POST', '/v1/exports', { headers: stranger, body: { run, format: 'jsonl' } });
  expect(made).toMatchObject({ status: 200 });
  const view = async () => (await server.request('GET', `/v1/exports/${made.body.id}`, { headers: stranger })).body;
  await expect.poll(async () => (await view()).state, { timeout: 60_000, interval: 250 }).toBe('complete');
  const { url } = (await view()).files.find(({ name }: { name: string }) => name.startsWith('data/'));
  expect(JSON.parse(await (await fetch(url)).text())).toMatchObject({ session_id: theirs, environment_version: null });
});
