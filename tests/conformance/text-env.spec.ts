import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { serve } from '@palestra/environment-kit';
import { addRemote, type SharedPalestra, sharedPalestra } from '../support/palestra.ts';
import { executions, textEnvironments } from '../support/text-environments.ts';
import { runScript } from './support/python.ts';

/** `palestra_text_env.py` when things go wrong: it never raises, says what a trainer must leave out, and leaves no session behind. */
let palestra: SharedPalestra;
let running: Awaited<ReturnType<typeof serve>>;
let seen: any;
let ran: number;

const step = { observations: expect.any(Array), done: false, reward: 1, metadata: { tool_name: 'count', tool_args: {}, finished: false } };
const failed = (code: string) => ({
  observations: [],
  reward: 0,
  done: true,
  metadata: { infrastructure_failure: true, mask: true, failure_class: 'infrastructure', code, message: expect.any(String) },
});

beforeAll(async () => {
  running = await serve(textEnvironments);
  palestra = await sharedPalestra();
  const environment = await addRemote(palestra, 'texts', running.url);
  const before = executions.count;
  seen = await runScript('skyrl', 'text_env.py', [environment], { PALESTRA_URL: palestra.url, PALESTRA_API_KEY: palestra.apiKey });
  ran = executions.count - before;
});
afterAll(async () => {
  await running?.close();
});

async function stateOf(sid: string): Promise<string> {
  const answer = await fetch(`${palestra.url}/v1/sessions/${sid}`, { headers: { 'x-api-key': palestra.apiKey } });
  return ((await answer.json()) as { state: string }).state;
}

describe('an episode', () => {
  test('goes on after a full server and lost answers; the tool runs once a turn', () => {
    const { outputs, sent } = seen.through_faults;
    expect(outputs.slice(0, 2)).toEqual([step, step]);
    expect(outputs[1].observations[0].content).toBe('<tool_response>\ncount 2\n</tool_response>');
    expect(sent).toEqual([1, 1, 1, 1, 2, 2, 3, 3, 3, 3, 3]);
    // Two here, one in the episode that is forgotten.
    expect(ran).toBe(3);
  });

  test('ends, to be masked, when five attempts came to nothing', () => {
    const { outputs, after, metrics, session } = seen.through_faults;
    expect(outputs[2]).toEqual(failed('capacity_exhausted'));
    expect(after).toEqual(failed('capacity_exhausted'));
    expect(metrics).toEqual({ turns: 4, total_reward: 2, num_rewards: 2 });
    expect(session).toBeNull();
  });

  test('of which there is no server, no environment or no session any more', () => {
    expect(seen.without_server).toEqual({
      prompt: [[{ role: 'user', content: 'x' }], {}],
      output: failed('unreachable'),
      metrics: { turns: 1, total_reward: 0, num_rewards: 0 },
    });
    expect(seen.unknown_environment).toEqual(failed('deployment_not_found'));
    expect(seen.ended_by_somebody_else).toEqual(failed('session_deleted'));
  });

  test('is closed when it is forgotten, and when the process ends', async () => {
    await expect.poll(() => stateOf(seen.forgotten)).toBe('closed');
    await expect.poll(() => stateOf(seen.left_open)).toBe('closed');
    expect(seen.kept_alive).toBe(true);
    const live = async () => {
      const answer = await fetch(`${palestra.url}/v1/sessions?state=live`, { headers: { 'x-api-key': palestra.apiKey } });
      return answer.json();
    };
    await expect.poll(live).toMatchObject({ sessions: [] });
  });
});
