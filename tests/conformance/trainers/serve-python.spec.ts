import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { addRemote, type SharedPalestra, sharedPalestra } from '../../support/palestra.ts';
import { CLI, type Foreground, foreground } from '../support/foreground.ts';
import { run } from '../support/python.ts';
import { assertNoSession, drive, pythonOf } from './contract.ts';

/** `palestra serve-python`: environments of real libraries, played through the service by the official client. */

interface Episode {
  split: string;
  index: number;
  calls?: [tool: string, input: object][];
  /** Tool, argument and form of a guess, with N for the number. */
  bisect?: [tool: string, argument: string, form: string];
  /** A last message without a call. */
  last?: string;
}

interface Played {
  prompt: string;
  tools: string[];
  terminal: string | null;
  spec: Record<string, unknown>;
  outputs: [text: string, reward: number | null, finished: boolean][];
  failure: string | null;
}

const source = path.resolve(import.meta.dirname, '../../../integrations/python/src');
const libraries = path.join(import.meta.dirname, 'libraries');
const folder = mkdtempSync(path.join(tmpdir(), 'palestra-serve-'));
const variables = { PYTHONPATH: `${source}:${libraries}`, PYTHONDONTWRITEBYTECODE: '1' };
let palestra: SharedPalestra;
let running: Foreground[] = [];

beforeAll(async () => {
  palestra = await sharedPalestra();
});
afterEach(async () => {
  await Promise.all(running.map((one) => one.end()));
  running = [];
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Serves a specification and returns its address. */
async function listen(python: string, spec: string, ...options: string[]): Promise<string> {
  const args = ['serve-python', spec, '--workers', '2', '--port', '0', '--python', pythonOf(python), ...options];
  const served = foreground(args, { cwd: folder, env: variables });
  running.push(served);
  return (await served.said(/http:\/\/\S+/))[0];
}

/** Serves a specification and registers it. */
const serve = async (name: string, python: string, spec: string, ...options: string[]): Promise<string> =>
  addRemote(palestra, name, await listen(python, spec, ...options));

const play = (environment: string, ...episodes: Episode[]): Promise<Played[]> =>
  drive<Played[]>(palestra, {
    python: 'v167',
    program: 'serve_python.py',
    args: [JSON.stringify({ environment, episodes })],
    run: 'serve-python',
    env: { OPENREWARD_API_URL: palestra.url, OPENREWARD_SESSION_URL: palestra.url },
  });

const rewards = (played: Played[]) => played.map(({ outputs }) => outputs.map(([, reward]) => reward));

test('reasoning-gym: answers are scored by the dataset, splits differ, and a seed gives the same task', async () => {
  const oracle = await run(pythonOf('serve'), [
    '-c',
    `import json, reasoning_gym
print(json.dumps([reasoning_gym.create_dataset("leg_counting", size=50, seed=seed)[3]["answer"] for seed in (0, 2000000)]))`,
  ]);
  const [train, held] = JSON.parse(oracle.stdout) as [string, string];
  const environment = await serve('leg-counting', 'serve', 'reasoning-gym:leg_counting', '--split-size', '50');
  const at = (split: string, ...calls: Episode['calls'] & object): Episode => ({ split, index: 3, calls });
  const played = await play(
    environment,
    at('train', ['submit', { answer: train }], ['submit', { answer: train }]),
    at('train', ['submit', { answer: 'none' }]),
    at('train', ['submit', {}], ['submit', { answer: `Let me count.\n<answer>${train}</answer>` }]),
    { split: 'test', index: 3, last: held },
  );
  expect(rewards(played)).toEqual([[1, null], [0], [null, 1], [1]]);
  expect(played[0]!.outputs.map(([text, , finished]) => [finished, text])).toEqual([
    [true, 'The answer was submitted.'],
    [false, expect.stringContaining('episode has finished')],
  ]);
  expect(new Set(played.slice(0, 3).map(({ prompt }) => prompt)).size).toBe(1);
  expect(played[3]!.prompt).not.toBe(played[0]!.prompt);
  expect(played[0]).toMatchObject({ tools: ['submit'], terminal: 'submit', spec: { seed: 3, split: 'train' } });
  expect(played[3]!.spec).toMatchObject({ seed: 2_000_003, split: 'test', index: 3 });
  await assertNoSession(palestra);
});

test('reasoning-gym: an answer that the dataset cannot read is wrong, and no failure of the environment', async () => {
  const environment = await serve('factors', 'serve', 'reasoning-gym:prime_factorization', '--split-size', '5');
  const played = await play(environment, { split: 'train', index: 0, calls: [['submit', { answer: '2*433' }]] });
  expect([rewards(played), played[0]!.failure]).toEqual([[[0]], null]);
  await assertNoSession(palestra);
});

test('textarena: a game with turns, whose episodes do not disturb each other', async () => {
  const environment = await serve('guess-number', 'serve', 'textarena:GuessTheNumber-v0', '--split-size', '20');
  const guess: Episode['bisect'] = ['act', 'action', '[N]'];
  const same = Array.from({ length: 4 }, () => ({ split: 'train', index: 5, bisect: guess }));
  const played = await play(environment, ...same, ...[6, 7, 8].map((index) => ({ split: 'train', index, bisect: guess })), {
    split: 'test',
    index: 0,
    calls: [
      ['act', { action: '[99]' }],
      ['act', { action: '[99]' }],
    ],
  });
  const outcomes = played.map(({ outputs }) => outputs.at(-1)!);
  expect(outcomes.slice(0, 7).map(([, reward, finished]) => [reward, finished])).toEqual(Array(7).fill([1, true]));
  // The same seed is the same game, whatever ran beside it.
  expect(new Set(played.slice(0, 4).map(({ outputs }) => JSON.stringify(outputs))).size).toBe(1);
  expect(new Set(played.map(({ outputs }) => JSON.stringify(outputs))).size).toBeGreaterThan(2);
  expect(outcomes[7]!.slice(1)).toEqual([0, true]);
});

test('textarena: a game of two seats is played by one policy in turn, and scored for its seat', async () => {
  const environment = await serve('tic-tac-toe', 'serve', 'textarena:TicTacToe-v0', '--split-size', '5');
  const move = (cell: number): [string, object] => ['act', { action: `[${cell}]` }];
  const [won, lost] = await play(
    environment,
    { split: 'train', index: 0, calls: [0, 3, 1, 4, 2].map(move) },
    { split: 'train', index: 0, calls: [0, 3, 1, 4, 8, 5].map(move) },
  );
  expect(won!.prompt).toMatch(/player 0 in this turn/);
  expect(won!.outputs.map(([text]) => /player (\d) in this turn/.exec(text)?.[1])).toEqual(['1', '0', '1', '0', undefined]);
  expect([won, lost].map((one) => one!.outputs.at(-1)!.slice(1))).toEqual([
    [1, true],
    [-1, true],
  ]);
});

test('skyrl-gym: rows of files are the tasks, and the step of the environment scores them', async () => {
  const row = (question: string, truth: string) =>
    JSON.stringify({
      prompt: [{ role: 'user', content: question }],
      env_class: 'gsm8k',
      reward_spec: { method: 'rule', ground_truth: truth },
    });
  writeFileSync(path.join(folder, 'train.jsonl'), `${row('2 + 2?', '4')}\n${row('3 + 4?', '7')}\n`);
  writeFileSync(path.join(folder, 'test.jsonl'), `${row('5 + 4?', '9')}\n`);
  const environment = await serve('gsm8k', 'serve', 'skyrl-gym:gsm8k', '--data', 'train=train.jsonl', '--data', 'test=test.jsonl');
  const played = await play(
    environment,
    { split: 'train', index: 1, calls: [['step', { action: '#### 7' }]] },
    { split: 'train', index: 1, calls: [['step', { action: '#### 8' }]] },
    { split: 'test', index: 0, last: 'It is #### 9' },
  );
  expect(rewards(played)).toEqual([[1], [0], [1]]);
  expect(played.map(({ prompt }) => prompt)).toEqual(['3 + 4?', '3 + 4?', '5 + 4?']);
  expect(JSON.stringify(played.map(({ spec }) => spec))).not.toContain('ground_truth');
});

test('gem: a game with a reward of each step', async () => {
  const environment = await serve('gem-guess', 'serve-gem', 'gem:game:GuessTheNumber-v0-easy', '--split-size', '20');
  const right: Episode = { split: 'train', index: 2, bisect: ['act', 'action', '\\boxed{N}'] };
  const wrong: Episode = { split: 'test', index: 2, calls: [['act', { action: 'no guess' }]] };
  const played = await play(environment, right, right, wrong);
  expect(played.map(({ outputs }) => outputs.at(-1)!.slice(1))).toEqual([
    [1, true],
    [1, true],
    [expect.any(Number), true],
  ]);
  expect(played[2]!.outputs[0]![1]).toBeLessThan(0);
  expect(played[0]!.outputs).toEqual(played[1]!.outputs);
});

test.each([
  ['verifiers', 'serve-verifiers', 'verifiers:quiz_taskset', 'train', 'atlas_capital'],
  ['inspect', 'serve-inspect', `inspect:${path.join(libraries, 'quiz_task.py')}@quiz`, 'test', 'capital'],
])('%s: the tools of a task are called, and its rewards score the answer', async (name, python, spec, split, tool) => {
  const environment = await serve(`quiz-${name}`, python, spec);
  const played = await play(
    environment,
    {
      split,
      index: 0,
      calls: [
        [tool, { country: 'France' }],
        ['submit', { answer: 'Paris' }],
      ],
    },
    { split, index: 1, calls: [['submit', { answer: 'Paris' }]] },
    { split, index: 2, last: 'Lima' },
  );
  expect(played[0]!.tools).toEqual([tool, 'submit'].toSorted());
  expect(played[0]!.outputs[0]).toEqual([expect.stringContaining('Paris'), null, false]);
  expect(played.map(({ outputs }) => outputs.at(-1)!.slice(1))).toEqual([
    [1, true],
    [0, true],
    [1, true],
  ]);
  expect(played[2]!.prompt).toContain('What is the capital of Peru?');
});

describe('verifiers-legacy', () => {
  const of = (kind: string) => ['verifiers-legacy:quiz_legacy', '--set', `kind=${kind}`];
  const submit = (answer: string): [string, object] => ['submit', { answer }];

  test('tools are called by the environment, and its rubric scores the answer', async () => {
    const [spec, ...options] = of('tools');
    const url = await listen('serve-verifiers-legacy', spec!, ...options);
    const played = await play(
      await addRemote(palestra, 'quiz-legacy', url),
      { split: 'train', index: 0, calls: [['capital', { country: 'France' }], ['capital', { country: 'Atlantis' }], submit('Paris')] },
      { split: 'train', index: 1, calls: [submit(' '), submit('Paris')] },
      { split: 'test', index: 0, last: 'Lima' },
      { split: 'train', index: 0, calls: Array(4).fill(['capital', { country: 'Spain' }]) },
    );
    expect(played[0]).toMatchObject({ tools: ['capital', 'submit'], terminal: 'submit', spec: { id: 0, split: 'train' } });
    expect(played[0]!.outputs.map(([text]) => text)).toEqual(['Paris', "'Atlantis'", 'The episode has ended.']);
    expect(rewards(played)).toEqual([[null, null, 1.5], [null, 0.5], [1.5], [null, null, null, 0.5]]);
    expect(played.map(({ outputs }) => outputs.at(-1)![2])).toEqual([true, true, true, true]);
    expect(played[1]!.outputs[0]![0]).toContain('the text is empty');
    expect(played[2]!.prompt).toContain('What is the capital of Peru?');
    expect(JSON.stringify(played.map(({ spec: facts }) => facts))).not.toContain('Paris');

    const headers = { 'x-session-id': 'one', 'content-type': 'application/json' };
    const post = async (route: string, body: object) =>
      (await fetch(url + route, { method: 'POST', headers, body: JSON.stringify(body) })).text();
    await post('/create', { split: 'train', index: 0 });
    expect(await post('/call', { name: 'submit', input: { answer: 'Paris' } })).toContain(
      '"rewards":{"exact":1.0,"short":1.0},"metrics":{"num_turns":1.0,"total_tool_calls":0.0,"capital_calls":0.0}',
    );
  });

  test('turns are answered by the environment, and what it or its rubric raises is a failure and no reward', async () => {
    const [spec, ...options] = of('countdown');
    const act = (...messages: string[]): Episode => ({ split: 'train', index: 0, calls: messages.map((message) => ['act', { message }]) });
    const environment = await serve('countdown', 'serve-verifiers-legacy', spec!, ...options, '--workers', '1');
    const played = await play(environment, act('3', '0'), act('5', '4', '3', '2', '1'), act('3', 'raise'), act('wrong', '0'));
    const [landed, late, raised, unscored] = played;
    expect(landed!.outputs).toEqual([
      ['I heard 3.', null, false],
      ['Lift off.', 1, true],
    ]);
    expect(late!.outputs.at(-1)).toEqual(['The episode has ended.', 0, true]);
    expect(raised).toMatchObject({ failure: expect.stringContaining('the clock has stopped'), outputs: [['I heard 3.', null, false]] });
    expect(unscored).toMatchObject({
      failure: expect.stringContaining('the grader has no data'),
      outputs: [['I heard wrong.', null, false]],
    });
  });

  test('state stays with its episode, groups play each environment, and what needs a model, a sandbox or several rollouts is refused', async () => {
    // One process, because importing the library takes seconds.
    const code = `from palestra.serve.libraries import load_library
from palestra.serve.library import Options, UsageError
from palestra.serve.worker import Worker
load = lambda kind: load_library("verifiers-legacy", Options("quiz_legacy", settings={"kind": kind}))
ledger = Worker(load("ledger"))
for sid in "ab":
    ledger.open(sid, "train", 0)
for sid, text in ("a", "one"), ("b", "two"), ("a", "tear"), ("a", "three"):
    print(ledger.call(sid, "note", {"text": text})["blocks"][0]["text"])
print(ledger.call("a", "submit", {"answer": "done"})["reward"])
group = Worker(load("group"))
for index in 0, 4:
    print([tool["name"] for tool in group.open("g", "train", index)["tools"]], group.call("g", "submit", {"answer": "Madrid"})["reward"])
for kind in ("judged", "sandbox", "relative", "unscored"):
    try:
        load(kind)
    except UsageError as error:
        print(error)`;
    const { stdout } = await run(pythonOf('serve-verifiers-legacy'), ['-c', code], { env: variables });
    expect(stdout.trim().split('\n')).toEqual([
      '1 notes',
      '1 notes',
      'the page is torn',
      '2 notes',
      '2.0',
      "['submit'] 0.5",
      "['submit', 'capital'] 1.5",
      'quiz_legacy is scored by a model (JudgeRubric), which this server does not ask.',
      'quiz_legacy runs in a sandbox, which this server does not start.',
      'quiz_legacy has rewards of a group of rollouts. Sessions are scored one by one.',
      'The rubric of quiz_legacy has no reward function.',
    ]);
  });
});

test('an episode has its own random numbers, whatever else runs in its process', async () => {
  writeFileSync(path.join(folder, 'dice.jsonl'), '{"prompt":"Throw"}\n{"prompt":"Throw"}\n');
  const environment = await serve('dice', 'serve', 'skyrl-gym:rude_env:RudeEnv', '--data', 'train=dice.jsonl', '--workers', '1');
  const thrown = (index: number): Episode => ({ split: 'train', index, calls: Array(4).fill(['step', { action: 'dice' }]) });
  const [first, second, other] = rewards(await play(environment, thrown(0), thrown(0), thrown(1)));
  expect(first).toEqual(second);
  expect(new Set(first).size).toBe(4);
  expect(other).not.toEqual(first);
});

describe('a library that fails', () => {
  test('is a failure of the environment and no reward; other sessions go on', async () => {
    writeFileSync(path.join(folder, 'rude.jsonl'), '{"prompt":"Go"}\n');
    const environment = await serve('rude', 'serve', 'skyrl-gym:rude_env:RudeEnv', '--data', 'train=rude.jsonl', '--deadline', '5');
    const act = (...actions: string[]): Episode => ({ split: 'train', index: 0, calls: actions.map((action) => ['step', { action }]) });
    const raised = await play(environment, act('raise'), act('nan'), act('go', 'done'));
    expect(raised.map(({ failure }) => failure)).toEqual([
      expect.stringContaining('the library raised'),
      expect.stringContaining('not a finite number'),
      null,
    ]);
    expect(rewards(raised)).toEqual([[], [], [0.5, 0.5]]);
    for (const [action, reason] of [
      ['hang', 'within 5 s'],
      ['exit', 'ended with status 3'],
    ] as const) {
      const [lost] = await play(environment, act(action));
      expect(lost).toMatchObject({ failure: expect.stringContaining(reason), outputs: [] });
      expect(rewards(await play(environment, act('done')))).toEqual([[0.5]]);
    }
    await assertNoSession(palestra);
  });

  test.each([
    ['is not known', 'serve', 'gymnasium:CartPole-v1', /one of the libraries reasoning-gym/],
    ['has no such environment', 'serve', 'reasoning-gym:leg_countin', /Did you mean leg_counting/],
    ['is not installed', 'v167', 'textarena:GuessTheNumber-v0', /pip install textarena/],
  ])('says what to do when it %s', async (_, python, spec, said) => {
    const refused = await run(process.execPath, [CLI, 'serve-python', spec, '--python', pythonOf(python)], { cwd: folder, env: variables });
    expect(refused.code).not.toBe(0);
    expect(refused.output).toMatch(said);
  });

  test('names the pip command when the Python has no server', async () => {
    const args = [CLI, 'serve-python', 'reasoning-gym:leg_counting', '--python', pythonOf('serve')];
    const refused = await run(process.execPath, args, { cwd: folder, env: { PYTHONPATH: '' } });
    expect(refused.output).toMatch(/pip install "\/\S+\/integrations\/python\[reasoning-gym\]"/);
  });
});

test('the server bounds its sessions, refuses what it does not know, and gives a result again by its id', async () => {
  writeFileSync(path.join(folder, 'one.jsonl'), '{"prompt":"Go"}\n');
  const url = await listen('serve', 'skyrl-gym:rude_env:RudeEnv', '--data', 'train=one.jsonl', '--max-sessions', '2', '--workers', '1');
  const post = async (route: string, sid: string, body: object | string = {}) => {
    const headers = { 'x-session-id': sid, 'content-type': 'application/json' };
    const answer = await fetch(url + route, { method: 'POST', headers, body: typeof body === 'string' ? body : JSON.stringify(body) });
    return { status: answer.status, retry: answer.headers.get('retry-after'), text: await answer.text() };
  };
  const task = { split: 'train', index: -1 };
  expect([(await post('/create', 'a', task)).status, (await post('/create', 'b', { task_spec: { ...task, index: 0 } })).status]).toEqual([
    200, 200,
  ]);
  expect(await post('/create', 'c', task)).toMatchObject({ status: 429, retry: '2', text: expect.stringContaining('2 sessions are open') });
  const refusals: [string, object | string, number, string][] = [
    ['/create', { split: 'nowhere', index: 0 }, 400, 'Invalid split'],
    ['/create', { split: 'train', index: 1 }, 400, 'Invalid index'],
    ['/create', {}, 422, 'Provide either task_spec'],
    ['/create', '{', 422, 'json_invalid'],
    ['/create', { ...task, toolset_name: 'x' }, 400, 'toolset'],
    ['/other/call', {}, 404, 'unknown environment'],
    ['/ping', {}, 404, 'Active environment not found'],
  ];
  for (const [route, body, status, said] of refusals)
    expect(await post(route, 'd', body)).toMatchObject({ status, text: expect.stringContaining(said) });
  expect(await post('/create', 'a', task)).toMatchObject({ status: 400, text: expect.stringContaining('Session already exists') });

  const call = { name: 'step', input: { action: 'dice' } };
  const first = (await post('/call', 'a', call)).text;
  const [, taskId] = /^event: task_id\r\ndata: (\S+)\r\n/.exec(first)!;
  expect((await post('/call', 'a', { ...call, task_id: taskId })).text).toBe(first);
  expect((await post('/call', 'a', { ...call, task_id: 'nobody' })).text).toBe('event: error\r\ndata: unknown task_id\r\n\r\n');
  expect((await post('/call', 'a', { ...call, name: 'jump' })).text).toContain('"reason":"not_found"');
  expect((await post('/delete', 'a')).status).toBe(200);
  await expect.poll(async () => (await post('/create', 'c', task)).status).toBe(200);
});

test('env push serves and registers it with one command', async () => {
  const env = { ...variables, PALESTRA_URL: palestra.url, PALESTRA_API_KEY: palestra.apiKey };
  const name = `${palestra.namespace}/pushed-chain-sum`;
  const args = ['env', 'push', 'reasoning-gym:chain_sum', '--name', name, '--split-size', '10', '--python', pythonOf('serve')];
  const detached = await run(process.execPath, [CLI, ...args, '--detach', '-o', 'json'], { cwd: folder, env });
  expect(detached.code, detached.output).toBe(0);
  const { pid, kind } = JSON.parse(detached.stdout) as { pid: number; kind: string };
  try {
    expect(kind).toBe('remote');
    const [played] = await play(name, { split: 'validation', index: 9, calls: [['submit', { answer: 'x' }]] });
    expect(played!.outputs).toEqual([['The answer was submitted.', 0, true]]);
  } finally {
    process.kill(pid);
  }
});
