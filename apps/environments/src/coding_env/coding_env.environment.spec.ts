import { EnvironmentHost } from '@palestra/environment-kit';
import { LIMITS, PROGRAM_LIMITS } from '@palestra/sandbox';
import { afterAll, afterEach, describe, expect, test, vi } from 'vitest';
import { codingEnv, defineCodingEnv } from './coding_env.environment.ts';

/** Interpreters start here, on a machine that may be busy. */
const PATIENCE_MS = 60_000;

const host = new EnvironmentHost([codingEnv]);
/** For programs that never end. Nothing else in its episodes takes a noticeable part of this. */
const hurriedHost = new EnvironmentHost([defineCodingEnv({ ...PROGRAM_LIMITS, cpuMs: 1_000, wallMs: 4_000 })]);
afterAll(() => Promise.all([host.close(), hurriedHost.close()]));
// Set before the first interpreter starts.
vi.stubEnv('PALESTRA_TEST_SECRET', 'hush');
afterAll(() => vi.unstubAllEnvs());
/** Of the running test. An episode keeps its interpreter until it is over. */
const sids: string[] = [];
afterEach(() => Promise.all(sids.splice(0).map((sid) => Promise.all([host.delete(sid), hurriedHost.delete(sid)]))));

interface Seen {
  stdout: string;
  stderr: string;
  exit_code: number;
  reward: number;
  metadata: unknown;
}
let opened = 0;
type Run = (code: string) => Promise<Seen>;
async function open({ on = host, keep = false } = {}): Promise<Run> {
  const sid = String((opened += 1));
  if (!keep) sids.push(sid);
  await on.create({ sid, env: null, task: { kind: 'index', split: 'train', index: 0 }, toolsetName: null, secrets: {} });
  return async (code) => {
    const { output } = JSON.parse((await on.call(sid, 'step', { code })).text) as {
      output: { blocks: [{ text: string }]; reward: number; metadata: unknown };
    };
    return { ...(JSON.parse(output.blocks[0].text) as Seen), reward: output.reward, metadata: output.metadata };
  };
}
let shared: Promise<Run> | undefined;
/** One episode, for programs that leave it usable and look for nothing that another one defines: an interpreter takes half a second to start. */
const openShared = () => (shared ??= open({ keep: true }));
/** An episode that is not over: whatever was tried in it, the next program runs. */
const expectUsable = async (run: Run) => expect(await run('print("still here")')).toMatchObject({ stdout: 'still here\n' });

describe('a program', () => {
  test('that fails has a result', { timeout: PATIENCE_MS }, async () => {
    const run = await openShared();
    const failed = await run('x = 1\n1 / 0');
    expect(failed).toMatchObject({ stdout: '', exit_code: 1, reward: 0.1 });
    expect(failed.stderr).toMatch(
      /^Traceback \(most recent call last\):\n {2}File "<action>", line 2, in <module>\n {4}1 \/ 0\n[ ~^]+\nZeroDivisionError: division by zero\n$/,
    );
    expect(await run('def f(:')).toMatchObject({
      exit_code: 1,
      reward: expect.closeTo(-0.1, 12),
      stderr: expect.stringContaining('SyntaxError'),
    });
    expect(await run('import sys; sys.exit(7)')).toMatchObject({ exit_code: 7, stderr: '' });
    expect(await run('raise SystemExit("bye")')).toMatchObject({ exit_code: 1, stderr: 'bye\n' });
    expect(await run('import os')).toMatchObject({ exit_code: 0, reward: -0.9, metadata: { safety_violation: 'import\\s+os' } });
    expect(await run('input()')).toMatchObject({ exit_code: 1 });
    expect(await run('import numpy')).toMatchObject({ exit_code: 1, stderr: expect.stringContaining("No module named 'numpy'") });
  });

  test('sees names of earlier programs of its episode only', { timeout: PATIENCE_MS }, async () => {
    const [one, other] = [await openShared(), await open()];
    await one('def double(x):\n  return 2 * x\nopen("kept", "w").write("é€😀")');
    expect(await one('print(double(21), open("kept").read())')).toMatchObject({ stdout: '42 é€😀\n', stderr: '', exit_code: 0 });
    expect(await other('double(1)')).toMatchObject({ exit_code: 1, stderr: expect.stringContaining('NameError') });
    expect(await other('open("kept")')).toMatchObject({ stderr: expect.stringContaining('FileNotFoundError') });
  });

  test('has limited output', { timeout: PATIENCE_MS }, async () => {
    const run = await openShared();
    const { stdout } = await run('print("é" * 1_000_000)');
    expect(stdout).toBe(`${'é'.repeat(LIMITS.outputCharacters)}\n[output cut after ${LIMITS.outputCharacters} characters]\n`);
    await expectUsable(run);
  });
});

/** Whatever is done to Python's own defences first: their text in front of an attempt. */
const UNLOCK = `import sys
for name in [n for n, m in sys.modules.items() if m is None]: del sys.modules[name]
`;

describe('out of reach', () => {
  test.each([
    ['the host’s files', 'open("/etc/passwd").read()', 'FileNotFoundError'],
    ['the host’s folders', 'import os; os.listdir("/work" if os.path.exists("/work") else "/usr")', 'FileNotFoundError'],
    ['the host’s processes', 'import subprocess; subprocess.run(["ls"])', 'not support processes'],
    ['fork', 'import os; os.fork()', 'Function not implemented'],
    ['a shell’s fork bomb', ':(){ :|:& };:', 'SyntaxError'],
    ['threads', 'import threading; threading.Thread(target=print).start()', "can't start new thread"],
    ['sockets', 'import socket; socket.create_connection(("127.0.0.1", 80), 1)', 'Error'],
    ['the web', 'import urllib.request; urllib.request.urlopen("http://127.0.0.1/")', 'URLError'],
    ['JavaScript', 'import js', 'ModuleNotFoundError'],
    ['JavaScript by another name', 'import importlib; importlib.import_module("pyodide_js")', 'ModuleNotFoundError'],
    ['ctypes', 'import ctypes', 'ModuleNotFoundError'],
    // From here on, what Python's side hides is in sight again.
    ['JavaScript, unlocked', `${UNLOCK}import js`, 'ModuleNotFoundError'],
    ['Pyodide’s interface, unlocked', `${UNLOCK}import pyodide_js`, 'ModuleNotFoundError'],
    ['run_js, unlocked', `${UNLOCK}from pyodide.code import run_js; run_js("1")`, 'Error'],
    ['micropip, unlocked', `${UNLOCK}import micropip`, 'ModuleNotFoundError'],
    ['pyodide.http, unlocked', `${UNLOCK}from pyodide.http import open_url; open_url("http://127.0.0.1/")`, 'Error'],
    ['the finder of JavaScript modules', `${UNLOCK}from _pyodide._importhook import jsfinder\nprint(jsfinder.jsproxies["js"])`, 'KeyError'],
    ['what the collector knows', 'import gc\n[o for o in gc.get_objects() if type(o).__name__ == "JsProxy"][0]', 'IndexError'],
  ])('%s', { timeout: PATIENCE_MS }, async (_, code, error) => {
    const run = await openShared();
    const seen = await run(code);
    expect(seen.exit_code).toBe(1);
    expect(seen.stderr).toContain(error);
    await expectUsable(run);
  });

  test('the environment variables of the host', { timeout: PATIENCE_MS }, async () => {
    const run = await openShared();
    const { stdout } = await run('import os\nprint(dict(os.environ))');
    expect(stdout).toContain("'HOME': '/home/user'");
    expect(stdout).not.toMatch(/hush|PALESTRA/);
  });

  // With ctypes a program is master of its interpreter, and can have the interpreter evaluate JavaScript. It finds that nothing can be evaluated.
  test('JavaScript made from strings, for a program that controls its memory', { timeout: PATIENCE_MS }, async () => {
    const run = await open();
    expect(await run(`${UNLOCK}import ctypes\nprint(ctypes.CDLL(None).emscripten_run_script_int(b"42"))`)).toMatchObject({
      stdout: '',
      exit_code: 134,
    });
    expect(
      await run(`${UNLOCK}import ctypes\nctypes.CDLL(None).system(b"touch /tmp/palestra-escaped")\nctypes.CDLL(None).system(b"ls")`),
    ).toMatchObject({ stdout: '' });
    await expectUsable(run);
  });

  test("JavaScript's constructors, for a program that gets a JavaScript object", { timeout: PATIENCE_MS }, async () => {
    const run = await openShared();
    const held = `${UNLOCK}import _pyodide_core
from _pyodide._base import eval_code
from pyodide.ffi import create_proxy, JsProxy`;
    const seen = await run(`${held}\nprint(JsProxy)\nprint(create_proxy(print).constructor.constructor("return process")())`);
    expect(seen.stdout).not.toContain('process');
    expect(seen.exit_code).not.toBe(0);
    await expectUsable(run);
  });
});

describe('too much', () => {
  /** Runs the programs one after another. Each takes its interpreter with it. */
  const expectReplaced = async (run: Run, programs: string[], exitCode: number) => {
    for (const code of programs) {
      expect(await run('x = 1')).toMatchObject({ exit_code: 0 });
      expect(await run(code)).toMatchObject({
        stdout: '',
        exit_code: exitCode,
        stderr: expect.stringContaining('variables and files are gone'),
      });
      expect(await run('x')).toMatchObject({ stderr: expect.stringContaining('NameError') });
      await expectUsable(run);
    }
  };
  test('time: the program ends, and a new interpreter is ready', { timeout: 2 * PATIENCE_MS }, async () => {
    const stubborn = 'while True:\n  try:\n    while True: pass\n  except BaseException: pass';
    const [one, other] = [await open({ on: hurriedHost }), await open({ on: hurriedHost })];
    await Promise.all([
      expectReplaced(one, ['while True: pass', '9**9**9'], 124),
      expectReplaced(other, [stubborn, 'import time; time.sleep(600)'], 124),
    ]);
  });
  test('memory: the program ends, and a new interpreter is ready', { timeout: PATIENCE_MS }, async () => {
    const ends = ['import os; os._exit(3)', 'import os; os.abort()', 'import signal; signal.raise_signal(9)'];
    await expectReplaced(await open(), ends, 134);
  });

  test.each([
    ['memory at once', 'x = bytearray(1 << 30)', 'MemoryError', openShared],
    ['memory of four gigabytes', 'x = bytearray(1 << 32)', 'OverflowError', openShared],
    ['memory bit by bit', 'x = []\nwhile True: x.append(bytearray(1 << 20))', 'MemoryError', openShared],
    ['recursion', 'def f(): f()\nf()', 'RecursionError', openShared],
    // Each of these uses up what an episode may write.
    ['files', 'f = open("x", "wb")\nwhile True: f.write(bytes(1 << 20))', 'No space left on device', open],
    ['files that are only named long', 'import os\nopen("y", "w")\nos.truncate("y", 1 << 32)', 'No space left on device', open],
    ['pipes', 'import os\n_, w = os.pipe()\nwhile True: os.write(w, bytes(65536))', 'No space left on device', open],
  ])('%s is an error in Python', { timeout: PATIENCE_MS }, async (_, code, error, episode) => {
    const run = await episode();
    expect(await run(code)).toMatchObject({ exit_code: 1, stderr: expect.stringContaining(error) });
    await run('x = f = None');
    await expectUsable(run);
  });

  test('ends the running program of a session that ends', { timeout: PATIENCE_MS }, async () => {
    const run = await open();
    await run('1');
    const sid = String(opened);
    const running = run('import time; time.sleep(600)');
    const deleted = new Promise((resolve) => setTimeout(resolve, 200)).then(() => host.delete(sid));
    await Promise.all([expect(running).rejects.toThrow('Session deleted'), deleted]);
    await expectUsable(await openShared());
  });
});

test('refuses sessions if programs cannot be isolated', async () => {
  const refusal = 'Install bubblewrap';
  const refusing = new EnvironmentHost([defineCodingEnv(PROGRAM_LIMITS, async () => ({ level: 'process', refusal, summary: refusal }))]);
  const task = { kind: 'index', split: 'train', index: 0 } as const;
  const created = refusing.create({ sid: 'refused', env: null, task, toolsetName: null, secrets: {} });
  await expect(created).rejects.toMatchObject({ code: 'isolation_required', message: refusal });
  await refusing.close();
});
