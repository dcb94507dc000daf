import { readFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { clientEnv } from './support/client-env.ts';
import { full } from '../support/full.ts';
import { addRemote, type SharedPalestra, sharedPalestra } from '../support/palestra.ts';
import { python, run, runScript, sdist, startUpstream, type Upstream } from './support/python.ts';

/** The unmodified official clients, synchronous and asynchronous, old and new, against every kind of environment. */
interface Tool {
  name: string;
  description: string;
  input_schema: { type: string; required?: string[] } | null;
}
interface Result {
  blocks?: { type: string; text: string }[];
  reward?: number | null;
  finished?: boolean;
  error?: string;
  reason?: string | null;
  text?: string;
}
interface Tour {
  splits: string[];
  num_tasks: number;
  task: Record<string, unknown>;
  environment_name: string;
  range: Record<string, unknown>[];
  tools: Tool[];
  prompt: { type: string; text: string }[];
  session_tools: Tool[];
  results: Result[];
}

const clients = [
  { interpreter: 'v167', mode: 'sync' },
  { interpreter: 'v167', mode: 'async' },
  ...(full
    ? ([
        { interpreter: 'v112', mode: 'sync' },
        { interpreter: 'v112', mode: 'async' },
      ] as const)
    : []),
] as const;

describe('a tour by the official client', () => {
  let palestra: SharedPalestra;
  const upstreams: Upstream[] = [];
  let math: string;

  beforeAll(async () => {
    palestra = await sharedPalestra();
    const [openreward, ors] = await Promise.all([
      startUpstream({ interpreter: 'v112', module: 'recorded_environments', classes: ['MathEnv', 'OtherEnv'] }),
      startUpstream({
        interpreter: 'ors',
        module: 'gsm8k_server',
        classes: ['GSM8K'],
        folders: [path.join(sdist('ors_sdk-0.1.0'), 'examples')],
      }),
    ]);
    upstreams.push(openreward, ors);
    math = await addRemote(palestra, 'math', openreward.url);
    await addRemote(palestra, 'gsm8k', ors.url);
  });
  afterAll(async () => {
    await Promise.all(upstreams.map((upstream) => upstream.stop()));
  });

  const tour = (interpreter: 'v167' | 'v112', given: Record<string, unknown>) =>
    runScript(
      interpreter,
      'tour.py',
      [JSON.stringify({ split: 'train', index: 0, calls: [], ...given })],
      clientEnv(palestra),
    ) as Promise<Tour>;

  test.each(['v167', 'v112'] as const)(
    'README’s program plays an episode, and its rollout is what the ledger saw (%s)',
    async (interpreter) => {
      const readme = readFileSync(path.resolve(import.meta.dirname, '../../README.md'), 'utf8');
      const program = /```python\n(.*?)```/s.exec(readme)![1]!.replace('run_name="first"', `run_name="first-${interpreter}"`);
      const finished = await run(python(interpreter), ['-c', program], { env: clientEnv(palestra) });
      expect(finished.code, finished.output).toBe(0);
      expect(finished.stdout).toContain("['submit']");
      const headers = { 'x-api-key': palestra.apiKey };
      const rollouts = async () => {
        const answer = await fetch(`${palestra.url}/v1/runs/first-${interpreter}/rollouts`, { headers });
        return ((await answer.json()) as { rollouts?: object[] }).rollouts;
      };
      await expect.poll(rollouts).toEqual([
        expect.objectContaining({
          reward: 1,
          turns: 1,
          num_tool_calls: 1,
          stop: 'finished',
          phase: 'train',
          flags: [],
          verified: 'verified',
        }),
      ]);
    },
  );

  test.each(clients)('plays WhoDunit ($interpreter, $mode)', async ({ interpreter, mode }) => {
    const first = await tour(interpreter, { mode, deployment: 'palestra/whodunit', calls: [['no_such_tool', {}]] });
    expect(first.splits.toSorted()).toEqual(['test', 'train', 'validation']);
    expect(first.num_tasks).toBeGreaterThanOrEqual(1_000);
    expect(first.range).toHaveLength(3);
    expect(first.range[0]).toEqual(first.task);
    expect(first.prompt[0]!.text.length).toBeGreaterThan(100);
    expect(first.tools.map(({ name }) => name)).toEqual(first.session_tools.map(({ name }) => name));
    expect(first.tools.map(({ name }) => name)).toContain('accuse');
    expect(first.tools.every(({ description }) => description !== '')).toBe(true);
    expect(first.results[0]).toMatchObject({ error: 'ToolCallError', text: expect.stringContaining("'no_such_tool' is not a valid tool") });
  });

  test.each(clients)('is told what was wrong with its arguments and goes on ($interpreter, $mode)', async ({ interpreter, mode }) => {
    const { results } = await tour(interpreter, {
      mode,
      deployment: 'palestra/echo',
      calls: [
        ['echo', { text: 5 }],
        ['echo', {}],
        ['echo', { text: 'häuser 你 😀' }],
        ['echo', { text: '' }],
      ],
    });
    expect(results[0]).toMatchObject({ error: 'ToolCallError', text: expect.stringContaining('Tool input validation error: ') });
    expect(results[1]).toMatchObject({ error: 'ToolCallError', text: expect.stringContaining('Tool input validation error: ') });
    expect(results[2]).toMatchObject({ blocks: [{ type: 'text', text: 'häuser 你 😀' }], reward: 0.1, finished: false });
    expect(results[3]).toMatchObject({ blocks: [{ type: 'text', text: '' }], reward: 0.1, finished: false });
  });

  test.each(clients)('sends its secrets to the environment, and only the values ($interpreter, $mode)', async ({ interpreter, mode }) => {
    const { results } = await tour(interpreter, {
      mode,
      deployment: math,
      secrets: { OPENAI_API_KEY: 'dummy-openai-key' },
      calls: [['secretz', {}]],
    });
    const seen = results[0]!.blocks![0]!.text;
    // It was told the value: only where that comes back stands this in its place.
    expect(seen).toContain("'OPENAI_API_KEY': '[secret:OPENAI_API_KEY]'");
    expect(seen).not.toContain('allowed_domains');
  });

  test.each(clients)('finds its own environment by the bare name and by variant ($interpreter, $mode)', async ({ interpreter, mode }) => {
    const calls = [['submit', { answer: '2' }]];
    const bare = await tour(interpreter, { mode, deployment: 'math', calls });
    expect(bare.environment_name).toBe('mathenv');
    expect(bare.results).toMatchObject([{ reward: 1, finished: true }]);
    const variant = await tour(interpreter, { mode, deployment: math, variant: 'otherenv', calls });
    expect(variant.environment_name).toBe('otherenv');
    expect(variant.results).toMatchObject([{ reward: 1, finished: true }]);
  });

  test.each(clients)('plays on a server of ors-sdk ($interpreter, $mode)', async ({ interpreter, mode }) => {
    const seen = await tour(interpreter, {
      mode,
      deployment: `${palestra.namespace}/gsm8k`,
      calls: [
        ['nope', {}],
        ['answer', { answer: '72' }],
      ],
    });
    expect(seen.num_tasks).toBe(5);
    expect(seen.environment_name).toBe('gsm8k');
    expect(seen.results[0]).toMatchObject({ error: 'ToolCallError', text: expect.stringContaining('is not a valid tool') });
    expect(seen.results[1]).toMatchObject({ blocks: [{ text: 'Correct!' }], reward: 1, finished: true });
  });

  const orsTour = (given: Record<string, unknown>) =>
    runScript(
      'ors',
      'ors_tour.py',
      [JSON.stringify({ base_url: palestra.url, api_key: palestra.apiKey, split: 'train', index: 0, ...given })],
      {},
    );

  test('the client of ors-sdk plays through us on an openreward server', async () => {
    const seen = await orsTour({
      name: 'math',
      calls: [
        ['nope', {}],
        ['submit', { answer: '2' }],
      ],
    });
    expect(seen).toMatchObject({
      splits: ['train', 'test', 'hard'],
      num_tasks: 2,
      listed: 2,
      task: { q: '1+1', a: '2' },
      tools: ['big', 'boom', 'secretz', 'slow', 'spaces', 'submit'],
      prompt: ['1+1'],
      results: [{ error: 'ToolCallError' }, { text: 'ok', reward: 1, finished: true }],
    });
  });

  test('the client of ors-sdk plays through us on a server of ors-sdk', async () => {
    const seen = await orsTour({ name: 'gsm8k', calls: [['answer', { answer: '1' }]] });
    expect(seen).toMatchObject({ num_tasks: 5, tools: ['answer'], results: [{ text: 'Wrong!', reward: 0, finished: true }] });
  });
});
