import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import net from 'node:net';
import { expect, test, type TestContext } from 'vitest';
import { ORS_PROCESS } from './ors-process.fixture.ts';
import { OrsBackend } from './ors-backend.ts';
import type { OrsConnectionOptions } from './connection.ts';

/**
 * Servers that die, freeze and fall silent: real processes, stopped and killed, with a silence that a test can wait for. The tests wait more than
 * they compute, so they run at the same time. Without the deadline under test a request would wait past the timeout of its test.
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

test.concurrent('a port that accepts and never answers: discovery and creation end in time', { timeout: TIMEOUT_MS }, async (running) => {
  const deaf = net.createServer(() => {}).listen(0, '127.0.0.1');
  await once(deaf, 'listening');
  running.onTestFinished(() => void deaf.close());
  const backend = backendAt(running, (deaf.address() as net.AddressInfo).port);
  const codes = await Promise.all([backend.splits(null, never()), create(backend), call(backend, 0)].map(codeOf));
  // A call is not sent before the server has shown that it lives: nothing ran.
  expect(codes).toEqual(['backend_timeout', 'backend_timeout', 'backend_unreachable']);
});

test.concurrent('a host that drops packets is given up by the connect deadline', { timeout: TIMEOUT_MS }, async (running) => {
  const { backend, child, port } = await serve(running);
  await create(backend);
  child.kill('SIGSTOP');
  // The queue of connections that nobody accepts is full: the kernel drops whatever else wants to connect.
  const fillers = Array.from({ length: 4 }, () => net.connect(port, '127.0.0.1').on('error', () => {}));
  running.onTestFinished(() => fillers.forEach((filler) => filler.destroy()));
  await after(300);
  const other = backendAt(running, port, { silenceMs: () => 100_000, connectTimeoutMs: 1_000 });
  const codes = await Promise.all([other.splits(null, never()), call(other, 0)].map(codeOf));
  expect(codes).toEqual(['backend_unreachable', 'backend_unreachable']);
});

test.concurrent(
  'a frozen server: what waits is told, a call is not sent, and the session is as it was',
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

test.concurrent('frozen during a call: its outcome is unknown and it is not run again', { timeout: TIMEOUT_MS }, async (running) => {
  const { backend, child, ran } = await serve(running);
  const lost = codeOf(call(backend, 3 * SILENCE_MS));
  await running.expect.poll(ran).toHaveLength(1);
  child.kill('SIGSTOP');
  expect(await lost).toBe('session_lost');
  child.kill('SIGCONT');
  await after(300);
  expect(await ran()).toEqual([3 * SILENCE_MS]);
});

test.concurrent('frozen for a moment during a call: taken up again under its id', { timeout: TIMEOUT_MS }, async (running) => {
  // Longer than a stream may be silent, shorter than the server may be: with a second to both sides.
  const silenceMs = 5_000;
  const { backend, child, ran } = await serve(running, silenceMs);
  const outcome = call(backend, 2_000);
  await running.expect.poll(ran).toHaveLength(1);
  child.kill('SIGSTOP');
  await after(0.8 * silenceMs);
  child.kill('SIGCONT');
  expect(await outcome).toMatchObject({ ok: true });
  expect(await ran()).toEqual([2_000]);
});

test.concurrent('killed during a call: unknown; killed before it: nothing ran', { timeout: TIMEOUT_MS }, async (running) => {
  const { backend, child, ran } = await serve(running);
  const lost = codeOf(call(backend, 3 * SILENCE_MS));
  await running.expect.poll(ran).toHaveLength(1);
  child.kill('SIGKILL');
  expect(await lost).toBe('session_lost');
  const codes = await Promise.all([call(backend, 0), session(backend).prompt(never()), create(backend)].map(codeOf));
  expect(codes).toEqual(Array(3).fill('backend_unreachable'));
});

test.concurrent(
  'whoever answers is not cut: neither a long call with heartbeats, nor a setup, nor a constructor',
  { timeout: TIMEOUT_MS },
  async (running) => {
    // A server on a busy machine is late to answer, too.
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
  'an episode whose opening was not answered is forgotten before its id is used again',
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
