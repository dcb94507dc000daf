import { execFileSync } from 'node:child_process';
import { readdirSync, statSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { type Command, type Level, LEVELS, sandboxCommand } from '../../libs/sandbox/src/process/command.ts';
import { commandOf, detectIsolation } from '../../libs/sandbox/src/process/isolation.ts';
import { makeProgramFolder, type ProgramFolder } from '../../libs/sandbox/src/process/program-folder.ts';
import { SandboxedProcess } from '../../libs/sandbox/src/process/sandboxed-process.ts';
import { makeNodeImage } from '../support/node-image.ts';

/**
 * What an attacker gets who runs native code in the process of an interpreter, as if every defence inside of it had failed. The test has what a
 * service has: a data directory, secrets in its environment, a listener on loopback.
 */
const SECRET = 'a-secret-of-the-service';
const repository = path.resolve(import.meta.dirname, '../..');
const MOST_BYTES = 1 << 20;
const PATIENCE_MS = 60_000;

interface Loot {
  loot: Record<string, { got: unknown } | { refused: string }>;
  env: Record<string, string>;
  descriptors: { isFolder: boolean; device: number }[];
  uid: number;
}

/** A container engine that works: `.ci/run` names it. */
const engine = process.env['PALESTRA_TEST_CONTAINER_ENGINE'];
const container = engine === undefined ? undefined : { engine, image: makeNodeImage(engine) };
const offered: Level[] = [];
let world: string;
let folder: ProgramFolder;
let connections = 0;
const listener = createServer((socket) => {
  connections += 1;
  socket.destroy();
});

beforeAll(async () => {
  vi.stubEnv('PALESTRA_TEST_SECRET', SECRET);
  for (const forced of LEVELS) {
    const { level } = await detectIsolation({ forced, container, isExposed: false, allowWeak: false });
    if (level !== null) offered.push(level);
  }
  world = await mkdtemp(path.join(tmpdir(), 'palestra-test-'));
  // Readable and writable for everybody: what refuses is not the mode of a file.
  await rm(world, { recursive: true });
  await mkdir(path.join(world, 'data'), { recursive: true, mode: 0o777 });
  await writeFile(path.join(world, 'data/server-secret'), SECRET, { mode: 0o666 });
  folder = await makeProgramFolder();
  await folder.copy(path.join(import.meta.dirname, 'hostile.fixture.mjs'));
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));
}, PATIENCE_MS);
afterAll(async () => {
  vi.unstubAllEnvs();
  listener.close();
  if (container) execFileSync(container.engine, ['rmi', '--force', container.image]);
  await folder?.remove();
  await rm(world, { recursive: true, force: true });
});

/** Native code of any package: for this machine, in the folder of the bundler's binaries. */
const anAddon = readdirSync(path.join(repository, 'node_modules/@rolldown'), { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.node'))
  .map((file) => path.join(repository, 'node_modules/@rolldown', file))[0]!;

const targets = () => ({
  files: [path.join(world, 'data/server-secret'), '/etc/shadow', '/etc/passwd', path.join(repository, 'package.json')],
  writable: [path.join(world, 'data'), tmpdir(), folder.path, '/usr', '.'],
  program: process.execPath,
  addon: anAddon,
  port: (listener.address() as { port: number }).port,
  pid: process.pid,
});

/** `hasPermissions`: behind Node's permission model, which native code passes by. `isLocked`: as every interpreter is before its first program. */
function attack(level: Level, { hasPermissions = true, isLocked = true } = {}): Promise<Loot> {
  const program = { folder: folder.path, flags: [], args: ['hostile.fixture.mjs'] };
  const command = level === 'container' ? commandOf({ level, container }, program) : sandboxCommand(level, program, hasPermissions);
  return attackBy(command, isLocked);
}

async function attackBy(command: Command, isLocked: boolean): Promise<Loot> {
  const hostile = new SandboxedProcess(command);
  try {
    await hostile.receive(MOST_BYTES);
    if (isLocked) await hostile.lock();
    return JSON.parse(String(await hostile.ask(JSON.stringify(targets()), MOST_BYTES))) as Loot;
  } finally {
    await hostile.kill();
  }
}

/** Names of the attempts that succeeded. A container has a `/proc` with itself in it. */
const successes = ({ loot }: Loot): string[] =>
  Object.entries(loot).flatMap(([name, result]) =>
    'got' in result && !(name === 'other processes' && String(result.got) === '') ? [name] : [],
  );

/** Node.js opens `/`, which behind namespaces is a file system of the process alone. */
const hostDevices = ['/', tmpdir(), repository, process.cwd()].map((file) => statSync(file).dev);
const isOwnRoot = ({ isFolder, device }: Loot['descriptors'][number]) => isFolder && !hostDevices.includes(device);

test('this machine offers the levels that are tested', () => {
  expect(offered).toContain('process');
  // The continuous integration installs bubblewrap and a container engine.
  if (process.env['CI']) expect(offered).toEqual(LEVELS);
});

/** Every attempt is one that succeeds where nothing prevents it: for root all of them do. */
test('without a sandbox the same code has full access', { timeout: PATIENCE_MS }, async () => {
  const fixture = path.join(import.meta.dirname, 'hostile.fixture.mjs');
  const seen = await attackBy({ command: process.execPath, args: [fixture], cwd: world }, false);
  const forRoot = ['read /etc/shadow', 'become root', 'write /usr'];
  const expected = Object.keys(seen.loot).filter((name) => process.getuid?.() === 0 || !forRoot.includes(name));
  expect(successes(seen)).toEqual(expected);
  expect(JSON.stringify(seen.loot['environ of the service'])).toContain('PATH');
  expect(connections).toBeGreaterThan(0);
});

describe.each(LEVELS)('native code at level %s', (level) => {
  test.each([
    ['as it runs', {}],
    ['that passes the permission model by', { hasPermissions: false }],
  ])('%s, gets nothing', { timeout: PATIENCE_MS }, async (_, options) => {
    if (!offered.includes(level)) return;
    const before = connections;
    const seen = await attack(level, options);
    // Without root there is no other user to run as, and nothing but another user or a namespace refuses signals.
    const isSameUser = level === 'process' && process.getuid?.() !== 0;
    expect(successes(seen)).toEqual(isSameUser ? ['signal to the service'] : []);
    expect(Object.keys(seen.loot)).toHaveLength(21);
    // bwrap names the folder that it enters, an engine what the image is.
    if (level !== 'container') expect(seen.env).toEqual(level === 'namespace' ? { PWD: path.join(folder.path, 'empty') } : {});
    expect(JSON.stringify(seen.env)).not.toContain('PALESTRA');
    expect(seen.descriptors.filter((descriptor) => !isOwnRoot(descriptor))).toEqual([]);
    expect(JSON.stringify(seen)).not.toContain(SECRET);
    expect(connections).toBe(before);
    expect(await readdir(path.join(world, 'data'))).toEqual(['server-secret']);
    if (process.getuid?.() === 0) expect(seen.uid).toBeGreaterThan(60_000);
  });
});

test('with namespaces alone a process sees only itself', { timeout: PATIENCE_MS }, async () => {
  if (!offered.includes('namespace')) return;
  const before = connections;
  const seen = await attack('namespace', { hasPermissions: false, isLocked: false });
  // A network without a way out, threads, and copies of itself, which see as little.
  expect(successes(seen)).toEqual(expect.arrayContaining(['another program', 'thread']));
  expect(successes(seen).filter((name) => !['another program', 'thread', 'listen', 'datagrams'].includes(name))).toEqual([]);
  expect(connections).toBe(before);
});
