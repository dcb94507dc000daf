import { randomUUID } from 'node:crypto';
import { OrsBackend } from '@palestra/ors/client';
import { PalestraError } from '@palestra/protocol';
import { listAllTasks, ToolFailedError, type BackendCreate } from '@palestra/session';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startForwarder, type Forwarder } from './support/cutting-forwarder.ts';
import { type PythonName, startUpstream, type Upstream } from './support/python.ts';

/** Our gateway client against the official Python servers, every generation of them. */
const soon = () => AbortSignal.timeout(60_000);
const first = (): BackendCreate => ({
  sid: randomUUID(),
  env: null,
  task: { kind: 'index', split: 'train', index: 0 },
  toolsetName: null,
  secrets: {},
});

async function rejection(promise: Promise<unknown>): Promise<PalestraError> {
  const error = await promise.then(
    () => null,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(PalestraError);
  return error as PalestraError;
}

const generations: { interpreter: PythonName; kind: string; reason: string; messages: boolean }[] = [
  { interpreter: 'v167', kind: 'openreward', reason: 'episode_finished', messages: true },
  { interpreter: 'v112', kind: 'openreward', reason: '', messages: false },
  { interpreter: 'ors', kind: 'ors-sdk', reason: '', messages: false },
];

describe.each(generations)('$interpreter server', ({ interpreter, kind, reason, messages }) => {
  let upstream: Upstream;
  let forwarder: Forwarder;
  let backend: OrsBackend;

  beforeAll(async () => {
    upstream = await startUpstream({ interpreter, module: 'gateway_environments', classes: ['Gateway', 'Indexed', 'Failing'] });
    forwarder = await startForwarder(upstream.url);
    backend = new OrsBackend({ url: forwarder.url });
  });
  afterAll(async () => {
    await backend?.close();
    await forwarder?.close();
    await upstream?.stop();
  });

  const open = async (change: Partial<BackendCreate> = {}) => backend.session(await backend.create({ ...first(), ...change }, soon()));
  const call = async (session: Awaited<ReturnType<typeof open>>, tool: string, input: object = {}) =>
    session.call({ tool, input: input as Record<string, unknown>, taskId: randomUUID() }, soon());

  test('is recognised', async () => {
    expect(await backend.kind(soon())).toBe(kind);
    expect(await backend.environments(soon())).toEqual(['gateway', 'indexed', 'failing']);
  });

  test('refuses unknown environments, splits and indexes with the words of the reference', async () => {
    expect(await rejection(backend.splits('zzz', soon()))).toMatchObject({ status: 404, detail: "unknown environment 'zzz'" });
    expect(await rejection(backend.numTasks(null, 'nope', soon()))).toMatchObject({ status: 400, detail: 'Invalid split' });
    expect(await rejection(backend.task(null, 'train', 99, soon()))).toMatchObject({ status: 400, detail: 'Invalid index' });
  });

  test('discovers splits, tasks and tools, also of an environment that cannot list', async () => {
    expect(await backend.splits(null, soon())).toEqual([{ name: 'train', type: 'train' }]);
    expect(await backend.tasks('Gateway', 'train', soon())).toHaveLength(3);
    await expect(backend.tasks('indexed', 'train', soon())).rejects.toMatchObject({ code: 'tasks_not_listable' });
    expect(await listAllTasks(backend, 'indexed', 'train', soon())).toEqual(Array.from({ length: 7 }, (_, id) => ({ id })));
    expect(await backend.taskRange('indexed', 'train', -2, null, soon())).toEqual([{ id: 5 }, { id: 6 }]);
    const { tools } = await backend.tools(null, soon());
    expect(tools.map((tool) => Object.keys(tool).toSorted())).toEqual(tools.map(() => ['description', 'input_schema', 'name']));
    expect(tools.map((tool) => tool.name)).toEqual(['crash', 'secret', 'slow', 'submit', 'wide']);
  });

  test('plays an episode; reasons and nullable keys are there', async () => {
    const session = await open();
    await session.ping(soon());
    expect(await session.prompt(soon())).toEqual([{ text: 'task 0', detail: null, type: 'text' }]);
    const missing = await call(session, 'nope');
    expect(missing).toMatchObject({ ok: false, reason: 'not_found' });
    expect(JSON.parse(missing.text)).toMatchObject({ ok: false, reason: 'not_found' });
    expect(await call(session, 'submit', { answer: [] })).toMatchObject({ ok: false, reason: 'input_validation' });
    const done = await call(session, 'submit', { answer: 'x' });
    expect(done).toMatchObject({ ok: true, reward: 1, finished: true });
    expect(done.text).toContain('"reward":1.0');
    expect((await call(session, 'submit', { answer: 'x' })).reason ?? '').toBe(reason);
    await session.delete(soon());
    await session.delete(soon());
    expect(await rejection(session.ping(soon()))).toMatchObject({ code: 'session_lost', status: 410 });
  });

  test('keeps big integers, floats and leading whitespace of a task and of a result', async () => {
    const spec = await backend.task(null, 'train', 1, soon());
    const session = await open({ task: { kind: 'spec', spec } });
    const result = await call(session, 'wide', { spaces: 9_000 });
    expect(result.text).toContain('"big":12345678901234567890');
    expect(result.text).toContain('"one":1.0');
    expect(result.text).toContain(' '.repeat(9_000));
    await session.delete(soon());
  });

  test('a tool that raises is told apart from a refused call', async () => {
    const session = await open();
    await expect(call(session, 'crash')).rejects.toEqual(new ToolFailedError('tool crashed'));
    await session.delete(soon());
  });

  test('a failing setup is the answer of every route, in the words of the server', async () => {
    const session = await open({ env: 'failing' });
    expect(await rejection(session.prompt(soon()))).toMatchObject({ code: 'setup_failed', status: 500, detail: 'ValueError: no setup' });
    expect(await rejection(call(session, 'submit', { answer: '' }))).toMatchObject({
      code: 'setup_failed',
      detail: 'ValueError: no setup',
    });
    await session.delete(soon());
  });

  test('secrets arrive, by the way that this server knows', async () => {
    const session = await open({ secrets: { TOKEN: { value: 'geheim', allowed_domains: ['localhost'] } } });
    expect((await call(session, 'secret')).text).toContain('geheim');
    await session.delete(soon());
  });

  test('an unknown toolset is a 400 with the word toolset', async () => {
    const error = await rejection(open({ toolsetName: 'zzz' }).then((session) => session.prompt(soon())));
    expect(error.status).toBe(400);
    expect(String(error.detail)).toContain('toolset');
  });

  test('messages are relayed, or their absence is', async () => {
    const session = await open();
    if (messages) expect(await session.messages(soon())).toMatchObject([{ role: 'user', detail: null }]);
    else expect(await rejection(session.messages(soon()))).toMatchObject({ code: 'messages_unsupported', status: 404 });
    expect(await rejection(session.scoreGroup([], randomUUID(), soon()))).toMatchObject({ code: 'score_group_unsupported', status: 404 });
    await session.delete(soon());
  });

  test('a stream cut in the middle is resumed: the tool runs once', async () => {
    const session = await open();
    const running = call(session, 'slow', { seconds: 1.5 });
    await forwarder.cutAfterFirstPiece('/call');
    expect((await running).text).toContain('runs: 1');
    expect(forwarder.count('/call')).toBeGreaterThanOrEqual(2);
    await session.delete(soon());
  });
});

test('a server that is not there: nothing ran, and that is said', async () => {
  const backend = new OrsBackend({ url: 'http://127.0.0.1:1' });
  expect(await rejection(backend.splits(null, soon()))).toMatchObject({ code: 'backend_unreachable', status: 503 });
  await backend.close();
});
