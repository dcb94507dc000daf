import { EnvironmentHost } from '@palestra/environment-kit';
import { afterAll, afterEach, describe, expect, test } from 'vitest';
import { codingEnv } from './coding_env.environment.ts';
import { LIMITS } from './python/interpreter.ts';

/** Interpreters start here, on a machine that may be busy. */
const PATIENCE_MS = 60_000;

const host = new EnvironmentHost([codingEnv]);
afterAll(() => host.close());
/** Of the running test. An episode keeps its interpreter until it is over. */
const sids: string[] = [];
afterEach(() => Promise.all(sids.splice(0).map((sid) => host.delete(sid))));

interface Seen {
  stdout: string;
  stderr: string;
  exit_code: number;
  reward: number;
  metadata: unknown;
}
let opened = 0;
async function open(keep = false): Promise<(code: string) => Promise<Seen>> {
  const sid = String((opened += 1));
  if (!keep) sids.push(sid);
  await host.create({ sid, env: null, task: { kind: 'index', split: 'train', index: 0 }, toolsetName: null, secrets: {} });
  return async (code) => {
    const { output } = JSON.parse((await host.call(sid, 'step', { code })).text) as {
      output: { blocks: [{ text: string }]; reward: number; metadata: unknown };
    };
    return { ...(JSON.parse(output.blocks[0].text) as Seen), reward: output.reward, metadata: output.metadata };
  };
}
/** An episode that is not over: whatever was tried in it, the next program runs. */
const expectUsable = async (run: (code: string) => Promise<Seen>) =>
  expect(await run('print("still here")')).toMatchObject({ stdout: 'still here\n' });

describe('a program', () => {
  test('that fails is a result', { timeout: PATIENCE_MS }, async () => {
    const run = await open();
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

  test('finds what the one before has defined, in its own episode only', { timeout: PATIENCE_MS }, async () => {
    const [one, other] = [await open(), await open()];
    await one('def double(x):\n  return 2 * x\nopen("kept", "w").write("é€😀")');
    expect(await one('print(double(21), open("kept").read())')).toMatchObject({ stdout: '42 é€😀\n', stderr: '', exit_code: 0 });
    expect(await other('double(1)')).toMatchObject({ exit_code: 1, stderr: expect.stringContaining('NameError') });
    expect(await other('open("kept")')).toMatchObject({ stderr: expect.stringContaining('FileNotFoundError') });
  });

  test('prints so much and no more', { timeout: PATIENCE_MS }, async () => {
    const run = await open();
    const { stdout } = await run('print("é" * 10_000_000)');
    expect(stdout).toBe(`${'é'.repeat(LIMITS.outputCharacters)}\n[output cut after ${LIMITS.outputCharacters} characters]\n`);
    await expectUsable(run);
  });
});

/** Whatever is done to Python's own defences first: their text in front of an attempt. */
const UNLOCK = `import sys
for name in [n for n, m in sys.modules.items() if m is None]: del sys.modules[name]
`;

describe('out of reach', () => {
  // One episode for all attempts that are only refused: each has to leave it usable.
  let shared: Promise<(code: string) => Promise<Seen>> | undefined;
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
    shared ??= open(true);
    const run = await shared;
    const seen = await run(code);
    expect(seen.exit_code).toBe(1);
    expect(seen.stderr).toContain(error);
    await expectUsable(run);
  });

  test('the environment variables of the host', { timeout: PATIENCE_MS }, async () => {
    const run = await open();
    process.env['PALESTRA_TEST_SECRET'] = 'hush';
    const { stdout } = await run('import os\nprint(dict(os.environ))');
    delete process.env['PALESTRA_TEST_SECRET'];
    expect(stdout).toContain("'HOME': '/home/user'");
    expect(stdout).not.toMatch(/hush|PALESTRA/);
  });

  // With ctypes a program is master of its interpreter, and can have the interpreter evaluate JavaScript. It finds that nothing can be evaluated.
  test('JavaScript made from strings, for one that owns its memory', { timeout: PATIENCE_MS }, async () => {
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

  test('JavaScript’s constructors, for one that gets hold of an object of it', { timeout: PATIENCE_MS }, async () => {
    const run = await open();
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
  const expectReplaced = async (code: string, exitCode: number) => {
    const run = await open();
    await run('x = 1');
    expect(await run(code)).toMatchObject({
      stdout: '',
      exit_code: exitCode,
      stderr: expect.stringContaining('variables and files are gone'),
    });
    expect(await run('x')).toMatchObject({ stderr: expect.stringContaining('NameError') });
    await expectUsable(run);
  };
  test('time: it ends, and a new interpreter is there', { timeout: 2 * PATIENCE_MS }, async () => {
    const endless = [
      'while True: pass',
      'while True:\n  try:\n    while True: pass\n  except BaseException: pass',
      '9**9**9',
      'import time; time.sleep(600)',
    ];
    await Promise.all(endless.map((code) => expectReplaced(code, 124)));
    expect(sids).toHaveLength(endless.length);
  });
  test('force: it ends, and a new interpreter is there', { timeout: PATIENCE_MS }, async () => {
    const ends = ['import os; os._exit(3)', 'import os; os.abort()', 'import signal; signal.raise_signal(9)'];
    await Promise.all(ends.map((code) => expectReplaced(code, 134)));
    expect(sids).toHaveLength(ends.length);
  });

  test.each([
    ['memory at once', 'x = bytearray(1 << 30)', 'MemoryError'],
    ['memory of four gigabytes', 'x = bytearray(1 << 32)', 'OverflowError'],
    ['memory bit by bit', 'x = []\nwhile True: x.append(bytearray(1 << 20))', 'MemoryError'],
    ['files', 'f = open("x", "wb")\nwhile True: f.write(bytes(1 << 20))', 'No space left on device'],
    ['files that are only named long', 'import os\nopen("y", "w")\nos.truncate("y", 1 << 32)', 'No space left on device'],
    ['pipes', 'import os\n_, w = os.pipe()\nwhile True: os.write(w, bytes(65536))', 'No space left on device'],
    ['recursion', 'def f(): f()\nf()', 'RecursionError'],
  ])('%s is an error in Python', { timeout: PATIENCE_MS }, async (_, code, error) => {
    const run = await open();
    expect(await run(code)).toMatchObject({ exit_code: 1, stderr: expect.stringContaining(error) });
    await run('x = f = None');
    await expectUsable(run);
  });

  test('a session that ends takes its running program with it', { timeout: PATIENCE_MS }, async () => {
    const run = await open();
    await run('1');
    const running = run('import time; time.sleep(600)');
    const deleted = new Promise((resolve) => setTimeout(resolve, 200)).then(() => host.delete(String(opened)));
    await Promise.all([expect(running).rejects.toThrow('Session deleted'), deleted]);
    await expectUsable(await open());
  });
});
