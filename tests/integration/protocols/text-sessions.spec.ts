import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { executions, gates, textEnvironments } from '../../support/text-environments.ts';
import type { TestServer } from '../../support/server.ts';
import { startTwoReplicas, type TwoReplicas } from '../../support/two-replicas.ts';

/** Text sessions over HTTP: two API processes on one database, two organisations, and environments of the first. */
let world: TwoReplicas;
let first: TestServer;
let second: TestServer;
let stranger: Record<string, string>;
let environment: string;

beforeAll(async () => {
  world = await startTwoReplicas('texts', textEnvironments);
  ({ first, second, stranger, environment } = world);
});
afterAll(() => world?.close());

const asked = (body: object) => ({ environment, variant: 'abacus', split: 'train', index: 0, ...body });
async function open(body: object = {}, server = first) {
  const answer = await server.request('POST', '/v1/text-sessions', { body: asked(body) });
  expect(answer).toMatchObject({ status: 200, body: { id: expect.any(String) } });
  return answer.body as {
    id: string;
    prompt: { role: string; content: string }[];
    max_turns: number;
    tools: { name: string }[];
    metadata: object;
  };
}
const step = (id: string, text: string, more: object = {}, server = first) =>
  server.request('POST', `/v1/text-sessions/${id}/step`, { body: { text, ...more } });
const metrics = async (id: string, server = first) => (await server.request('GET', `/v1/text-sessions/${id}/metrics`)).body;
const call = (name: string, input: object = {}) => `<tool_call>${JSON.stringify({ name, arguments: input })}</tool_call>`;
const response = (text: string) => [{ role: 'user', content: `<tool_response>\n${text}\n</tool_response>` }];

describe('refusals', () => {
  test('without a key, and of another organisation', async () => {
    const { id } = await open();
    expect((await fetch(`${first.url}/v1/text-sessions`, { method: 'POST', body: '{}' })).status).toBe(401);
    for (const [method, path, body] of [
      ['POST', `/v1/text-sessions/${id}/step`, { text: 'x' }],
      ['GET', `/v1/text-sessions/${id}`],
      ['GET', `/v1/text-sessions/${id}/metrics`],
      ['DELETE', `/v1/text-sessions/${id}`],
    ] as const) {
      expect(await first.request(method, path, { body, headers: stranger })).toMatchObject({
        status: 404,
        body: { code: 'session_not_found' },
      });
    }
    expect(await step(id, call('count'))).toMatchObject({ status: 200 });
  });

  test('invalid bodies and environments', async () => {
    const refused = async (body: object) => {
      const { status, body: answer } = await first.request('POST', '/v1/text-sessions', { body: asked(body) });
      return [status, answer.code];
    };
    expect(await refused({ prompt: 'no JSON' })).toEqual([422, 'invalid_body']);
    expect(await refused({ prompt: '{"role":"user"}' })).toEqual([422, 'invalid_body']);
    expect(await refused({ max_turns: 0 })).toEqual([422, 'invalid_body']);
    expect(await refused({ task_spec: {} })).toEqual([422, 'invalid_body']);
    expect(await refused({ environment: 'nobody/nothing' })).toEqual([404, 'deployment_not_found']);
    // A session that cannot be played is deleted.
    const id = randomUUID();
    expect(await refused({ parse: 'action', id })).toEqual([400, 'invalid_request']);
    expect(await step(id, 'x')).toMatchObject({ status: 404 });
    const { body: engine } = await first.request('POST', '/v1/sessions', {
      body: { environment, variant: 'abacus', split: 'train', index: 0 },
    });
    expect(await step(engine.sid, 'x')).toMatchObject({ status: 404 });
  });
});

describe('an episode of tool calls', () => {
  test("init returns the client's prompt, or one of the task and its tools", async () => {
    const messages = [{ role: 'user', content: 'hi', cache: 1.5 }];
    expect((await open({ prompt: messages })).prompt).toEqual(messages);
    expect((await open({ prompt: JSON.stringify(messages), max_turns: 3 })).max_turns).toBe(3);
    const made = await open({ index: 1 });
    expect(made.prompt.map(({ role }) => role)).toEqual(['system', 'user']);
    expect(made.prompt[0]!.content).toContain('{"name": "add", "arguments_schema": {');
    expect(made.prompt[1]!.content).toBe('Task 1: reckon.');
    expect(made).toMatchObject({ max_turns: 10, metadata: {} });
    expect(made.tools.map(({ name }) => name)).toContain('finish');
  });

  test('steps, metrics and the end', async () => {
    const { id } = await open({ max_turns: 9 });
    expect((await step(id, call('add', { a: 1, b: 2 }))).body).toEqual({
      turn: 1,
      observations: response('3'),
      reward: 0.1,
      done: false,
      metadata: { tool_name: 'add', tool_args: { a: 1, b: 2 }, finished: false },
    });
    expect((await step(id, '<tool_call>{]')).body).toMatchObject({
      turn: 2,
      reward: 0,
      done: false,
      metadata: { tool_call_error: expect.any(String) },
    });
    expect((await step(id, call('nothing'))).body.observations[0].content).toContain('Error: not_found: ');
    expect((await step(id, call('finish'))).body).toMatchObject({ reward: 1, done: true });
    expect((await step(id, call('count'))).body.observations[0].content).toContain('Error: episode_finished: ');
    expect(await metrics(id)).toEqual({ turns: 5, total_reward: 1.1, num_rewards: 4 });
    expect((await first.request('GET', `/v1/text-sessions/${id}`)).body).toMatchObject({ parse: 'tool_call', turns: 5, max_turns: 9 });
    for (let time = 0; time < 2; time += 1) {
      expect(await first.request('DELETE', `/v1/text-sessions/${id}`)).toMatchObject({ status: 200, body: { id } });
    }
    expect(await step(id, call('count'))).toMatchObject({ status: 410, body: { code: 'session_deleted' } });
    expect(await step(id, 'no call either')).toMatchObject({ status: 410 });
    expect(await metrics(id)).toMatchObject({ turns: 5 });
  });

  test('a recorded session is a rollout', async () => {
    const { id } = await open({ recording: { name: 'texts', step: 3 } });
    await step(id, call('count'));
    expect((await first.request('GET', `/v1/sessions/${id}`)).body).toMatchObject({ recording: { run: 'texts', step: 3 }, num_calls: 1 });
  });
});

describe('turns', () => {
  test('a repeated turn runs nothing and gets the same answer on any replica', async () => {
    const { id } = await open();
    const before = executions.count;
    const one = await step(id, call('count'), { turn: 1 });
    expect((await step(id, call('count'), { turn: 1 }, second)).body).toEqual(one.body);
    expect(executions.count).toBe(before + 1);
    // The next turn is another one, although its text is equal.
    expect((await step(id, call('count'), { turn: 2 }, second)).body).toMatchObject({ turn: 2, observations: response('count 2') });
    expect((await step(id, call('count'), { turn: 1 })).body).toEqual(one.body);
    const odd = await step(id, '<tool_call>', { turn: 3 });
    expect((await step(id, '<tool_call>', { turn: 3 }, second)).body).toEqual(odd.body);
    expect(await metrics(id, second)).toEqual({ turns: 3, total_reward: 2, num_rewards: 2 });
  });

  test('another text and a turn out of order are conflicts', async () => {
    const { id } = await open();
    await step(id, call('count'), { turn: 1 });
    for (const [text, turn] of [
      [call('add', { a: 1, b: 1 }), 1],
      [call('count'), 3],
    ] as const) {
      expect(await step(id, text, { turn })).toMatchObject({ status: 409, body: { code: 'turn_conflict' } });
    }
    expect(await metrics(id)).toMatchObject({ turns: 1 });
  });

  test('concurrent turns run one after another, equal ones once', async () => {
    const { id } = await open({ max_turns: 50 });
    const answers = await Promise.all(Array.from({ length: 8 }, (_, index) => step(id, call('count'), {}, index % 2 ? first : second)));
    const done = answers.filter(({ status }) => status === 200).map(({ body }) => [body.turn, body.observations[0].content]);
    // Two processes can play the same turn; the second one gets a conflict.
    expect(answers.every(({ status, body }) => status === 200 || body.code === 'turn_conflict')).toBe(true);
    expect(new Set(done.map(([turn]) => turn)).size).toBe(done.length);
    const { turns } = await metrics(id);
    const same = await Promise.all(
      Array.from({ length: 6 }, (_, index) => step(id, call('count'), { turn: turns + 1 }, index % 2 ? first : second)),
    );
    const texts = same.filter(({ status }) => status === 200).map(({ body }) => body.observations[0].content);
    expect(new Set(texts)).toEqual(new Set([`<tool_response>\ncount ${turns + 1}\n</tool_response>`]));
  });

  test('a long turn can be requested again', async () => {
    const { id } = await open();
    gates.open = () => {};
    expect(await step(id, call('wait'), { turn: 1, wait_s: 0.2 })).toMatchObject({ status: 503, body: { code: 'turn_running' } });
    const waiting = step(id, call('wait'), { turn: 1 });
    await new Promise((resolve) => setTimeout(resolve, 100));
    while (gates.open.toString() === '() => {}') await new Promise((resolve) => setTimeout(resolve, 20));
    gates.open();
    expect((await waiting).body).toMatchObject({ turn: 1, observations: response('waited') });
    expect(await metrics(id)).toMatchObject({ turns: 1, num_rewards: 1 });
  });

  test('a failed environment has its failure class', async () => {
    const { id } = await open();
    expect((await step(id, call('boom'))).body).toMatchObject({
      observations: response('Error: the beads\nfell off'),
      reward: 0,
      metadata: { failure_class: 'environment' },
    });
  });
});

describe('actions', () => {
  test('of an environment of actions', async () => {
    const { id, prompt } = await open({ variant: 'maze', parse: 'action', max_turns: 5 });
    expect(prompt).toEqual([{ role: 'user', content: '{"info_state":[],"legal_actions":[]}' }]);
    expect((await step(id, 'I go. <action>x</action>')).body).toMatchObject({
      reward: -1,
      done: false,
      observations: [{ role: 'user', content: "invalid literal for int() with base 10: 'x'" }],
    });
    const seen = (await step(id, '<action>3</action>')).body;
    expect(seen).toMatchObject({ reward: 1, done: true, metadata: { action: { action_id: 3 } } });
    expect(seen.observations[0].content).toMatch(
      /^done: True\nreward: 1\.0\nmetadata: \{\}\ninfo_state: \[0, 0\.25, .*\] \.\.\. \(len=21\)\n/,
    );
    expect(await metrics(id)).toEqual({ turns: 2, total_reward: 0, num_rewards: 2 });
  });
});
