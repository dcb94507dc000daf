import { serve } from '@palestra/environment-kit';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { RetentionService } from '../../../apps/api/src/store/storage/retention.service.ts';
import { settled } from '../../support/derived-rows.ts';
import { sharedServer, type TestServer } from '../../support/server.ts';
import { textEnvironments } from '../../support/text-environments.ts';
import { eventually } from '../observed.world.ts';

/** Recorded text sessions: the transcript has what the model wrote and saw. */
let server: TestServer;
let running: Awaited<ReturnType<typeof serve>>;
let owner: string;

beforeAll(async () => {
  running = await serve(textEnvironments);
  server = await sharedServer();
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
  prompts.set(answer.body.id, answer.body.prompt);
  return answer.body.id;
}
/** The result of `init`. */
const prompts = new Map<string, { role: string; content: string }[]>();
async function step(id: string, text: string) {
  const answer = await server.request('POST', `/v1/text-sessions/${id}/step`, { body: { text } });
  expect(answer).toMatchObject({ status: 200 });
  return answer.body as { observations: { content: string }[]; reward: number; done: boolean };
}
const call = (name: string, input: object = {}) => `<tool_call>${JSON.stringify({ name, arguments: input })}</tool_call>`;
const told = (text: string) => `<tool_response>\n${text}\n</tool_response>`;

/** Resolves when the recorder has written all calls of the session and, after its end, the end. */
async function whenRecorded(sid: string, until: 'end' | 'so far' = 'end'): Promise<void> {
  await eventually(async () => {
    const { rows } = await server.database.pool.query(
      `SELECT recorded_seq::text AS recorded, (SELECT max(c.seq) FROM session_calls c WHERE c.sid = s.sid)::text AS last FROM sessions s WHERE sid = $1`,
      [sid],
    );
    const { recorded, last } = rows[0] as { recorded: string | null; last: string | null };
    return recorded === (until === 'end' ? '-1' : last) ? true : null;
  });
}
async function recordingOf(run: string) {
  await settled(server.database.pool, server.orgName);
  const { body } = await server.request('GET', `/v1/runs?name=${run}`);
  const { rollouts } = (await server.request('GET', `/v1/runs/${body.runs[0].id}/rollouts`)).body;
  const rollout = (await server.request('GET', `/v1/rollouts/${rollouts[0].id}`)).body;
  return { run: body.runs[0], listed: rollouts[0], rollout, messages: rollout.messages as any[] };
}

test('is the conversation as the model saw it, with each reward once', { timeout: 150_000 }, async () => {
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
    // Written in between, so that later messages must follow.
    if (at === 1 || at === 3) {
      await whenRecorded(id, 'so far');
    }
  }
  await server.request('DELETE', `/v1/text-sessions/${id}`);
  await whenRecorded(id);
  const { listed, rollout, messages, run } = await recordingOf('conversation');
  const played = ['assistant_message', 'tool_call', 'tool_result'];
  const turns = [played, ['assistant_message', 'user_message'], ['assistant_message'], played, played, played, ['assistant_message']];
  expect(messages.map(({ type }) => type)).toEqual(['system_message', 'user_message', ...turns.flat()]);
  expect(messages.slice(0, 2).map(({ content }) => content)).toEqual(prompts.get(id)!.map(({ content }) => content));
  expect(messages[1].content).toBe('Task 0: reckon.');
  const spoken = messages.filter(({ type }) => type === 'assistant_message').map(({ content }) => content as string);
  expect(spoken[0]).toMatch(/^Let me think: (?!hunter2).+\.\n<tool_call>/);
  expect(spoken.slice(1)).toEqual(said.slice(1));
  const heard = messages
    .slice(2)
    .filter(({ type }) => type === 'tool_result' || type === 'user_message')
    .map(({ content }) => content as string);
  expect(heard).toEqual(answers.flatMap(({ observations }) => observations.map(({ content }) => content)));
  expect(heard[0]).toBe(told('3'));
  // No message is missing or repeated, and the sum is that of the environment.
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
  // Every call matches the ledger despite the texts between them.
  await expect.poll(async () => (await recordingOf('conversation')).listed.verified, { timeout: 60_000, interval: 1_000 }).toBe('verified');
});

test('of actions has the last observation, which the model did not see', async () => {
  const id = await open('parrot', { recording: { name: 'actions' }, parse: 'action', max_turns: 2 });
  const first = await step(id, 'I say <action>{"message": "one"}</action>');
  await step(id, 'and <action>{"message": "two"}</action>');
  await server.request('DELETE', `/v1/text-sessions/${id}`);
  await whenRecorded(id);
  const { messages } = await recordingOf('actions');
  expect(messages.map(({ type }) => type)).toEqual([
    'user_message',
    'assistant_message',
    'tool_call',
    'tool_result',
    'assistant_message',
    'tool_call',
    'tool_result',
  ]);
  expect(messages[0].content).toBe(prompts.get(id)![0]!.content);
  expect(messages[0].content).toContain('"echoed_message":"ready"');
  expect(messages[3].content).toBe(first.observations[0]!.content);
  expect([messages[3].metadata.shown, messages[6].metadata.shown]).toEqual([true, false]);
  expect(messages[6].content).toContain('two');
});

test("begins with the client's prompt unchanged", async () => {
  const parts = [
    { type: 'text', text: 'Look' },
    { type: 'text', text: 'here.' },
  ];
  const prompt = [
    { role: 'system', content: 'Be brief: hunter2-hunter2.' },
    { role: 'user', content: parts, cache: 1.5 },
    { role: 'assistant', content: null, tool_calls: [{ id: 'x', function: { name: 'add', arguments: '{}' } }] },
    { role: 'tool', tool_call_id: 'x', content: '3' },
    { role: 'user', content: 'Now you.' },
  ];
  const id = await open('abacus', { recording: { name: 'brought' }, prompt, secrets: { api: { value: 'hunter2-hunter2' } } });
  expect(prompts.get(id)).toEqual(prompt);
  await step(id, call('count'));
  await server.request('DELETE', `/v1/text-sessions/${id}`);
  await whenRecorded(id);
  const { messages, listed } = await recordingOf('brought');
  expect(messages.slice(0, 5).map(({ type, content }) => [type, content])).toEqual([
    ['system_message', 'Be brief: [secret:api].'],
    ['user_message', 'Look\nhere.'],
    ['assistant_message', expect.stringContaining('tool_calls')],
    ['user_message', '3'],
    ['user_message', 'Now you.'],
  ]);
  expect(messages[1].metadata.message).toEqual(prompt[1]);
  expect(messages[3].metadata.message).toEqual(prompt[3]);
  expect(messages.slice(5).map(({ type }) => type)).toEqual(['assistant_message', 'tool_call', 'tool_result']);
  expect(messages.map(({ index }) => index)).toEqual(messages.map((_message, at) => at));
  // Calls in the prompt's examples are not calls of the episode.
  expect(listed).toMatchObject({ num_tool_calls: 1, reward: 1 });
});

describe('a run that is named later', () => {
  const keep = (id: string, run: string) => server.request('POST', `/v1/sessions/${id}/rollout`, { body: { run } });

  test.each(['while it is played', 'after its end'])('%s has the conversation from its beginning', async (when) => {
    const run = `late ${when}`;
    const id = await open('abacus', { max_turns: 9, secrets: { api: { value: 'hunter2-hunter2' } } });
    const said = ['<tool_call>{broken</tool_call>', `I know hunter2-hunter2. ${call('count')}`, 'That was all.'];
    await step(id, said[0]!);
    await step(id, said[1]!);
    if (when === 'while it is played') expect(await keep(id, run)).toMatchObject({ status: 200 });
    await step(id, said[2]!);
    await server.request('DELETE', `/v1/text-sessions/${id}`);
    if (when === 'after its end') expect(await keep(id, run)).toMatchObject({ status: 200 });
    await whenRecorded(id);
    const { messages } = await recordingOf(run);
    const turns = [['assistant_message', 'user_message'], ['assistant_message', 'tool_call', 'tool_result'], ['assistant_message']];
    expect(messages.map(({ type }) => type)).toEqual(['system_message', 'user_message', ...turns.flat()]);
    expect(messages.map(({ index }) => index)).toEqual(messages.map((_message, at) => at));
    const spoken = messages.filter(({ type }) => type === 'assistant_message').map(({ content }) => content);
    expect(spoken).toEqual([said[0], `I know [secret:api]. ${call('count')}`, said[2]]);
  });
});

describe('data beside the rollout', () => {
  const rows = async (id: string) => {
    const { rows: kept } = await server.database.pool.query(
      `SELECT x.prompt, t.turn, t.said FROM text_sessions x FULL JOIN text_turns t ON t.sid = x.sid WHERE $1 IN (x.sid, t.sid) ORDER BY t.turn`,
      [id],
    );
    return kept;
  };
  const retention = () => new RetentionService(server.database, null as never);

  test('has no texts once the rollout is complete, and nothing a day later', async () => {
    const id = await open('abacus', { recording: { name: 'kept' } });
    await step(id, `A private thought. ${call('count')}`);
    expect(await rows(id)).toEqual([{ prompt: expect.any(String), turn: 1, said: `A private thought. ${call('count')}` }]);
    await server.request('DELETE', `/v1/text-sessions/${id}`);
    await whenRecorded(id);
    expect(await rows(id)).toEqual([{ prompt: null, turn: 1, said: null }]);
    expect((await server.request('GET', `/v1/text-sessions/${id}/metrics`)).body).toEqual({ turns: 1, total_reward: 1, num_rewards: 1 });
    await retention().sweepTexts();
    expect(await rows(id)).toHaveLength(1);
    await server.database.pool.query(`UPDATE text_sessions SET due_at = due_at - interval '1 day 1 minute' WHERE sid = $1`, [id]);
    await retention().sweepTexts();
    expect(await rows(id)).toEqual([]);
    expect((await server.request('GET', `/v1/text-sessions/${id}/metrics`)).status).toBe(404);
  });

  test("without a rollout is deleted after the organisation's retention", async () => {
    const { pool } = server.database;
    const [ended, young, living, recorded] = [
      await open('abacus', {}),
      await open('abacus', {}),
      await open('abacus', {}),
      await open('abacus', { recording: { name: 'stays' } }),
    ];
    const all = [ended, young, living, recorded];
    for (const id of all) await step(id, call('count'));
    for (const id of [ended, young, recorded]) await server.request('DELETE', `/v1/text-sessions/${id}`);
    await whenRecorded(recorded);
    await pool.query(`UPDATE text_sessions SET created_at = now() - interval '5 days' WHERE sid = ANY($1::text[])`, [all]);
    await pool.query(`UPDATE sessions SET ended_at = now() - interval '4 days' WHERE sid = $1`, [ended]);
    await retention().sweepTexts();
    expect(await Promise.all(all.map(async (id) => (await rows(id)).length))).toEqual([1, 1, 1, 1]);
    expect(await server.request('PATCH', '/v1/organisation', { body: { retention_days: 3 } })).toMatchObject({ status: 200 });
    await retention().sweepTexts();
    expect(await Promise.all(all.map(async (id) => (await rows(id)).length))).toEqual([0, 1, 1, 1]);
    await step(living, call('count'));
  });

  test('is not stored for a session that never opened', async () => {
    const { pool } = server.database;
    const id = await open('abacus', {});
    await step(id, call('count'));
    await server.request('DELETE', `/v1/text-sessions/${id}`);
    await pool.query(`UPDATE sessions SET unbound_ended_at = now() - interval '2 days' WHERE sid = $1`, [id]);
    await expect.poll(() => rows(id), { timeout: 30_000, interval: 250 }).toEqual([]);
  });
});
