import { PalestraClient, ToolCallError, ToolFailedError } from '@palestra/client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { sharedServer, type TestServer } from '../support/server.ts';
import { pause } from './support/openenv-play.ts';
import { type OpenEnvServerProcess, startOpenEnv } from './support/openenv-server.ts';

/** A trainer that knows ORS only plays on real OpenEnv servers, through a whole Palestra. */
let palestra: TestServer;
let client: PalestraClient;
const servers: OpenEnvServerProcess[] = [];

async function host(name: string, ...options: Parameters<typeof startOpenEnv>): Promise<OpenEnvServerProcess> {
  const server = await startOpenEnv(...options);
  servers.push(server);
  await client.environments.add({ name, server: { kind: 'openenv', url: server.url } });
  return server;
}

beforeAll(async () => {
  palestra = await sharedServer();
  client = new PalestraClient({ url: palestra.url, apiKey: palestra.apiKey });
  await Promise.all([
    host('guess', { python: 'PALESTRA_PYTHON_OE_0_10_0', app: 'guess_app' }),
    host('tools', { python: 'PALESTRA_PYTHON_OE_0_10_0', app: 'tools_app' }),
    host('single', { python: 'PALESTRA_PYTHON_OE_0_10_0', app: 'guess_app', env: { MAX_CONCURRENT_ENVS: '1' } }),
    host('first', { python: 'PALESTRA_PYTHON_OE_0_1_1', app: 'openenv_first_environment:counter_app' }),
  ]);
  // Five processes on a small machine.
}, 240_000);
afterAll(async () => {
  await client?.close();
  await Promise.all(servers.map((server) => server.stop()));
});

const texts = ({ blocks }: { blocks: object[] }) => blocks.map((block) => (block as { text: string }).text);

describe('an action environment', () => {
  test('shows its splits, tasks and only tool', async () => {
    expect(await client.environments.splits('guess')).toEqual([
      { name: 'train', type: 'train' },
      { name: 'test', type: 'test' },
      { name: 'hard', type: 'validation' },
    ]);
    expect(await client.environments.numTasks('guess', 'train')).toBe(4);
    expect(await client.environments.task('guess', 'hard', 0)).toEqual({ id: 'hard-0', split: 'hard', index: 0 });
    expect((await client.environments.tools('guess')).tools.map(({ name }) => name)).toEqual(['step']);
  });

  test('is played by split and index to reward 1', async () => {
    await using session = await client.session({ environment: 'guess', split: 'test', index: 0 });
    expect(texts({ blocks: await session.prompt() })).toEqual(['{"prompt":"Guess a number.","low":1,"high":100}']);
    const low = await session.call('step', { guess: 1 });
    expect(low).toMatchObject({ reward: 0, finished: false, metadata: { attempt: 1 } });
    expect(texts(low)).toEqual(['{"hint":"higher","attempts":1,"extra":null}']);
    expect(await session.call('step', { guess: 5 })).toMatchObject({ reward: 1, finished: true, metadata: { attempt: 2 } });
    await session.close();
    const calls = [];
    for await (const call of client.sessions.calls(session.sid)) calls.push(call);
    expect(calls).toMatchObject([
      { tool: 'step', reward: 0, finished: false },
      { tool: 'step', reward: 1, finished: true },
    ]);
  });

  test('an error of the policy is a refusal, one of the environment a failure', async () => {
    await using session = await client.session({ environment: 'guess', taskSpec: { seed: 3 } });
    await expect(session.call('step', { guess: 'many' })).rejects.toBeInstanceOf(ToolCallError);
    await expect(session.call('step', { guess: 5_000 })).rejects.toMatchObject({ reason: 'input_validation' });
    await expect(session.call('look', {})).rejects.toMatchObject({ reason: 'not_found' });
    expect(await session.call('step', { guess: 0, fault: 'nan' })).toMatchObject({ reward: null, finished: false });
    await expect(session.call('step', { guess: 0, fault: 'raise' })).rejects.toEqual(new ToolFailedError('kaboom'));
  });

  test('an index that does not exist', async () => {
    await expect(client.session({ environment: 'guess', split: 'test', index: 7 })).rejects.toMatchObject({
      status: 400,
      message: '400: Invalid index',
    });
  });
});

test('plays a tool environment to its reward', async () => {
  await using session = await client.session({ environment: 'tools', split: 'train', index: 0 });
  expect(texts({ blocks: await session.prompt() })).toEqual(['What is 6 times 7?']);
  expect((await session.taskTools()).tools.map(({ name }) => name)).toContain('submit');
  expect(texts(await session.call('add', { a: 40, b: 2 }))).toEqual(['{"sum":42}']);
  expect(texts(await session.call('fail'))[0]).toContain('kaboom');
  expect(await session.call('submit', { answer: '42' })).toMatchObject({ reward: 1, finished: true });
});

test.each([
  { environment: 'single', input: { guess: 5 }, task: { split: 'test', index: 0 } },
  { environment: 'first', input: { add: 10 }, task: { split: 'train', index: 0 } },
])('sessions of $environment wait for its only slot', async ({ environment, input, task }) => {
  let playing = 0;
  const play = async () => {
    await using session = await client.session({ environment, ...task });
    playing += 1;
    expect(playing).toBe(1);
    expect(await session.call('step', input)).toMatchObject({ reward: 1, finished: true });
    playing -= 1;
  };
  await Promise.all(Array.from({ length: 4 }, play));
});

test('loses the session of a server that dies during a call, without a reward', async () => {
  const server = await host('mortal', { python: 'PALESTRA_PYTHON_OE_0_10_0', app: 'bench_app' });
  await using session = await client.session({ environment: 'mortal', split: 'train', index: 0 });
  const running = session.call('step', { wait_seconds: 30 }).catch((error: unknown) => error);
  const begun = async () => {
    for await (const { tool } of client.sessions.calls(session.sid)) return tool;
    return null;
  };
  await expect.poll(begun).toBe('step');
  await pause(500);
  await server.stop();
  const lost = { name: 'SessionTerminatedError', code: 'session_lost', failureClass: 'infrastructure' };
  expect(await running).toMatchObject({ ...lost, message: expect.stringContaining('Session lost') });
  await expect.poll(() => client.sessions.get(session.sid)).toMatchObject({ state: 'lost', failure_class: 'infrastructure' });
});
