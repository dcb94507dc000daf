import { OpenEnvBackend } from '@palestra/openenv/client';
import { ToolFailedError } from '@palestra/session';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { full } from '../support/full.ts';
import { acted, call, open, openWhenFree, pause, rejection, soon, textsOf } from './support/openenv-play.ts';
import { type OpenEnvPython, type OpenEnvServerProcess, startOpenEnv, startScaffold } from './support/openenv-server.ts';
import { startTcpForwarder } from './support/tcp-forwarder.ts';

/** Our client of OpenEnv servers against every generation of them. 0.3.0 is of the same generation as 0.2.3: with CI_FULL=1. */
const generations: { version: string; python: OpenEnvPython; generation: string; name: string }[] = [
  { version: '0.1.1', python: 'PALESTRA_PYTHON_OE_0_1_1', generation: 'A', name: 'default' },
  { version: '0.2.3', python: 'PALESTRA_PYTHON_OE_0_2_3', generation: 'C', name: 'counterenvironment' },
  { version: '0.4.1', python: 'PALESTRA_PYTHON_OE_0_4_1', generation: 'D', name: 'counter' },
  { version: '0.5.0', python: 'PALESTRA_PYTHON_OE_0_5_0', generation: 'E', name: 'counter' },
];
if (full) generations.push({ version: '0.3.0', python: 'PALESTRA_PYTHON_OE_0_3_0', generation: 'C', name: 'counterenvironment' });

describe.each(generations)('a $version server', ({ python, generation, name }) => {
  const first = generation === 'A';
  let server: OpenEnvServerProcess;
  let backend: OpenEnvBackend;
  beforeAll(async () => {
    const app = first ? 'openenv_first_environment:counter_app' : 'openenv_older_environments:counter_app';
    server = await startOpenEnv({ python, app, env: { MAX_CONCURRENT_ENVS: '1' } });
    backend = new OpenEnvBackend({ url: server.url });
  });
  afterAll(async () => {
    await backend?.close();
    await server?.stop();
  });

  test('is recognised', async () => {
    expect(await backend.native.shape(soon())).toMatchObject({ generation, mode: 'simulation', toolActions: false });
    expect(await backend.environments(soon())).toEqual([name]);
  });

  test('without tasks it has one, in the split `train`', async () => {
    expect(await backend.splits(null, soon())).toEqual([{ name: 'train', type: 'train' }]);
    expect(await backend.numTasks(null, 'train', soon())).toBe(1);
    expect(await backend.task(null, 'train', 0, soon())).toEqual({});
    expect(await backend.tasks(null, 'train', soon())).toEqual([{}]);
    expect(await rejection(backend.task(null, 'train', 1, soon()))).toMatchObject({ code: 'invalid_index' });
    expect(await rejection(backend.numTasks(null, 'test', soon()))).toMatchObject({ code: 'invalid_split' });
  });

  test('plays an episode', async () => {
    const session = await open(backend, { kind: 'index', split: 'train', index: 0 });
    expect(await session.prompt(soon())).toEqual([{ type: 'text', detail: null, text: '{"total":0}' }]);
    const { tools } = await session.taskTools(soon());
    expect(tools).toMatchObject([{ name: 'step', input_schema: { type: 'object' } }]);
    if (!first) expect(tools[0]!.input_schema).toMatchObject({ title: 'CounterAction', required: ['add'] });
    expect(await acted(session, { add: 4 })).toMatchObject({ observation: { total: 4 }, reward: 0, finished: false });
    await expect(call(session, 'step', { add: -1 })).rejects.toBeInstanceOf(ToolFailedError);
    const invalid = call(session, 'step', { nothing: 1 });
    // The first servers cannot tell a bad action from a bad environment.
    if (first) await expect(invalid).rejects.toBeInstanceOf(ToolFailedError);
    else expect(await invalid).toMatchObject({ ok: false, reason: 'input_validation' });
    expect(await acted(session, { add: 6 })).toMatchObject({ observation: { total: 10 }, reward: 1, finished: true });
    const { reply } = await session.native!.exchange({ type: 'state' }, null, soon());
    expect(JSON.parse(reply)).toMatchObject({ type: 'state', data: { step_count: 3 } });
    await session.delete(soon());
  });

  test('its only slot is refused while taken and freed with its session', async () => {
    for (let round = 0; round < 3; round += 1) {
      const session = await openWhenFree(backend);
      expect(await rejection(open(backend))).toMatchObject({ code: 'capacity_exhausted', status: 429 });
      await session.delete(soon());
    }
    // A reset that fails gives its slot back.
    if (!first) {
      const refused = async () => (await rejection(open(backend, { kind: 'spec', spec: { start: { no: 'number' } } }))).code;
      await expect.poll(refused).toBe('setup_failed');
    }
    await (await openWhenFree(backend)).delete(soon());
  });

  test('reports an action that a validator refuses', async () => {
    if (first) return;
    const session = await openWhenFree(backend);
    const refused = call(session, 'step', { add: 1_000 });
    if (generation === 'E') expect(await refused).toMatchObject({ ok: false, reason: 'input_validation' });
    else expect(await rejection(refused)).toMatchObject({ code: 'session_lost' });
    await session.delete(soon());
  });

  test('does not repeat a step whose connection broke', async () => {
    const wire = await startTcpForwarder(server.port);
    const through = new OpenEnvBackend({ url: wire.url });
    const session = await openWhenFree(through);
    const running = call(session, 'step', { add: 1, wait: 2 });
    await pause(300);
    wire.cut();
    expect(await rejection(running)).toMatchObject({ code: 'session_lost' });
    await through.close();
    await wire.stop();
    // Its slot comes back when the step has ended.
    await (await openWhenFree(backend)).delete(soon());
  });
});

const toolboxes: { version: string; python: OpenEnvPython }[] = [
  { version: '0.2.3', python: 'PALESTRA_PYTHON_OE_0_2_3' },
  { version: '0.4.1', python: 'PALESTRA_PYTHON_OE_0_4_1' },
  { version: '0.5.0', python: 'PALESTRA_PYTHON_OE_0_5_0' },
];
if (full) toolboxes.push({ version: '0.3.0', python: 'PALESTRA_PYTHON_OE_0_3_0' });

test.each(toolboxes)('tools of a $version server', async ({ python }) => {
  const server = await startOpenEnv({ python, app: 'openenv_older_environments:toolbox_app' });
  const backend = new OpenEnvBackend({ url: server.url });
  try {
    expect(await backend.native.shape(soon())).toMatchObject({ toolActions: true });
    const tools = await backend.tools(null, soon());
    expect(tools.tools.map(({ name }) => name)).toEqual(['double', 'submit']);
    expect(tools.tools[0]).toMatchObject({ description: 'Twice the number.', input_schema: { required: ['n'] } });
    const session = await open(backend);
    expect(await session.taskTools(soon())).toEqual(tools);
    expect(await session.prompt(soon())).toEqual([{ type: 'text', detail: null, text: '{}' }]);
    expect(textsOf(await call(session, 'double', { n: 21 }))).toEqual(['42']);
    expect(await call(session, 'nope')).toMatchObject({ ok: false, reason: 'not_found' });
    expect(await call(session, 'submit', { answer: '42' })).toMatchObject({ ok: true, reward: 1, finished: true });
    const { reply } = await session.native!.exchange({ type: 'state' }, null, soon());
    // Listing tools was no step.
    expect(JSON.parse(reply)).toMatchObject({ data: { step_count: 3 } });
    await session.delete(soon());
  } finally {
    await backend.close();
    await server.stop();
  }
});

test('the scaffold of openenv init', async () => {
  const server = await startScaffold({ python: 'PALESTRA_PYTHON_OE_0_10_0' });
  const backend = new OpenEnvBackend({ url: server.url });
  try {
    expect(await backend.environments(soon())).toEqual(['my_env']);
    const session = await open(backend, { kind: 'index', split: 'train', index: 0 });
    expect(await acted(session, { message: 'hello' })).toMatchObject({ ok: true, reward: 0.5, observation: { echoed_message: 'hello' } });
    await session.delete(soon());
  } finally {
    await backend.close();
    await server.stop();
  }
});
