import { describe, expect, test } from 'vitest';
import { sharedPalestra } from '../../support/palestra.ts';
import { drive } from './contract.ts';
import { testMiles } from './miles.world.ts';

/** The wheel of miles, which imports torch: its samples and its parser. Its driver needs GPUs. */
describe('miles-rl 0.0.2', () => {
  testMiles('miles-rl', 'verl', ['wheel']);

  test('parses the flags of the page and of the example', async () => {
    const args = ['flags'];
    const env = { MILES_EXPERIMENTAL_ROLLOUT_REFACTOR: '1' };
    const parsed = await drive<string[][]>(await sharedPalestra(), { python: 'verl', program: 'play_miles.py', args, run: 'none', env });
    const functions = [
      'custom_agent_function_path',
      'custom_reward_post_process_path',
      'custom_rm_path',
      'custom_rollout_log_function_path',
    ];
    expect(parsed).toEqual([functions, ['custom_agent_function_path', 'custom_eval_rollout_log_function_path', ...functions.slice(1)]]);
  });
});
