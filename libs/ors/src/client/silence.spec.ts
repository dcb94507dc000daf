import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import net from 'node:net';
import { expect, test, type TestContext } from 'vitest';
import { ORS_PROCESS } from './ors-process.fixture.ts';
import { OrsBackend } from './ors-backend.ts';
import type { OrsConnectionOptions } from './connection.ts';

/**
 * Servers that die, freeze and fall silent: real processes that are stopped and killed, with a short silence limit. The tests mostly wait,
 * so they run concurrently. Without the deadline under test a request would exceed the timeout of its test.
 */
const SILENCE_MS = 2_000;
const TIMEOUT_MS = 28_000;

type Running = Pick<TestContext, 'onTestFinished'>;

function backendAt({ onTestFinished }: Running, port: number, options: Partial<OrsConnectionOptions> = {}): OrsBackend {
  const backend = new OrsBackend({ url: `http://127.0.0.1:${port}`, silenceMs: () => SILENCE_MS, ...options });
  onTestFinished(() => backend.close());
  return backend;
}

async function serve(running: Running, silenceMs = SILENCE_MS) {
  const child: ChildProcess = spawn(process.execPath, ['-e', ORS_PROCESS], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, PROMPT_MS: String(3 * silenceMs), BACKLOG: '1' },
  });
  running.onTestFinished(() => void child.kill('SIGKILL'));
  const [line] = (await once(child.stdout!, 'data')) as [Buffer];
  const port = Number(String(line));
  const backend = backendAt(running, port, { silenceMs: () => silenceMs });
  await backend.environments(never());
  const ask = async (path: string) => (await fetch(`http://127.0.0.1:${port}${path}`)).json() as Promise<unknown>;
  const ran = () => ask('/ran');
  const sessions = () => ask('/sessions');
  return { backend, child, port, ran, sessions };
}

const never = () => new AbortController().signal;
const after = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
const session = (backend: OrsBackend) => backend.session({ sid: 's', env: 'a' });
const create = (backend: OrsBackend, ms = 0) =>
  backend.create({ sid: 's', env: null, task: { kind: 'spec', spec: { ms } }, toolsetName: null, secrets: {} }, never());
const call = async (backend: OrsBackend, ms: number) => session(backend).call({ tool: 't', input: { ms }, taskId: 'x' }, never());
const codeOf = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => 'none',
    (error: { code: string }) => error.code,
  );

test.concurrent('ends discovery and creation on a port that never answers', { timeout: TIMEOUT_MS }, async (running) => {
  const deaf = net.createServer(() => {}).listen(0, '127.0.0.1');
  await once(deaf, 'listening');
  running.onTestFinished(() => void deaf.close());
  const backend = backendAt(running, (deaf.address() as net.AddressInfo).port);
  const codes = await Promise.all([backend.splits(null, never()), create(backend), call(backend, 0)].map(codeOf));
  // The server is probed before a call is sent: nothing ran.
  expect(codes).toEqual(['backend_timeout', 'backend_timeout', 'backend_unreachable']);
});

test.concurrent('ends at the connect timeout for a host that drops packets', { timeout: TIMEOUT_MS }, async (running) => {
  const { backend, child, port } = await serve(running);
  await create(backend);
  child.kill('SIGSTOP');
  // The queue of unaccepted connections is full: the kernel drops further connects.
  const fillers = Array.from({ length: 4 }, () => net.connect(port, '127.0.0.1').on('error', () => {}));
  running.onTestFinished(() => fillers.forEach((filler) => filler.destroy()));
  await after(300);
  const other = backendAt(running, port, { silenceMs: () => 100_000, connectTimeoutMs: 1_000 });
  const codes = await Promise.all([other.splits(null, never()), call(other, 0)].map(codeOf));
  expect(codes).toEqual(['backend_unreachable', 'backend_unreachable']);
});

test.concurrent(
  'fails waiting requests of a frozen server, sends no call and keeps the session',
  { timeout: TIMEOUT_MS },
  async (running) => {
    const { backend, child, ran } = await serve(running);
    await create(backend);
    child.kill('SIGSTOP');
    await after(SILENCE_MS / 2);
    const open = session(backend);
    const waiting = [open.prompt(never()), call(backend, 0), backend.splits(null, never()), open.delete(never())];
    const codes = await Promise.all(waiting.map(codeOf));
    expect(codes).toEqual(['backend_timeout', 'backend_unreachable', 'backend_timeout', 'backend_timeout']);
    child.kill('SIGCONT');
    expect(await call(backend, 1)).toMatchObject({ ok: true });
    expect(await ran()).toEqual([1]);
  },
);

test.concurrent(
  'reports an unknown outcome if the server freezes during a call and does not repeat it',
  { timeout: TIMEOUT_MS },
  async (running) => {
    const { backend, child, ran } = await serve(running);
    const lost = codeOf(call(backend, 3 * SILENCE_MS));
    await running.expect.poll(ran).toHaveLength(1);
    child.kill('SIGSTOP');
    expect(await lost).toBe('session_lost');
    child.kill('SIGCONT');
    await after(300);
    expect(await ran()).toEqual([3 * SILENCE_MS]);
  },
);

test.concurrent('resumes a call by its id after a short freeze', { timeout: TIMEOUT_MS }, async (running) => {
  // Longer than the limit of a silent stream, shorter than that of the server, by two seconds each.
  const silenceMs = 10_000;
  const { backend, child, ran } = await serve(running, silenceMs);
  const outcome = call(backend, 2_000);
  await running.expect.poll(ran).toHaveLength(1);
  child.kill('SIGSTOP');
  await after(0.8 * silenceMs);
  child.kill('SIGCONT');
  expect(await outcome).toMatchObject({ ok: true });
  expect(await ran()).toEqual([2_000]);
});

test.concurrent(
  'reports an unknown outcome if the server is killed during a call, and that nothing ran before it',
  { timeout: TIMEOUT_MS },
  async (running) => {
    const { backend, child, ran } = await serve(running);
    const lost = codeOf(call(backend, 3 * SILENCE_MS));
    await running.expect.poll(ran).toHaveLength(1);
    child.kill('SIGKILL');
    expect(await lost).toBe('session_lost');
    const codes = await Promise.all([call(backend, 0), session(backend).prompt(never()), create(backend)].map(codeOf));
    expect(codes).toEqual(Array(3).fill('backend_unreachable'));
  },
);

test.concurrent(
  'keeps a long call with heartbeats, a setup and a constructor of a live server',
  { timeout: TIMEOUT_MS },
  async (running) => {
    // A busy machine answers late.
    const silenceMs = 3_000;
    const { backend, ran } = await serve(running, silenceMs);
    const long = 3 * silenceMs;
    expect(await Promise.all([create(backend, long), session(backend).prompt(never()), call(backend, long)])).toMatchObject([
      { sid: 's' },
      [],
      { ok: true },
    ]);
    expect(await ran()).toEqual([long]);
  },
);

test.concurrent(
  'deletes an episode whose opening was not answered before its id is used again',
  { timeout: TIMEOUT_MS },
  async (running) => {
    const { backend, child, sessions } = await serve(running);
    const opening = codeOf(create(backend, 5_000));
    await running.expect.poll(sessions).toEqual(['s']);
    child.kill('SIGSTOP');
    expect(await opening).toBe('backend_timeout');
    child.kill('SIGCONT');
    expect(await create(backend)).toMatchObject({ sid: 's' });
  },
);
