import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { PalestraClient } from '@palestra/client';
import { Interpreter, prepareRuntime } from '../../libs/sandbox/src/python/interpreter.ts';
import { LEVELS } from '../../libs/sandbox/src/process/command.ts';
import { detectIsolation } from '../../libs/sandbox/src/process/isolation.ts';
import { makeNodeImage } from '../support/node-image.ts';
import { type SharedPalestra, sharedPalestra } from '../support/palestra.ts';

/** Finding C0 of the audit: programs that a key with the scope `sessions` sends to coding_env. tests/security/sandbox.spec.ts takes the process over. */
const PATIENCE_MS = 120_000;
const engine = process.env['PALESTRA_TEST_CONTAINER_ENGINE'];

let server: SharedPalestra;
let folder: string;
let connections = 0;
const listener = createServer((socket) => {
  connections += 1;
  socket.destroy();
});

beforeAll(async () => {
  server = await sharedPalestra();
  folder = mkdtempSync(path.join(tmpdir(), 'palestra-test-'));
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));
});
afterAll(() => {
  listener.close();
  rmSync(folder, { recursive: true, force: true });
});

/** What a program prints, as the client of the narrow key reads it. */
async function play(code: string): Promise<string> {
  const owner = new PalestraClient({ url: server.url, apiKey: server.apiKey });
  const { key } = await owner.keys.create('narrow', ['sessions']);
  const client = new PalestraClient({ url: server.url, apiKey: key });
  await using session = await client.session({ environment: 'palestra/coding_env', split: 'train', index: 0 });
  const output = JSON.stringify(await session.call('step', { code }));
  await client.close();
  return output;
}

/** Everything in the collector's hands that leads to JavaScript, called with a program of the machine. */
const COLLECTOR = `
import gc, sys
found = []
for thing in gc.get_objects():
    kind = type(thing)
    if 'Js' in kind.__name__ or 'pyodide' in getattr(kind, '__module__', ''):
        found.append(thing)
for thing in found:
    for name in ('js', 'globalThis', 'self', 'constructor', 'process', 'load_module', 'create_module', 'jsobj'):
        try:
            value = getattr(thing, name)
            print('reached', name, value)
            print(value.process.getBuiltinModule('child_process').execFileSync('/usr/bin/id').toString())
        except BaseException as error:
            pass
for module in ('js', 'pyodide', '_pyodide', '_pyodide_core', 'pyodide_js'):
    try:
        print('module', module, __import__(module).process.getBuiltinModule('child_process').execFileSync('/usr/bin/id').toString())
    except BaseException as error:
        print('refused', module)
print('end')
`;

test('modules and objects of JavaScript reach no program of the machine', { timeout: PATIENCE_MS }, async () => {
  const text = await play(COLLECTOR);
  expect(text).toContain('end');
  expect(text).not.toMatch(/uid=\d+/);
});

test('Python does not see files, processes and sockets of the machine', { timeout: PATIENCE_MS }, async () => {
  const { port } = listener.address() as { port: number };
  const text = await play(`
import os, socket, subprocess
def attempt(name, act):
    try:
        print(name, '->', act())
    except BaseException as error:
        print(name, 'refused', type(error).__name__)
attempt('data', lambda: os.listdir(${JSON.stringify(server.dataDir)}))
attempt('secret', lambda: open(${JSON.stringify(path.join(server.dataDir, 'server-secret'))}).read())
attempt('environ', lambda: open('/proc/self/environ').read())
attempt('parent', lambda: open('/proc/%d/environ' % os.getppid()).read())
attempt('passwd', lambda: open('/etc/passwd').read())
attempt('write', lambda: open(${JSON.stringify(path.join(folder, 'was-here'))}, 'w').write('x'))
attempt('connect', lambda: socket.create_connection(('127.0.0.1', ${port}), 2).send(b'hello'))
attempt('shell', lambda: subprocess.run(['/usr/bin/id'], capture_output=True).stdout)
attempt('system', lambda: os.system('/usr/bin/id > ${path.join(folder, 'was-here')}'))
attempt('variables', lambda: dict(os.environ))
print('end')
`);
  expect(text).toContain('end');
  for (const name of ['data', 'secret', 'environ', 'parent', 'write', 'shell']) expect(text).toContain(`${name} refused`);
  expect(text).not.toMatch(/uid=\d+|root:x|PALESTRA_|DATABASE_URL/);
  const secrets = readdirSync(server.dataDir, { withFileTypes: true }).filter((entry) => entry.isFile());
  for (const { name } of secrets) expect(text).not.toContain(readFileSync(path.join(server.dataDir, name), 'latin1').trim() || '(empty)');
  expect(connections).toBe(0);
  expect(readdirSync(folder)).toEqual([]);
});

describe.each(LEVELS)('level %s', (level) => {
  test('runs programs, and ends an endless one', { timeout: PATIENCE_MS }, async (context) => {
    const container = level === 'container' && engine !== undefined ? { engine, image: makeNodeImage(engine) } : undefined;
    const found = await detectIsolation({ forced: level, container, isExposed: false, allowWeak: false });
    // Under CI tests/security/sandbox.spec.ts fails where a level is missing.
    if (found.level === null) return context.skip();
    const interpreter = await Interpreter.start(await prepareRuntime({ level, container }));
    expect(await interpreter.run('print(6 * 7)')).toMatchObject({ stdout: '42\n', exitCode: 0 });
    const ended = interpreter.run('while True: pass');
    const before = interpreter.usage();
    if (before !== null) await expect.poll(() => interpreter.usage()!.cpuMs).toBeGreaterThan(before.cpuMs);
    await interpreter.close();
    await expect(ended).rejects.toThrow('the interpreter ended');
  });
});
