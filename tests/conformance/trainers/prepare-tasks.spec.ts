import { beforeAll, describe, expect, test } from 'vitest';
import { type SharedPalestra, sharedPalestra } from '../../support/palestra.ts';
import { assertTasks, load, type Loaded, prepare } from './prepare-tasks.world.ts';

/** `palestra prepare-tasks --format`: the loader of each trainer reads the file, and every row leads back to its task. */
describe('rows of tasks for trainers', () => {
  let palestra: SharedPalestra;
  let loaded: Record<string, Loaded>;

  beforeAll(async () => {
    palestra = await sharedPalestra();
    // One process for all: importing `datasets` takes seconds.
    const files = [await prepare(palestra, 'skyrl', 'parquet', '--prompt-format', 'messages')];
    for (const format of ['rllm', 'tinker', 'messages']) files.push(await prepare(palestra, format, 'parquet'));
    files.push(await prepare(palestra, 'slime', 'jsonl'));
    loaded = await load(palestra, 'v167', files);
    const own = { trl: 'parquet', inspect: 'jsonl', 'nemo-gym': 'jsonl' };
    for (const [format, ending] of Object.entries(own))
      Object.assign(loaded, await load(palestra, format, [await prepare(palestra, format, ending)]));
  });

  const user = [{ role: 'user', content: expect.any(String) }];
  const facts = { env_name: 'palestra/math', env_version: expect.any(Number), split: 'train', task_index: 0 };

  test.each([
    ['skyrl', { prompt: [{ role: 'system' }, ...user], env_class: 'openreward', ...facts }],
    ['trl', { prompt: user, ...facts }],
    ['rllm', { question: expect.any(String), ...facts }],
    ['tinker', { palestra: facts }],
    ['messages', { messages: user, metadata: facts }],
    ['slime', { prompt: user, label: '', metadata: { palestra: facts }, tools: expect.stringContaining('"submit"') }],
    [
      'nemo-gym',
      {
        responses_create_params: { input: user, tools: [{ type: 'function', name: 'submit', strict: false }] },
        agent_ref: { name: 'palestra_agent' },
        verifier_metadata: { palestra: facts },
        _ng_task_index: 0,
        _ng_rollout_index: 0,
      },
    ],
    ['inspect', { id: 'palestra/math:train:0', input: user, metadata: facts }],
  ])('%s', (format, first) => {
    expect(loaded[format]!.first).toMatchObject(first);
    assertTasks(loaded[format]!);
  });
});
