import { randomUUID } from 'node:crypto';
import { OpenEnvBackend } from '@palestra/backends';
import { PalestraError } from '@palestra/protocol';
import { type BackendCreate, type BackendSession, ToolFailedError } from '@palestra/session';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type OpenEnvServerProcess, startOpenEnv, startScaffold } from './support/openenv-server.ts';

/** Our client of OpenEnv servers against the real ones. */
const soon = () => AbortSignal.timeout(30_000);

async function open(backend: OpenEnvBackend, task: BackendCreate['task'] = { kind: 'spec', spec: {} }): Promise<BackendSession> {
  const request: BackendCreate = { sid: randomUUID(), env: null, task, toolsetName: null, secrets: {} };
  return backend.session(await backend.create(request, soon()));
}

const call = (session: BackendSession, tool: string, input: object = {}) =>
  session.call({ tool, input: input as Record<string, unknown>, taskId: randomUUID() }, soon());

/** The output of a call, its one text read as JSON. */
async function acted(session: BackendSession, input: object) {
  const result = await call(session, 'step', input);
  const { output } = JSON.parse(result.text) as { output: { blocks: { text: string }[]; metadata: object | null } };
  return { ...result, observation: JSON.parse(output.blocks[0]!.text) as unknown, metadata: output.metadata };
}

async function rejection(promise: Promise<unknown>): Promise<PalestraError> {
  const error = await promise.then(
    () => null,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(PalestraError);
  return error as PalestraError;
}

describe('an environment of actions with tasks, 0.10.0', () => {
  let server: OpenEnvServerProcess;
  let backend: OpenEnvBackend;
  beforeAll(async () => {
    server = await startOpenEnv({ python: 'PALESTRA_PYTHON_OE_0_10_0', app: 'guess_app' });
    backend = new OpenEnvBackend({ url: server.url });
  });
  afterAll(async () => {
    await backend?.close();
    await server?.stop();
  });

  test('is recognised', async () => {
    expect(await backend.openenv.shape(soon())).toMatchObject({
      generation: 'E',
      mode: 'simulation',
      toolActions: false,
      metadata: { name: 'guess', version: '2.1.0' },
      schema: { reset_observation: { title: 'GuessReset' } },
    });
    expect(await backend.environments(soon())).toEqual(['guess']);
  });

  test('has its splits and tasks', async () => {
    expect(await backend.splits(null, soon())).toEqual([
      { name: 'train', type: 'train' },
      { name: 'test', type: 'test' },
      { name: 'hard', type: 'validation' },
    ]);
    expect(await backend.numTasks('Guess', 'train', soon())).toBe(4);
    expect(await backend.task(null, 'test', -1, soon())).toEqual({ id: 'test-1', split: 'test', index: 1 });
    expect(await backend.tasks(null, 'hard', soon())).toEqual([{ id: 'hard-0', split: 'hard', index: 0 }]);
    expect(await backend.taskRange(null, 'train', -2, null, soon())).toMatchObject([{ index: 2 }, { index: 3 }]);
    expect(await rejection(backend.numTasks(null, 'nope', soon()))).toMatchObject({ code: 'invalid_split' });
    expect(await rejection(backend.task(null, 'test', 2, soon()))).toMatchObject({ code: 'invalid_index' });
    expect(await rejection(backend.splits('other', soon()))).toMatchObject({ code: 'unknown_variant' });
  });

  test('its action is the tool `step`', async () => {
    const { tools } = await backend.tools(null, soon());
    expect(tools).toMatchObject([{ name: 'step', input_schema: { type: 'object', title: 'GuessAction', required: ['guess'] } }]);
    expect(Object.keys(tools[0]!.input_schema!['properties'] as object)).toEqual(['guess', 'fault', 'seconds']);
  });

  test('plays a task by split and index to its reward', async () => {
    const session = await open(backend, { kind: 'index', split: 'test', index: 0 });
    expect(await session.prompt(soon())).toEqual([{ type: 'text', detail: null, text: '{"prompt":"Guess a number.","low":1,"high":100}' }]);
    expect(await session.taskTools(soon())).toEqual(await backend.tools(null, soon()));
    const first = await acted(session, { guess: 50 });
    expect(first).toMatchObject({ ok: true, reward: 0, finished: false, metadata: { attempt: 1 } });
    expect(first.observation).toEqual({ hint: 'lower', attempts: 1, extra: null });
    expect(await acted(session, { guess: 4 })).toMatchObject({ reward: -0.1, observation: { hint: 'higher' } });
    const last = await acted(session, { guess: 5 });
    expect(last).toMatchObject({ ok: true, reward: 1, finished: true, metadata: { attempt: 3 } });
    expect(last.text).toContain('"reward":1.0');
    await session.delete(soon());
    await session.delete(soon());
    expect(await rejection(call(session, 'step', { guess: 5 }))).toMatchObject({ code: 'session_deleted' });
  });
});
