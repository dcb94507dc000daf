import path from 'node:path';
import { type RunningServer, serve } from '@palestra/environment-kit';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { addRemote, sharedPalestra, type SharedPalestra } from '../../support/palestra.ts';
import { callTools, get, MODEL_KEY, palestra, refuse, rolloutsOf, say, serveChat, solve, startPalestraCommand } from './eval.world.ts';
import { sums } from './sums.fixture.ts';

/** `palestra eval` of a model, against a real service and a server of chat completions with faults. */
let server: SharedPalestra;
let upstream: RunningServer;
let chat: Awaited<ReturnType<typeof serveChat>>;
let environment: string;

beforeAll(async () => {
  server = await sharedPalestra();
  upstream = await serve([sums]);
  chat = await serveChat(solve);
  environment = await addRemote(server, 'sums', upstream.url, true);
});
afterAll(async () => {
  chat?.close();
  await upstream?.close();
});

const evaluate = (run: string, ...args: string[]) =>
  palestra(server, 'eval', environment, '--model', 'acme/model-1', '--base-url', chat.url, '--run', run, '-o', 'json', ...args);

test('a model gets the prompt, the tools and its results, and its rollouts are those of a run for evaluation', async () => {
  chat.use(({ task, body }) =>
    body.messages.length === 1
      ? callTools(['look', ''])
      : task % 2 === 0
        ? callTools(['answer', `{"sum": ${task + 1}}`])
        : callTools(['answer', '{"sum": -1}'], ['look', '{}']),
  );
  const extra = ['--temperature', '0.5', '--max-tokens', '64', '--extra-body', '{"seed": 7}', '--price-in', '2', '--price-out', '10'];
  const ended = await evaluate('sums-both', '-n', '0,5,10,15', '-k', '2', ...extra);
  expect(ended.stderr).not.toMatch(/palestra:|failure/);
  expect(ended.code).toBe(0);
  const result = JSON.parse(ended.stdout);
  expect(result).toMatchObject({
    run: 'sums-both',
    environment,
    version: 1,
    split: 'test',
    policy: 'acme/model-1',
    tasks: 4,
    samples: 2,
    episodes: 8,
    scored: 8,
    failures: { environment: 0, infrastructure: 0 },
    stops: { finished: 8 },
    tokens: { prompt: 1_600, output: 160 },
  });
  expect(result.reward_mean.value).toBe(0.5);
  expect(result.reward_mean.low).toBeLessThan(0.1);
  expect(result.pass.map(({ k, value }: { k: number; value: number }) => [k, value])).toEqual([
    [1, 0.5],
    [2, 0.5],
  ]);
  expect(result.levels.map(({ level, tasks, success }: any) => [level, tasks, success.value])).toEqual([
    ['1', 2, 1],
    ['2', 2, 0],
  ]);
  expect(result.cost).toBeCloseTo((1_600 * 2 + 160 * 10) / 1e6, 12);
  const [first] = chat.calls;
  expect(first!.authorization).toBe(`Bearer ${MODEL_KEY}`);
  expect(first!.body).toMatchObject({ model: 'acme/model-1', temperature: 0.5, max_tokens: 64, seed: 7 });
  expect(first!.body.tools!.map((one) => one.function.name).toSorted()).toEqual(['answer', 'look']);
  expect(first!.body.messages[0]).toMatchObject({
    role: 'user',
    content: [{ type: 'text' }, { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0KGgo=' } }],
  });
  const second = chat.calls.find(({ body }) => body.messages.length > 1)!;
  expect(second.body.messages.slice(1)).toMatchObject([
    { role: 'assistant', tool_calls: [{ id: 'c0', function: { name: 'look', arguments: '{}' } }] },
    { role: 'tool', tool_call_id: 'c0', content: expect.stringMatching(/^It is \d+\.$/) },
  ]);
  const rollouts = await rolloutsOf(server, 'sums-both');
  expect(new Set(rollouts.map((one) => `${one.task_index}/${one.sample}`))).toEqual(
    new Set([0, 5, 10, 15].flatMap((task) => [0, 1].map((sample) => `${task}/${sample}`))),
  );
  expect(rollouts.length).toBe(8);
  for (const one of rollouts) expect(one).toMatchObject({ step: 0, phase: 'eval', stop: 'finished', tokens: 20 });
  expect(rollouts[0]!.provenance).toMatchObject({ step: 'reported', sample: 'reported', tokens: 'reported', stop: 'reported' });
  const view = await get(server, `/v1/rollouts/${rollouts[0]!.id}/header`);
  expect(view).toMatchObject({ model: 'acme/model-1', split: 'test', environment, rollout_info: { env_version: 1, temperature: 0.5 } });
  expect(view.session).not.toBeNull();
  await vi.waitFor(
    async () => expect((await rolloutsOf(server, 'sums-both')).filter(({ verified }) => verified === 'verified').length).toBeGreaterThan(0),
    { timeout: 60_000, interval: 500 },
  );
  expect(JSON.stringify([ended, view])).not.toContain(MODEL_KEY);
  const { groups } = await get(server, `/v1/runs/sums-both/groups?step=0&phase=eval`);
  expect(groups.length).toBe(4);
});

test('refusals of the policy go back to it, and an episode without a reward has the reward 0', async () => {
  chat.use(({ task, body }) => {
    const last = body.messages.at(-1)!;
    if (task === 0) return last.role === 'user' ? callTools(['answer', '{"sum": ']) : callTools(['answer', '{"sum": 1}']);
    if (task === 1)
      return last.role === 'user' ? callTools(['nothing', '{}'], ['answer', '[2]'], ['answer', '{"sum": "two"}']) : say('I give up.');
    if (task === 2) return callTools(['look', '{}']);
    return task === 3 ? say('Let me th', 'length') : refuse(400, { error: { code: 'context_length_exceeded', message: 'Too long.' } });
  });
  const ended = await evaluate('sums-refused', '-n', '0..4', '--max-turns', '3');
  expect(ended.code).toBe(0);
  expect(JSON.parse(ended.stdout)).toMatchObject({
    scored: 5,
    reward_mean: { value: 0.2 },
    refused_calls: 4,
    stops: { finished: 1, no_tool_call: 1, max_turns: 1, max_tokens: 1, context_length: 1 },
  });
  const answered = chat.calls.filter(({ task, body }) => task < 2 && body.messages.length > 1);
  expect(answered.find(({ task }) => task === 0)!.body.messages.slice(1)).toMatchObject([
    { role: 'assistant', tool_calls: [{ function: { arguments: '{}' } }] },
    { role: 'tool', content: expect.stringMatching(/^Error: The arguments of answer are invalid: /) },
  ]);
  const texts = answered.flatMap(({ body }) => body.messages).flatMap(({ role, content }) => (role === 'tool' ? [String(content)] : []));
  expect(texts.filter((one) => one.startsWith('Error: ')).length).toBe(4);
  const rollouts = await rolloutsOf(server, 'sums-refused');
  expect(rollouts.map(({ task_index, reward }) => [task_index, reward]).toSorted(([a], [b]) => a! - b!)).toEqual(
    [0, 1, 2, 3, 4].map((task) => [task, task === 0 ? 1 : 0]),
  );
});

test('faults of the model are repeated, and cost no episode', async () => {
  chat.use((call) => {
    if (call.visit > 1) return solve(call);
    if (call.task === 0) return refuse(429, {}, { 'retry-after': '1' });
    if (call.task === 1) return refuse(500, 'oops');
    if (call.task === 2) return (response) => response.destroy();
    if (call.task === 3)
      return (response) => void response.writeHead(200, { 'content-length': '1000' }).write('{"choices"', () => response.destroy());
    if (call.task === 4) return () => {};
    if (call.task === 5) return refuse(200, 'this is no JSON');
    return refuse(200, 'x'.repeat(5_000_000));
  });
  const ended = await evaluate('sums-faults', '-n', '0..6', '--timeout', '5');
  expect(ended.code).toBe(0);
  expect(JSON.parse(ended.stdout)).toMatchObject({ episodes: 7, scored: 7, reward_mean: { value: 1 }, failures: { infrastructure: 0 } });
  expect((await rolloutsOf(server, 'sums-faults')).map(({ stop }) => stop)).toEqual(Array.from({ length: 7 }, () => 'finished'));
});

test('a model that fails for good leaves an episode without a score, and a broken environment, too', async () => {
  chat.use((call) => (call.task === 1 ? refuse(422, `bad \u001b[31m${MODEL_KEY}`) : solve(call)));
  const first = await evaluate('sums-broken', '--split', 'train', '-n', '0,1,100', '--fail-if', 'failed>0.5');
  expect(first.code).toBe(5);
  expect(first.stderr).toContain('task 1, sample 0: infrastructure failure: The model: status 422: bad  [31m[API key]');
  expect(first.stderr).not.toContain('\u001b');
  expect(JSON.parse(first.stdout)).toMatchObject({
    episodes: 3,
    scored: 1,
    reward_mean: { value: 1, low: null },
    failures: { infrastructure: 1, environment: 1 },
    stops: { finished: 1, infra_error: 1, env_error: 1 },
  });
  const stored = await rolloutsOf(server, 'sums-broken');
  expect(stored.map(({ task_index, reward }) => [task_index, reward]).toSorted((a, b) => a[0]! - b[0]!)).toEqual([
    [0, 1],
    [1, null],
    [100, null],
  ]);
  // What the infrastructure broke is played again, and nothing else.
  chat.use(solve);
  const again = await evaluate('sums-broken', '--split', 'train', '-n', '0,1,100', '--resume');
  expect(again.code).toBe(1);
  expect(JSON.parse(again.stdout)).toMatchObject({ scored: 2, failures: { infrastructure: 0, environment: 1 }, tokens: { prompt: 300 } });
  expect(chat.calls.map(({ task }) => task)).toEqual([1]);
  expect((await rolloutsOf(server, 'sums-broken')).length).toBe(3);
});

test('a wrong key of the model ends the evaluation at once', async () => {
  chat.use(() => refuse(401, { error: { message: `Incorrect API key ${MODEL_KEY}` } }));
  const ended = await evaluate('sums-key', '-n', '8', '-k', '4', '--concurrency', '2');
  expect(ended).toMatchObject({ code: 1, stdout: '' });
  expect(ended.stderr).toContain('status 401');
  expect(ended.stderr).not.toContain(MODEL_KEY);
  expect(chat.calls.length).toBeLessThanOrEqual(2);
});

test('after kill -9 the evaluation continues, and no episode is lost or doubled', async () => {
  let answered = 0;
  // Holds every reply after the ninth, so that the command ends in the middle.
  chat.use((call) => ((answered += 1) > 9 ? () => {} : solve(call)));
  const args = [
    'eval',
    environment,
    '--model',
    'm',
    '--base-url',
    chat.url,
    '--run',
    'sums-killed',
    '-n',
    '10',
    '-k',
    '2',
    '--concurrency',
    '4',
  ];
  const { child, ended } = startPalestraCommand(server, ...args);
  await vi.waitFor(async () => expect((await get(server, '/v1/runs/sums-killed')).num_rollouts).toBe(9), {
    timeout: 90_000,
    interval: 200,
  });
  await vi.waitFor(() => expect(chat.calls.length).toBe(13), { timeout: 90_000 });
  child.kill('SIGKILL');
  await ended;
  const before = await rolloutsOf(server, 'sums-killed');
  chat.use(solve);
  const resumed = await palestra(server, ...args, '--resume', '-o', 'json');
  expect(resumed.code).toBe(0);
  expect(JSON.parse(resumed.stdout)).toMatchObject({ episodes: 20, scored: 20, tokens: { prompt: 2_000, output: 200 } });
  expect(chat.calls.length).toBe(11);
  const after = await rolloutsOf(server, 'sums-killed');
  expect(after.length).toBe(20);
  expect(new Set(after.map(({ task_index, sample }) => `${task_index}/${sample}`)).size).toBe(20);
  expect(after.map(({ id }) => id)).toEqual(expect.arrayContaining(before.map(({ id }) => id)));
});

test('Ctrl-C closes the sessions and says how to continue', async () => {
  const openSessions = async (): Promise<string[]> => {
    const { sessions } = await get(server, `/v1/sessions?environment=${encodeURIComponent(environment)}&state=live`);
    return sessions.map(({ sid }: { sid: string }) => sid);
  };
  const before = await openSessions();
  chat.use((call) => (call.task === 0 ? solve(call) : () => {}));
  const args = ['eval', environment, '--model', 'm', '--base-url', chat.url, '--run', 'sums-stopped', '-n', '0..2', '--concurrency', '3'];
  const { child, ended } = startPalestraCommand(server, ...args);
  await vi.waitFor(async () => expect((await get(server, '/v1/runs/sums-stopped')).num_rollouts).toBe(1), {
    timeout: 90_000,
    interval: 200,
  });
  await vi.waitFor(() => expect(chat.calls.length).toBe(3), { timeout: 90_000 });
  expect((await openSessions()).length).toBe(before.length + 2);
  child.kill('SIGINT');
  const { code, stderr } = await ended;
  expect(code).toBe(130);
  expect(stderr).toContain('1 of 3 episodes are stored in the run sums-stopped. To continue:\n  palestra eval ');
  expect(stderr).toContain('--run sums-stopped -n 0..2 --concurrency 3 --resume\n');
  // The others were left by the command that was killed.
  await vi.waitFor(async () => expect(await openSessions()).toEqual(before), { timeout: 60_000 });
});

test('after its key was revoked an evaluation says how to continue, and continues with another key', async () => {
  const create = { method: 'POST', headers: { 'x-api-key': server.apiKey, 'content-type': 'application/json' } };
  const body = JSON.stringify({ name: 'eval', scopes: ['sessions', 'environments', 'rollouts'] });
  const { id, key } = (await (await fetch(`${server.url}/v1/keys`, { ...create, body })).json()) as { id: string; key: string };
  let replies = 0;
  chat.use(async (call) => {
    replies += 1;
    if (replies === 5) await fetch(`${server.url}/v1/keys/${id}`, { method: 'DELETE', headers: { 'x-api-key': server.apiKey } });
    return solve(call);
  });
  const args = ['eval', environment, '--model', 'm', '--base-url', chat.url, '--run', 'sums-revoked', '-n', '8', '--concurrency', '1'];
  const revoked = await palestra({ ...server, apiKey: key }, ...args);
  expect(revoked).toMatchObject({ code: 4, stdout: '' });
  expect(revoked.stderr).toContain('4 of 8 episodes are stored in the run sums-revoked. To continue:');
  const resumed = await palestra(server, ...args, '--resume', '-o', 'json');
  expect(JSON.parse(resumed.stdout)).toMatchObject({ episodes: 8, scored: 8, reward_mean: { value: 1 } });
  expect((await rolloutsOf(server, 'sums-revoked')).length).toBe(8);
});

test.each(['expert', 'solve'])('the player %s of a module is that of its environment', async (player) => {
  const module = path.join(import.meta.dirname, 'sums.fixture.ts');
  const ended = await palestra(server, 'eval', environment, '--player', player, '--module', module, '-n', '3', '-o', 'json');
  expect(ended.code, ended.stderr).toBe(0);
  const { policy, run, reward_mean: mean } = JSON.parse(ended.stdout);
  expect([policy, mean.value]).toEqual([`scripted-${player}`, 1]);
  expect(run).toMatch(new RegExp(`^eval-sums-scripted-${player}-\\d{8}-\\d{6}$`));
});

test('thresholds, and a comparison with an earlier run', async () => {
  chat.use(solve);
  expect((await evaluate('sums-good', '-n', '0,4,8,12,16,19')).code).toBe(0);
  chat.use(({ task }) => callTools(['answer', `{"sum": ${task < 10 ? task + 1 : 0}}`]));
  const worse = await evaluate(
    'sums-worse',
    '-n',
    '0,4,8,12,16,19',
    '--compare',
    'sums-good',
    '--fail-if',
    'reward_mean<0.6',
    '--fail-if',
    'pass_at_1<0.1',
  );
  expect(worse.code).toBe(5);
  const { conditions, comparison } = JSON.parse(worse.stdout);
  expect(conditions).toEqual([
    { condition: 'reward_mean<0.6', value: 0.5, met: true },
    { condition: 'pass_at_1<0.1', value: 0.5, met: false },
  ]);
  expect(comparison.pairs[0].metrics.find((one: any) => one.metric === 'reward_mean')).toMatchObject({
    method: 'paired',
    difference: -0.5,
  });
  const table = await palestra(
    server,
    'eval',
    environment,
    '--player',
    'random',
    '-n',
    '4',
    '--run',
    'sums-random',
    '--compare',
    'sums-good',
  );
  expect(table.code).toBe(0);
  expect(table.stdout).toMatch(/^scripted-random on \S+\/sums@1, split test: 4 tasks, 1 episode of each\n/);
  expect(table.stdout).toContain(`run sums-random: ${server.url}/${server.namespace}/runs/sums-random\n`);
  expect(table.stdout).toMatch(/B - A +reward_mean/);
});

test.each([
  [[], 'Pass either --model or --player.'],
  [['--model', 'm', '--player', 'random'], 'Pass either --model or --player.'],
  [['--model', 'm'], 'Pass --base-url'],
  [['--model', 'm', '--base-url', 'http://user:secret@127.0.0.1:1/v1'], 'without credentials'],
  [['--model', 'm', '--base-url', 'localhost:1/v1'], 'Expected an http(s) URL'],
  [['--player', 'random', '--split', 'tset'], 'Available: train, test.'],
  [
    ['--model', 'm', '--base-url', 'http://127.0.0.1:1/v1', '--api-key-env', 'NOT_SET_ANYWHERE'],
    'NOT_SET_ANYWHERE of --api-key-env is not set',
  ],
  [['--player', 'expert'], 'No player "expert"'],
  [['--player', 'random', '--resume'], 'Pass --run NAME with --resume'],
  [['--player', 'random', '-n', '0,20'], 'has no task 20. It has 20 tasks'],
  [['--player', 'random', '--price-in', '1'], 'Pass both --price-in and --price-out'],
  [['--player', 'random', '--run', 'sums-both'], 'Run "sums-both" exists. Pass --resume'],
  [['--player', 'random', '--run', 'sums-both', '--resume'], 'was played by acme/model-1, not by scripted-random'],
])('the wrong usage %j is refused', async (args, message) => {
  const refused = await palestra(server, 'eval', environment, ...args);
  expect(refused).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining(message) });
  expect(refused.stderr).not.toContain('secret');
});

test('an earlier run that does not exist is refused before anything is played', async () => {
  const refused = await palestra(server, 'eval', environment, '--player', 'random', '--compare', 'no-such-run', '--run', 'sums-alone');
  expect(refused).toMatchObject({ code: 1, stdout: '' });
  expect((await get(server, '/v1/runs/sums-alone')).code).toBe('run_not_found');
});
