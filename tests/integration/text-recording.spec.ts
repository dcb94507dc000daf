import { serve } from '@palestra/environment-kit';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { settled } from '../support/derived-rows.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { textEnvironments } from '../support/text-environments.ts';
import { eventually } from './observed.world.ts';

/** Recorded text sessions: what a researcher reads is what the model said and was told. */
let server: TestServer;
let running: Awaited<ReturnType<typeof serve>>;
let owner: string;

beforeAll(async () => {
  running = await serve(textEnvironments);
  server = await startServer();
  const added = await server.request('POST', '/v1/environments', { body: { name: 'texts', source: { kind: 'remote', url: running.url } } });
  owner = added.body.owner;
});
afterAll(async () => {
  await server?.close();
  await running?.close();
});

async function open(variant: string, body: object): Promise<string> {
  const asked = { environment: `${owner}/texts`, variant, split: 'train', index: 0, ...body };
  const answer = await server.request('POST', '/v1/text-sessions', { body: asked });
  expect(answer).toMatchObject({ status: 200 });
  return answer.body.id;
}
async function step(id: string, text: string) {
  const answer = await server.request('POST', `/v1/text-sessions/${id}/step`, { body: { text } });
  expect(answer).toMatchObject({ status: 200 });
  return answer.body as { observations: { content: string }[]; reward: number; done: boolean };
}
const call = (name: string, input: object = {}) => `<tool_call>${JSON.stringify({ name, arguments: input })}</tool_call>`;
const told = (text: string) => `<tool_response>\n${text}\n</tool_response>`;

async function whenRecorded(sid: string, until = '-1'): Promise<void> {
  await eventually(async () => {
    const { rows } = await server.database.pool.query('SELECT recorded_seq FROM sessions WHERE sid = $1', [sid]);
    const seq = rows[0].recorded_seq as string | null;
    return (until === '-1' ? seq === '-1' : seq !== null && seq !== '0') ? true : null;
  });
}
async function recordingOf(run: string) {
  await settled(server.database.pool);
  const { body } = await server.request('GET', `/v1/runs?name=${run}`);
  const { rollouts } = (await server.request('GET', `/v1/runs/${body.runs[0].id}/rollouts`)).body;
  const rollout = (await server.request('GET', `/v1/rollouts/${rollouts[0].id}`)).body;
  return { run: body.runs[0], listed: rollouts[0], rollout, messages: rollout.messages as any[] };
}

test('is the conversation as the model saw it, over several writings, each reward once', { timeout: 60_000 }, async () => {
  const id = await open('abacus', { recording: { name: 'conversation' }, max_turns: 9, secrets: { api: { value: 'hunter2-hunter2' } } });
  const said = [
    `Let me think: hunter2-hunter2.\n${call('add', { a: 1, b: 2 })}`,
    '<tool_call>{broken</tool_call>',
    'Hm.',
    call('boom'),
    `Again. ${call('award', { points: 0.5 })}`,
    call('nothing'),
    'That was all.',
  ];
  const answers: { observations: { content: string }[] }[] = [];
  for (const [at, text] of said.entries()) {
    answers.push(await step(id, text));
    // Written in between, so that what follows has to fit on.
    if (at === 1 || at === 3) {
      await new Promise((resolve) => setTimeout(resolve, 1_100));
      await whenRecorded(id, 'begun');
    }
  }
  await server.request('DELETE', `/v1/text-sessions/${id}`);
  await whenRecorded(id);
  const { listed, rollout, messages, run } = await recordingOf('conversation');
  const played = ['assistant_message', 'tool_call', 'tool_result'];
  const turns = [played, ['assistant_message', 'user_message'], ['assistant_message'], played, played, played, ['assistant_message']];
  expect(messages.map(({ type }) => type)).toEqual(turns.flat());
  const spoken = messages.filter(({ type }) => type === 'assistant_message').map(({ content }) => content as string);
  expect(spoken[0]).toMatch(/^Let me think: (?!hunter2).+\.\n<tool_call>/);
  expect(spoken.slice(1)).toEqual(said.slice(1));
  const heard = messages.filter(({ type }) => type === 'tool_result' || type === 'user_message').map(({ content }) => content as string);
  expect(heard).toEqual(answers.flatMap(({ observations }) => observations.map(({ content }) => content)));
  expect(heard[0]).toBe(told('3'));
  // Nothing is missing, nothing is twice, and the sum is the environment's.
  expect(rollout.missing_indexes).toEqual([]);
  expect(messages.map(({ index }) => index)).toEqual(messages.map((_message, at) => at));
  expect(messages.filter(({ reward }) => reward !== null).map(({ type, reward }) => [type, reward])).toEqual([
    ['tool_result', 0.1],
    ['tool_result', 0.5],
  ]);
  expect(listed).toMatchObject({ reward: 0.6, num_tool_calls: 4 });
  expect(run).toMatchObject({ num_rollouts: 1 });
  const results = messages.filter(({ type }) => type === 'tool_result');
  expect(results.map(({ metadata }) => [metadata.turn, metadata.step_reward, metadata.failure_class])).toEqual([
    [1, 0.1, 'ok'],
    [4, 0, 'environment'],
    [5, 0.5, 'ok'],
    [6, 0, 'policy'],
  ]);
  // Found in the ledger with every call, the texts between them notwithstanding.
  await expect.poll(async () => (await recordingOf('conversation')).listed.verified, { timeout: 30_000, interval: 1_000 }).toBe('verified');
});

test('of actions has what the environment said last, though the model was not told', async () => {
  const id = await open('parrot', { recording: { name: 'actions' }, parse: 'action', max_turns: 2 });
  const first = await step(id, 'I say <action>{"message": "one"}</action>');
  await step(id, 'and <action>{"message": "two"}</action>');
  await server.request('DELETE', `/v1/text-sessions/${id}`);
  await whenRecorded(id);
  const { messages } = await recordingOf('actions');
  expect(messages.map(({ type }) => type)).toEqual([
    'assistant_message',
    'tool_call',
    'tool_result',
    'assistant_message',
    'tool_call',
    'tool_result',
  ]);
  expect(messages[2].content).toBe(first.observations[0]!.content);
  expect([messages[2].metadata.shown, messages[5].metadata.shown]).toEqual([true, false]);
  expect(messages[5].content).toContain('two');
});

test('without a run keeps no texts', async () => {
  const id = await open('abacus', {});
  await step(id, `A private thought. ${call('count')}`);
  const { rows } = await server.database.pool.query('SELECT said FROM text_turns WHERE sid = $1', [id]);
  expect(rows).toEqual([{ said: null }]);
});
