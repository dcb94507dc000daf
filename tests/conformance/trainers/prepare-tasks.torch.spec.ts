import { beforeAll, describe, expect, test } from 'vitest';
import { sharedPalestra } from '../../support/palestra.ts';
import { assertTasks, load, type Loaded, prepare } from './prepare-tasks.world.ts';

/** Loaders that import torch. miles and AReaL are of their wheels. */
describe.each(['parquet', 'jsonl'])('rows of tasks in %s for trainers with torch', (ending) => {
  let loaded: Record<string, Loaded>;
  beforeAll(async () => {
    const palestra = await sharedPalestra();
    const files = async (...formats: string[]) => {
      const written = [];
      for (const format of formats) written.push(await prepare(palestra, format, ending));
      return written;
    };
    loaded = {
      ...(await load(palestra, 'openrlhf', await files('openrlhf'))),
      ...(await load(palestra, 'verl', await files('verl', 'miles', 'areal'))),
    };
  });

  const user = { role: 'user', content: expect.any(String) };
  const facts = { env_name: 'palestra/math', env_version: expect.any(Number), split: 'train', task_index: 0 };
  const submit = { type: 'function', function: { name: 'submit' } };

  test.each([
    [
      'openrlhf',
      {
        input: expect.stringMatching(/^system: .+ user: /s),
        label: expect.stringContaining('"task_key"'),
        datasource: 'palestra/math',
        images: null,
      },
    ],
    [
      'verl',
      {
        raw_prompt: [user],
        data_source: 'palestra/math',
        reward_model: { style: 'rule', ground_truth: '' },
        extra_info: { index: 0, split: 'train', need_tools_kwargs: false },
        agent_name: 'palestra_agent',
        index: 0,
      },
    ],
    ['miles', { prompt: [user], label: '', metadata: { palestra: facts, tools: [submit] } }],
    ['areal', { messages: [user], answer: '', palestra: facts }],
  ])('%s', (format, first) => {
    expect(loaded[format]!.first).toMatchObject(first);
    assertTasks(loaded[format]!);
  });
});
