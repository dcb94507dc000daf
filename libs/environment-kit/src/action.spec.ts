import { afterAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { ACTION_TOOL, defineActionEnvironment } from './action.ts';
import { EnvironmentHost } from './host/environment-host.ts';

const resets: string[] = [];

/** Counts up to the goal of the task; the number 13 raises an error. */
const counter = defineActionEnvironment({
  name: 'counter',
  splits: ['train'],
  tasks: () => [{ goal: 3 }],
  action: z.object({ by: z.int().max(1000).default(1) }),
  create: () => ({ total: 0 }),
  async reset({ sid, task, state }) {
    resets.push(sid);
    return { observation: { total: state.total, left: task.goal, odds: Number.NaN }, metadata: { hint: 'count' } };
  },
  step({ by }, { task, state }) {
    if (by === 13) throw new Error('the counter jammed');
    state.total += by;
    const done = state.total >= task.goal;
    return { observation: { total: state.total, odds: Number.POSITIVE_INFINITY }, reward: done ? 1 : null, done, metadata: { by } };
  },
});
/** Its observations do not match its declared schema. */
const liar = defineActionEnvironment({
  name: 'liar',
  splits: ['train'],
  tasks: () => [{}],
  action: z.object({ text: z.string() }),
  observation: z.object({ length: z.int() }),
  instructions: 'Say something.',
  reset: () => ({ observation: { length: 0, unheard: true } }),
  step: ({ text }) => ({ observation: { length: text.length / 2 } }),
});

const host = new EnvironmentHost([counter, liar]);
afterAll(() => host.close());

let opened = 0;
async function open(env: string): Promise<string> {
  const sid = `${env}-${(opened += 1)}`;
  await host.create({ sid, env, task: { kind: 'index', split: 'train', index: 0 }, toolsetName: null, secrets: {} });
  return sid;
}
const step = async (sid: string, action: Record<string, unknown>) =>
  JSON.parse((await host.call(sid, ACTION_TOOL, action)).text) as unknown;

describe('an action environment', () => {
  test('refuses an invalid action without calling the environment', async () => {
    const sid = await open('counter');
    expect(await step(sid, { by: 'x' })).toMatchObject({ ok: false, reason: 'input_validation' });
    expect(JSON.parse((await host.call(sid, 'count', {})).text)).toMatchObject({ ok: false, reason: 'not_found' });
    expect(await step(sid, {})).toMatchObject({ output: { blocks: [{ text: '{"total":1,"odds":null}' }] } });
  });

  test('has one tool whose arguments are the action', () => {
    expect(host.tools('counter').tools).toEqual([
      {
        name: 'step',
        description: 'Takes one action in counter; the result is what can be observed then.',
        input_schema: { type: 'object', properties: { by: { type: 'integer', maximum: 1000, default: 1 } } },
      },
    ]);
    expect(host.tools('liar').tools[0]).toMatchObject({ description: 'Say something.', input_schema: { required: ['text'] } });
  });

  test('is reset once and has the first observation as prompt, with non-finite numbers as null', async () => {
    const sid = await open('counter');
    const prompt = [{ type: 'text', text: '{"total":0,"left":3,"odds":null}', detail: { hint: 'count' } }];
    expect(await host.prompt(sid)).toEqual(prompt);
    expect(await host.prompt(sid)).toEqual(prompt);
    expect(resets.filter((reset) => reset === sid)).toHaveLength(1);
  });

  test('returns observation, reward, end and metadata of the step, and null for no reward', async () => {
    const sid = await open('counter');
    expect(await host.call(sid, ACTION_TOOL, { by: 1 })).toMatchObject({ reward: null, finished: false });
    expect(await step(sid, { by: 2 })).toEqual({
      ok: true,
      output: { blocks: [{ type: 'text', text: '{"total":3,"odds":null}', detail: null }], metadata: { by: 2 }, reward: 1, finished: true },
    });
    expect(await step(sid, {})).toMatchObject({ ok: false, reason: 'episode_finished' });
  });

  test('that raises an error or returns an invalid observation is a failure of the environment', async () => {
    await expect(step(await open('counter'), { by: 13 })).rejects.toThrow('the counter jammed');
    const sid = await open('liar');
    expect(await host.prompt(sid)).toMatchObject([{ text: '{"length":0}' }]);
    expect(await step(sid, { text: 'four' })).toMatchObject({ output: { blocks: [{ text: '{"length":2}' }] } });
    await expect(step(sid, { text: 'odd' })).rejects.toThrow('expected int');
  });
});
