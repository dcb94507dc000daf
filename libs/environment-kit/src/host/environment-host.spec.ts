import type { Clock } from '@palestra/kit';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineEnvironment, tool } from '../definition.ts';
import { EnvironmentHost } from './environment-host.ts';
import { indexed, journal, sample, type SampleTask } from './sample.fixture.ts';

let host: EnvironmentHost;
beforeEach(() => {
  host = new EnvironmentHost([sample, indexed]);
  journal.length = 0;
});
afterEach(() => host.close());

const open = (sid: string, spec: SampleTask = { q: 'one' }) =>
  host.create({ sid, env: null, task: { kind: 'spec', spec }, toolsetName: null, secrets: { KEY: 'v' } });
const call = async (sid: string, name: string, input: Record<string, unknown> = {}) =>
  JSON.parse((await host.call(sid, name, input)).text) as unknown;

describe('tasks', () => {
  test('unknown environments, splits, indexes and unsupported lists are refused', async () => {
    expect(() => host.tools('nope')).toThrow(expect.objectContaining({ code: 'unknown_variant', message: "unknown environment 'nope'" }));
    await expect(host.tasks(null, 'nope')).rejects.toMatchObject({ code: 'invalid_split', status: 400 });
    await expect(host.task(null, 'train', 3)).rejects.toMatchObject({ code: 'invalid_index' });
    await expect(host.task('indexed', 'train', -1)).rejects.toMatchObject({ code: 'invalid_index' });
    await expect(host.tasks('indexed', 'train')).rejects.toMatchObject({ code: 'tasks_not_listable' });
  });
  test.each([
    [null, null, [0, 1000]],
    [-3, null, [997, 1000]],
    [998, 5000, [998, 1000]],
    [5, 5, [0, 0]],
    [0, -998, [0, 2]],
    [-5000, 1, [0, 1]],
  ] as const)('range %s to %s', async (start, stop, [from, to]) => {
    const tasks = await host.taskRange('INDEXED', 'train', start, stop);
    expect(tasks.map((task) => (task as { id: number }).id)).toEqual(Array.from({ length: to - from }, (_, index) => from + index));
  });
  test('splits have types, and negative indexes count from the end', async () => {
    expect(host.splits(null)).toEqual([
      { name: 'train', type: 'train' },
      { name: 'hard', type: 'validation' },
      { name: 'odd', type: 'validation' },
    ]);
    expect(await host.task('sample', 'odd', -1)).toEqual({ q: 'three' });
    expect(host.environments()).toEqual(['sample', 'indexed']);
  });
});

test('replaced environments are for new sessions; open ones keep theirs', async () => {
  const named = (word: string) =>
    defineEnvironment({
      name: 'word',
      splits: ['train'],
      tasks: () => [1],
      prompt: () => word,
      tools: { t: tool({ description: 'T.', run: () => word }) },
    });
  const changing = new EnvironmentHost([named('old')]);
  const begin = (sid: string) => changing.create({ sid, env: null, task: { kind: 'spec', spec: 1 }, toolsetName: null, secrets: {} });
  await begin('before');
  changing.replace([named('new')]);
  await begin('after');
  expect(await Promise.all(['before', 'after'].map((sid) => changing.prompt(sid)))).toMatchObject([[{ text: 'old' }], [{ text: 'new' }]]);
  expect((await changing.call('before', 't', {})).text).toContain('"old"');
  expect(() => changing.replace([])).toThrow('no environment to host');
  expect((await changing.call('after', 't', {})).text).toContain('"new"');
  await changing.close();
});

describe('invalid values of code without type checks', () => {
  const returning = async (value: unknown) => {
    const t = tool({ description: 'T.', run: () => value as string });
    const odd = new EnvironmentHost([
      defineEnvironment({ name: 'odd', splits: ['train'], tasks: () => [1], prompt: () => value as string, tools: { t } }),
    ]);
    await odd.create({ sid: 'o', env: null, task: { kind: 'spec', spec: {} }, toolsetName: null, secrets: {} });
    return odd;
  };

  test.each([
    [undefined, 'a tool must return a text, blocks, or { content, reward, finished, metadata }, not undefined'],
    [7, 'a tool must return a text, blocks, or { content, reward, finished, metadata }, not 7'],
    [{ content: 7 }, 'content must be a text, or blocks of text or image, not 7'],
    [{ content: null }, 'content must be a text, or blocks of text or image, not null'],
    [[{ type: 'text' }], 'content must be a text, or blocks of text or image, not an object with type'],
    [['text'], 'content must be a text, or blocks of text or image, not text'],
    [{ content: 'x', reward: '1' }, 'a reward must be a finite number, not 1'],
    [{ content: 'x', finished: 1 }, 'finished must be true or false, not 1'],
    [{ content: 'x', metadata: ['k'] }, 'metadata must be an object, not a list'],
  ])('%j is a failure of the tool with a message', async (value, message) => {
    const odd = await returning(value);
    await expect((async () => odd.call('o', 't', {}))()).rejects.toMatchObject({ name: 'ToolRaisedError', message });
    await odd.close();
  });

  test.each([
    ['just a text', 'just a text'],
    [undefined, 'undefined'],
    [{ code: 5 }, '{ code: 5 }'],
    [Object.create(null), '[Object: null prototype] {}'],
    [new TypeError(), 'TypeError'],
  ])('the thrown value %o is a failure of the tool with a text', async (thrown, message) => {
    const t = tool({ description: 'T.', run: () => Promise.reject(thrown as Error) });
    const odd = new EnvironmentHost([
      defineEnvironment({ name: 'odd', splits: ['train'], tasks: () => [1], prompt: () => 'p', tools: { t } }),
    ]);
    await odd.create({ sid: 'o', env: null, task: { kind: 'spec', spec: {} }, toolsetName: null, secrets: {} });
    await expect((async () => odd.call('o', 't', {}))()).rejects.toMatchObject({ name: 'ToolRaisedError', message });
    await odd.close();
  });

  test('an undefined prompt is a failure of the environment', async () => {
    const odd = await returning(undefined);
    const detail = 'TypeError: content must be a text, or blocks of text or image, not undefined';
    await expect(odd.prompt('o')).rejects.toMatchObject({ code: 'environment_failed', message: detail });
    await odd.close();
  });
});

describe('sessions', () => {
  test('unknown, ended and existing session ids are refused', async () => {
    await expect(host.prompt('never')).rejects.toMatchObject({ code: 'session_not_found', status: 404 });
    await open('a');
    await expect(open('a')).rejects.toMatchObject({ code: 'session_exists', status: 400 });
    await host.delete('a');
    await host.delete('a');
    expect(() => host.ping('a')).toThrow(expect.objectContaining({ code: 'session_deleted', status: 410 }));
    expect(journal).toEqual(['a torn down']);
  });
  test('one of two concurrent creates fails, and a failed create releases the session id', async () => {
    const both = await Promise.allSettled([open('a'), open('a')]);
    expect(both.map(({ status }) => status)).toEqual(['fulfilled', 'rejected']);
    await expect(open('b', { fail: 'create' })).rejects.toMatchObject({
      code: 'environment_failed',
      message: 'TypeError: create exploded',
    });
    await open('b');
  });
  test('a failed setup fails every later request', async () => {
    await open('a', { fail: 'setup' });
    for (const ask of [() => host.prompt('a'), () => host.call('a', 'count', {}), () => host.taskTools('a')]) {
      await expect(ask()).rejects.toMatchObject({ code: 'setup_failed', status: 500, message: 'TypeError: setup exploded' });
    }
    expect(() => host.ping('a')).not.toThrow();
  });
  test('requests other than tools wait for setup, and are rejected when the session is deleted', async () => {
    await open('a', { setup: 60_000 });
    expect((await host.taskTools('a')).tools).toHaveLength(6);
    const prompt = host.prompt('a');
    const patience = host.ready('a', AbortSignal.timeout(10));
    await expect(patience).rejects.toMatchObject({ name: 'TimeoutError' });
    await host.delete('a');
    await expect(prompt).rejects.toMatchObject({ code: 'session_deleted' });
  });
  test('idle sessions expire unless they are held', async () => {
    let reap = (): void => {};
    let now = 0;
    const clock: Clock = { now: () => now, after: (_, run) => ((reap = run), () => {}), sleep: () => Promise.resolve() };
    const watched = new EnvironmentHost([sample], { clock, idleTimeoutMs: 900_000 });
    for (const sid of ['idle', 'held', 'pinged']) {
      const isHeld = () => sid === 'held';
      await watched.create({ sid, env: null, task: { kind: 'spec', spec: {} }, toolsetName: null, secrets: {}, isHeld });
    }
    now = 900_000;
    watched.ping('pinged');
    now = 900_001;
    reap();
    expect(() => watched.ping('idle')).toThrow('Session deleted');
    for (const sid of ['held', 'pinged']) expect(() => watched.ping(sid)).not.toThrow();
    await watched.close();
  });
  test('prompts and conversations are available in both forms', async () => {
    await open('a');
    expect(await host.messages('a')).toEqual([{ role: 'user', blocks: [{ text: 'one', detail: null, type: 'text' }], detail: null }]);
    await host.create({ sid: 'b', env: 'indexed', task: { kind: 'index', split: 'train', index: 7 }, toolsetName: null, secrets: {} });
    expect((await host.prompt('b')).map((block) => (block as { text: string }).text)).toEqual([
      '[system]',
      'Be brief.',
      '[assistant]',
      '<think>hm</think>',
      '[tool_call look] {"zoom": 2, "tags": ["a", null]}',
      '[user]',
      '[tool_result (error)]',
      '7',
    ]);
  });
});

describe('tools', () => {
  test('mistakes of the policy are results, and failures of a tool are errors', async () => {
    await open('a');
    expect(await call('a', 'nope')).toEqual({ ok: false, error: "'nope' is not a valid tool", reason: 'not_found' });
    expect(await call('a', 'submit', { answer: 1 })).toEqual({
      ok: false,
      error: expect.stringMatching(/^Tool input validation error: \[/) as string,
      reason: 'input_validation',
    });
    await expect(host.call('a', 'boom', {})).rejects.toMatchObject({ name: 'ToolRaisedError', message: 'kaboom' });
    expect(await host.call('a', 'submit', { answer: 'one', unknown: 1 })).toEqual({
      text: '{"ok":true,"output":{"blocks":[{"text":"one","detail":null,"type":"text"}],"metadata":{"k":1},"reward":1.0,"finished":true}}',
      ok: true,
      reason: null,
      reward: 1,
      finished: true,
    });
  });
  test('calls after the end are refused: first for an unknown name, then for the end, then for the arguments', async () => {
    await open('a');
    await call('a', 'submit', { answer: 'x' });
    expect(await call('a', 'nope')).toMatchObject({ reason: 'not_found' });
    expect(await call('a', 'submit', { bad: true })).toEqual({
      ok: false,
      error: "'submit' was not run: the episode has finished (a tool returned finished=True), so no further tool calls are accepted.",
      reason: 'episode_finished',
    });
    expect(await host.prompt('a')).toHaveLength(1);
  });
  test('an episode has one final result when two submits race, and running calls keep their results', async () => {
    await open('a');
    const free = call('a', 'free', { ms: 20 });
    const results = await Promise.all([call('a', 'submit', { answer: 'one' }), call('a', 'submit', { answer: 'one' })]);
    expect(results.map((result) => (result as { ok: boolean }).ok)).toEqual([true, false]);
    expect(await free).toMatchObject({ ok: true });
  });
  test('calls of one serial tool run one after another, other calls run concurrently', async () => {
    await open('a');
    await Promise.all([
      call('a', 'slow', { ms: 10 }),
      call('a', 'slow', { ms: 10 }),
      call('a', 'free', { ms: 40 }),
      call('a', 'free', { ms: 40 }),
    ]);
    const serial = journal.filter((line) => line.includes('serial'));
    expect(serial).toEqual(['a serial starts', 'a serial ends', 'a serial starts', 'a serial ends']);
    const free = journal.filter((line) => line.includes('concurrent'));
    expect(free.slice(0, 2)).toEqual(['a concurrent starts', 'a concurrent starts']);
  });
  test('synchronous tools return without a promise unless another call runs before them', async () => {
    await open('a');
    await host.ready('a');
    const count = host.call('a', 'count', {});
    expect(count).toMatchObject({ ok: true, text: expect.stringContaining('"text":"1"') as string });
    await expect(host.call('a', 'boom', {})).rejects.toThrow('kaboom');
    const free = host.call('a', 'free', { ms: 20 });
    const submitted = host.call('a', 'submit', { answer: 'one' });
    const behind = host.call('a', 'count', {});
    expect([free, submitted, behind].map((answer) => answer instanceof Promise)).toEqual([true, true, true]);
    expect(await free).toMatchObject({ ok: true });
    expect(await submitted).toMatchObject({ ok: true, finished: true });
    expect(await behind).toMatchObject({ ok: false, reason: 'episode_finished' });
  });
  test('tools can validate and return asynchronously, also with thenables', async () => {
    const even = z.object({ n: z.number().refine(async (n) => (await Promise.resolve(n)) % 2 === 0) });
    const patient = defineEnvironment({
      name: 'patient',
      splits: ['train'],
      tasks: () => [{}],
      prompt: () => '',
      tools: {
        halve: tool({
          description: 'Halves',
          input: even,
          // eslint-disable-next-line unicorn/no-thenable -- query libraries return thenables
          run: ({ n }) => ({ then: (resolve: (half: string) => void) => resolve(`${n / 2}`) }) as never,
        }),
      },
    });
    const patientHost = new EnvironmentHost([patient]);
    await patientHost.create({ sid: 'p', env: null, task: { kind: 'spec', spec: {} }, toolsetName: null, secrets: {} });
    for (const n of [4, 6])
      expect(await patientHost.call('p', 'halve', { n })).toMatchObject({
        ok: true,
        text: expect.stringContaining(`"text":"${n / 2}"`) as string,
      });
    expect(await patientHost.call('p', 'halve', { n: 3 })).toMatchObject({ ok: false, reason: 'input_validation' });
    await patientHost.close();
  });
  test('tools are listed by name without unlisted and terminal ones, which can still be called', async () => {
    const { tools, terminal_tool, supports_score_group } = host.tools(null);
    expect(tools.map(({ name }) => name)).toEqual(['boom', 'count', 'free', 'secret', 'slow', 'submit']);
    expect(tools.at(-1)).toEqual({
      name: 'submit',
      description: 'Ends it',
      input_schema: { type: 'object', properties: { answer: { type: 'string' }, tries: { type: 'integer' } }, required: ['answer'] },
    });
    expect(tools[0]!.input_schema).toBeNull();
    expect(terminal_tool).toEqual({ name: 'last', arg: 'text', description: 'Takes the last message' });
    expect(supports_score_group).toBe(true);
    await open('a', { q: 'two' });
    expect((await host.taskTools('a')).tools.at(-1)).toEqual({ name: 'extra', description: 'For this task', input_schema: null });
    for (const [name, text] of [
      ['extra', 'extra'],
      ['hidden', 'psst'],
      ['secret', 'v'],
    ] as const) {
      expect(await call('a', name)).toMatchObject({ output: { blocks: [{ text }] } });
    }
  });
  test('groups are scored, and a wrong number of scores is an error', async () => {
    await open('a');
    const candidate = { messages: [] };
    await expect(host.scoreGroup('a', null, [candidate])).rejects.toThrow('score_group returned 0 scores for 1 candidates');
    expect(await host.scoreGroup('a', null, [candidate, candidate])).toBe(
      '{"scores":[{"reward":0.0,"metadata":null},{"reward":1.0,"metadata":null}]}',
    );
  });
  test.each([NaN, Infinity, null, {}, { reward: 'high' }])('the score %j of a candidate is an error of the environment', async (score) => {
    const wrong = defineEnvironment({
      name: 'wrong',
      splits: ['train'],
      tasks: () => [{}],
      prompt: () => '',
      tools: { t: tool({ description: 't', run: () => '' }) },
      scoreGroup: () => [1, score as never],
    });
    const wrongHost = new EnvironmentHost([wrong]);
    await wrongHost.create({ sid: 'w', env: null, task: { kind: 'spec', spec: {} }, toolsetName: null, secrets: {} });
    const candidates = [{ messages: [] }, { messages: [] }];
    await expect(wrongHost.scoreGroup('w', null, candidates)).rejects.toThrow('the score of candidate 1 must be a finite number, not ');
    await wrongHost.close();
  });
});

describe('definitions', () => {
  const base = { name: 'x', splits: ['train'], tasks: () => [{}], prompt: () => '' };
  test('invalid definitions are refused', () => {
    expect(() => defineEnvironment({ ...base, splits: [], tools: {} })).toThrow('no splits');
    expect(() => defineEnvironment({ ...base, tools: {} })).toThrow('no tools');
    const bad = { a: tool({ description: '', input: z.string(), run: () => '' }) };
    expect(() => new EnvironmentHost([defineEnvironment({ ...base, tools: bad })])).toThrow('must be an object');
    const terminal = tool({ description: '', terminal: true, run: () => '' });
    expect(() => new EnvironmentHost([defineEnvironment({ ...base, tools: { a: terminal, b: terminal } })])).toThrow('two terminal tools');
  });
});

describe('a toolset', () => {
  const choose = (sid: string, toolsetName: string, spec: SampleTask = { q: 'one' }) =>
    host.create({ sid, env: null, task: { kind: 'spec', spec }, toolsetName, secrets: {} });

  test('replaces tools with the same names for its session only', async () => {
    await choose('a', 'shell');
    const { tools } = await host.taskTools('a');
    expect(tools.map(({ name }) => name).slice(-2)).toEqual(['count', 'ls']);
    expect(tools.filter(({ name }) => name === 'count')).toHaveLength(1);
    expect(await call('a', 'count')).toMatchObject({ output: { blocks: [{ text: 'counted by the harness' }] } });
    await open('b');
    expect(await call('b', 'count')).toMatchObject({ output: { blocks: [{ text: '1' }] } });
  });

  test('that is unknown or unusable is refused and releases the session id', async () => {
    await expect(choose('a', 'zzz')).rejects.toMatchObject({
      code: 'unknown_toolset',
      message: "unknown toolset 'zzz'; valid options are ['shell']",
    });
    await expect(choose('a', 'shell', { q: 'two' })).rejects.toMatchObject({
      code: 'unknown_toolset',
      status: 400,
      message: expect.stringContaining('requires a sandbox'),
    });
    expect(journal).toEqual(['a torn down', 'a torn down']);
    await open('a');
  });
});
