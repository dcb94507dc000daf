import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import net from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { MORTAL_SERVER } from './mortal-server.fixture.ts';
import { OrsBackend } from './ors-backend.ts';

/** Servers that die, freeze and fall silent: real processes, stopped and killed, with a silence that a test can wait for. */
const SILENCE_MS = 1_500;

let ends: (() => unknown)[] = [];
afterEach(async () => {
  await Promise.all(ends.map((end) => end()));
  ends = [];
});

function backendAt(port: number, silenceMs = SILENCE_MS): OrsBackend {
  const backend = new OrsBackend({ url: `http://127.0.0.1:${port}`, silenceMs: () => silenceMs });
  ends.push(() => backend.close());
  return backend;
}

async function serve() {
  const child: ChildProcess = spawn(process.execPath, ['-e', MORTAL_SERVER], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, PROMPT_MS: String(3 * SILENCE_MS), BACKLOG: '1' },
  });
  ends.push(() => child.kill('SIGKILL'));
  const [line] = (await once(child.stdout!, 'data')) as [Buffer];
  const port = Number(String(line));
  const backend = backendAt(port);
  await backend.environments(never());
  const ran = async () => (await fetch(`http://127.0.0.1:${port}/ran`)).json() as Promise<number[]>;
  return { backend, child, port, ran };
}

const never = () => new AbortController().signal;
const after = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
const session = (backend: OrsBackend) => backend.session({ sid: 's', env: 'a' });
const create = (backend: OrsBackend, ms = 0) =>
  backend.create({ sid: 's', env: null, task: { kind: 'spec', spec: { ms } }, toolsetName: null, secrets: {} }, never());
const call = async (backend: OrsBackend, ms: number) => session(backend).call({ tool: 't', input: { ms }, taskId: 'x' }, never());

/** The code of a rejection and its time in units of the silence. */
async function refusal(work: Promise<unknown>): Promise<{ code: string; silences: number }> {
  const began = Date.now();
  const error = await work.then(
    () => ({ code: 'none' }),
    (reason: { code: string }) => reason,
  );
  return { code: error.code, silences: (Date.now() - began) / SILENCE_MS };
}

test('a port that accepts and never answers: discovery and creation end in time', { timeout: 20_000 }, async () => {
  const deaf = net.createServer(() => {}).listen(0, '127.0.0.1');
  await once(deaf, 'listening');
  ends.push(() => deaf.close());
  const backend = backendAt((deaf.address() as net.AddressInfo).port);
  const refusals = await Promise.all([refusal(backend.splits(null, never())), refusal(create(backend)), refusal(call(backend, 0))]);
  // A call is not sent before the server has shown that it lives: nothing ran.
  expect(refusals.map(({ code }) => code)).toEqual(['backend_timeout', 'backend_timeout', 'backend_unreachable']);
  expect(Math.max(...refusals.map(({ silences }) => silences))).toBeLessThan(1.5);
});

test('a host that drops packets is given up by the connect deadline', { timeout: 120_000 }, async () => {
  const { backend, child, port } = await serve();
  await create(backend);
  child.kill('SIGSTOP');
  // The queue of connections that nobody accepts is full: the kernel drops whatever else wants to connect.
  const fillers = Array.from({ length: 4 }, () => net.connect(port, '127.0.0.1').on('error', () => {}));
  ends.push(() => fillers.forEach((filler) => filler.destroy()));
  await after(300);
  const other = backendAt(port, 100_000);
  const began = Date.now();
  const codes = await Promise.all([refusal(other.splits(null, never())), refusal(call(other, 0))]);
  expect(codes.map(({ code }) => code)).toEqual(['backend_unreachable', 'backend_unreachable']);
  expect(Date.now() - began).toBeLessThan(50_000);
});

test('a frozen server: what waits is told, a call is not sent, and the session is as it was', { timeout: 30_000 }, async () => {
  const { backend, child, ran } = await serve();
  await create(backend);
  child.kill('SIGSTOP');
  await after(SILENCE_MS / 2);
  const refusals = await Promise.all([
    refusal(session(backend).prompt(never())),
    refusal(call(backend, 0)),
    refusal(backend.splits(null, never())),
    refusal(session(backend).delete(never())),
  ]);
  expect(refusals.map(({ code }) => code)).toEqual(['backend_timeout', 'backend_unreachable', 'backend_timeout', 'backend_timeout']);
  expect(Math.max(...refusals.map(({ silences }) => silences))).toBeLessThan(1.6);
  child.kill('SIGCONT');
  expect(await call(backend, 1)).toMatchObject({ ok: true });
  expect(await ran()).toEqual([1]);
});

test('frozen during a call: its outcome is unknown and it is not run again', { timeout: 20_000 }, async () => {
  const { backend, child, ran } = await serve();
  const running = refusal(call(backend, 3 * SILENCE_MS));
  await after(500);
  child.kill('SIGSTOP');
  const { code, silences } = await running;
  expect(code).toBe('session_lost');
  expect(silences).toBeLessThan(2.5);
  child.kill('SIGCONT');
  await after(300);
  expect(await ran()).toEqual([3 * SILENCE_MS]);
});

test('frozen for a moment during a call: taken up again under its id', { timeout: 20_000 }, async () => {
  const { backend, child, ran } = await serve();
  const running = call(backend, 2_000);
  await after(300);
  child.kill('SIGSTOP');
  await after(0.75 * SILENCE_MS);
  child.kill('SIGCONT');
  expect(await running).toMatchObject({ ok: true });
  expect(await ran()).toEqual([2_000]);
});

test('killed during a call: unknown; killed before it: nothing ran', { timeout: 40_000 }, async () => {
  const { backend, child } = await serve();
  const running = refusal(call(backend, 3 * SILENCE_MS));
  await after(500);
  child.kill('SIGKILL');
  expect(await running).toMatchObject({ code: 'session_lost', silences: expect.closeTo(1.2, 0) as number });
  const refusals = await Promise.all([refusal(call(backend, 0)), refusal(session(backend).prompt(never())), refusal(create(backend))]);
  expect(refusals.map(({ code }) => code)).toEqual(Array(3).fill('backend_unreachable'));
});

test('whoever answers is not cut: neither a long call with heartbeats, nor a setup, nor a constructor', { timeout: 20_000 }, async () => {
  const { backend, ran } = await serve();
  const long = 3 * SILENCE_MS;
  expect(await Promise.all([create(backend, long), session(backend).prompt(never()), call(backend, long)])).toMatchObject([
    { sid: 's' },
    [],
    { ok: true },
  ]);
  expect(await ran()).toEqual([long]);
});

test('an episode whose opening was not answered is forgotten before its id is used again', { timeout: 20_000 }, async () => {
  const { backend, child } = await serve();
  const opening = refusal(create(backend, 800));
  await after(300);
  child.kill('SIGSTOP');
  expect(await opening).toMatchObject({ code: 'backend_timeout' });
  child.kill('SIGCONT');
  expect(await create(backend)).toMatchObject({ sid: 's' });
});
