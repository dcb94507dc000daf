import { EnvironmentHost } from '@palestra/environment-kit';
import { afterAll, expect, test } from 'vitest';
import { echoEnv } from './echo_env.environment.ts';

const host = new EnvironmentHost([echoEnv]);
afterAll(() => host.close());

const say = async (message: unknown) => JSON.parse((await host.call('a', 'step', { message })).text) as unknown;

test('returns the message with 0.1 per character', async () => {
  await host.create({ sid: 'a', env: null, task: { kind: 'index', split: 'train', index: 0 }, toolsetName: null, secrets: {} });
  expect(await say(1)).toMatchObject({ ok: false, reason: 'input_validation' });
  expect(await host.prompt('a')).toMatchObject([{ text: '{"echoed_message":"Echo environment ready!","message_length":0}' }]);
  expect(await say('hello')).toMatchObject({
    output: {
      blocks: [{ text: '{"echoed_message":"hello","message_length":5}' }],
      reward: 0.5,
      finished: false,
      metadata: { original_message: 'hello', step: 1 },
    },
  });
  expect(await say('😀')).toMatchObject({ output: { blocks: [{ text: '{"echoed_message":"😀","message_length":1}' }], reward: 0.1 } });
});
