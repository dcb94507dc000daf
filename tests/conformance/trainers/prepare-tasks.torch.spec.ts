import { expect, test } from 'vitest';
import { sharedPalestra } from '../../support/palestra.ts';
import { assertTasks, load, prepare } from './prepare-tasks.world.ts';

/** verl's RLHFDataset, which imports torch. */
test.each(['parquet', 'jsonl'])('verl loads rows of tasks from %s', async (ending) => {
  const palestra = await sharedPalestra();
  const { verl } = await load(palestra, 'verl', [await prepare(palestra, 'verl', ending)]);
  expect(verl!.first).toMatchObject({
    raw_prompt: [{ role: 'user', content: expect.any(String) }],
    data_source: 'palestra/math',
    reward_model: { style: 'rule', ground_truth: '' },
    extra_info: { index: 0, split: 'train', need_tools_kwargs: false },
    agent_name: 'palestra_agent',
    index: 0,
  });
  assertTasks(verl!);
});
