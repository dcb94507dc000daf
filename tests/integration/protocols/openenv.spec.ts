import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { sharedServer, type TestServer } from '../../support/server.ts';
import { Client } from './openenv.world.ts';

/** OpenEnv clients on environments that do not speak OpenEnv. */
let server: TestServer;
const owner = 'palestra';
const echo = `/openenv/${owner}/echo`;

beforeAll(async () => {
  server = await sharedServer();
});
afterAll(() => server?.close());

const connect = (path: string) => Client.open(server.url + path, { 'x-api-key': server.apiKey });

describe('the socket', () => {
  test('is refused before the upgrade without a valid key and for an unknown environment', async () => {
    await expect(Client.open(`${server.url}${echo}/ws`)).rejects.toThrow('HTTP 401');
    await expect(Client.open(`${server.url}${echo}/ws`, { 'x-api-key': 'wrong' })).rejects.toThrow('HTTP 401');
    await expect(connect(`/openenv/${owner}/nothing/ws`)).rejects.toThrow('HTTP 404');
  });

  test('plays an episode of a tool environment', async () => {
    const client = await connect(`${echo}/ws`);
    const listed = await client.step({ type: 'list_tools' });
    expect(listed.observation.tools[0]).toMatchObject({ name: 'echo', input_schema: { type: 'object' } });
    const reset = await client.reset({ split: 'train', index: 7, episode_id: 'mine' });
    expect(reset).toMatchObject({ observation: { prompt: 'Task 7: call echo with any text.' }, reward: null, done: false });
    expect(reset.observation.metadata.task).toEqual({ split: 'train', index: 7 });
    const step = await client.call('echo', { text: 'hi' });
    expect(step).toEqual({
      observation: {
        metadata: {},
        tool_name: 'echo',
        result: {
          content: [{ type: 'text', text: 'hi', annotations: null, meta: null }],
          structured_content: { result: 'hi' },
          meta: null,
          data: 'hi',
          is_error: false,
        },
        error: null,
      },
      reward: 0.1,
      done: false,
    });
    expect(await client.state()).toMatchObject({ episode_id: 'mine', step_count: 1, split: 'train', index: 7 });
    await client.close();
  });
});
