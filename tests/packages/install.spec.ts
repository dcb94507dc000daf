import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, inject, test, vi } from 'vitest';
import { freePort } from '@palestra/hosting';

/**
 * The tarballs in empty folders, on each supported version of Node.js: what an author of environments types, and what somebody types who
 * runs the service. `PALESTRA_TEST_NODES` names the programs, joined by colons; by default the one that runs the tests.
 */
const root = path.resolve(import.meta.dirname, '../..');
const packages = inject('packages');
const nodes = (process.env['PALESTRA_TEST_NODES'] || process.execPath).split(':');
const python = process.env['PALESTRA_PYTHON_V167'];
const readme = readFileSync(path.join(root, 'README.md'), 'utf8');
const block = (language: string, start: string, text = readme): string => {
  const found = [...text.matchAll(/```(\w+)\n([^]*?)```/g)].find(([, kind, code]) => kind === language && code!.startsWith(start));
  if (!found) throw new Error(`README.md has no ${language} block that starts with "${start}"`);
  return found[2]!;
};
/** TypeScript's oldest and newest version that we promise. */
const COMPILERS = { ts5: 'npm:typescript@5.9', ts7: 'npm:typescript@7' };
/** Entry points for programs of users. */
const PUBLIC = ['@palestra/environment-kit', '@palestra/client', '@palestra/protocol'];

/** A Python with the official client. */
function withClient(): string {
  if (!python) throw new Error('PALESTRA_PYTHON_V167 must name a Python with the official client');
  return python;
}

/** The tarballs of these packages and of ours that they need: a registry would give the latter. */
function tarballsOf(...names: string[]): string[] {
  const found = new Set<string>();
  const add = (name: string) => {
    if (found.has(name)) return;
    found.add(name);
    for (const other of Object.keys(packageOf(name).manifest.dependencies ?? {})) if (isOurs(other)) add(other);
  };
  names.forEach(add);
  return [...found].map((name) => packageOf(name).tarball);
}
/** For the official client: where to find the service. */
const official = (url: string, key: string) => ({
  OPENREWARD_URL: url,
  OPENREWARD_API_URL: url,
  OPENREWARD_SESSION_URL: url,
  OPENREWARD_API_KEY: key,
  OPENREWARD_DISABLE_UPDATE_CHECK: '1',
});
const PLAY_GUESS = path.join(import.meta.dirname, 'play_guess.py');
const isOurs = (name: string): boolean => name === 'palestra' || name.startsWith('@palestra/');
const packageOf = (name: string) => packages.find(({ manifest }) => manifest.name === name)!;

/** Command lines that have this text, except of this process. */
const processesWith = (text: string): string[] =>
  readdirSync('/proc')
    .filter((pid) => /^\d+$/.test(pid) && Number(pid) !== process.pid)
    .map((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
      } catch {
        return '';
      }
    })
    .filter((command) => command.includes(text));

describe.each(nodes.map((node, at) => [node, at] as const))('installed by %s', (node, at) => {
  // What they do does not depend on Node.js: each runs on one.
  const compilers = Object.keys(COMPILERS).filter((_, index) => index % nodes.length === at);
  const folder = mkdtempSync(path.join(tmpdir(), 'palestra-installed-'));
  const author = path.join(folder, 'author');
  const operator = path.join(folder, 'operator');
  const env = { ...process.env, NODE_OPTIONS: '', NODE_PATH: '', PATH: `${path.dirname(node)}:${process.env['PATH']}` };
  const run = async (cwd: string, command: string, args: string[], more: NodeJS.ProcessEnv = {}) => {
    const { stdout, stderr } = await promisify(execFile)(command, args, { cwd, env: { ...env, ...more }, timeout: 240_000 }).catch(
      (error: { stdout: string; stderr: string; message: string }) => {
        throw new Error(`${command} ${args.join(' ')}: ${error.message}\n${error.stdout}${error.stderr}`);
      },
    );
    return stdout + stderr;
  };
  const children: ChildProcess[] = [];
  /** Starts a program and waits for a line. `detached`: a process group, which a Ctrl-C in a terminal signals. */
  const start = async (cwd: string, command: string, args: string[], ready: RegExp, more: NodeJS.ProcessEnv = {}) => {
    const child = spawn(command, args, { cwd, env: { ...env, ...more }, detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
    children.push(child);
    let output = '';
    for (const stream of [child.stdout!, child.stderr!]) stream.on('data', (data: Buffer) => (output += data.toString()));
    const found = () => ready.exec(output);
    await vi.waitFor(
      () => {
        if (child.exitCode !== null) throw new Error(`${command} ${args.join(' ')} ended with ${child.exitCode}:\n${output}`);
        if (!found()) throw new Error(`no ${ready} in the output of ${command} ${args.join(' ')}:\n${output}`);
      },
      { timeout: 120_000, interval: 100 },
    );
    return { child, match: found()!, output: () => output };
  };

  beforeAll(async () => {
    for (const one of [author, operator]) await run('/', 'mkdir', ['-p', one]);
    await run(author, 'npm', ['init', '-y']);
    await run(author, 'npm', ['pkg', 'set', 'type=module']);
  });
  afterAll(() => {
    for (const child of children) {
      try {
        process.kill(-child.pid!, 'SIGKILL');
      } catch {
        // It has ended.
      }
    }
    rmSync(folder, { recursive: true, force: true });
  });

  test('an author installs the kit, the client and the protocol', async () => {
    const aliases = compilers.map((name) => `${name}@${COMPILERS[name as keyof typeof COMPILERS]}`);
    await run(author, 'npm', ['install', '--prefer-offline', ...tarballsOf(...PUBLIC), ...aliases]);
    writeFileSync(path.join(author, 'mine.ts'), block('ts', '// mine.ts').replace('9000', String(await freePort())));
    PUBLIC.forEach((name, index) => {
      const text = readFileSync(path.join(author, 'node_modules', name, 'README.md'), 'utf8');
      writeFileSync(path.join(author, `readme${index}.ts`), block('ts', 'import', text));
    });
    const entries = PUBLIC.flatMap((name) =>
      Object.entries(packageOf(name).manifest.exports).flatMap(([entry, target]) =>
        typeof target === 'string' ? [] : [name + entry.slice(1)],
      ),
    );
    expect(entries.length).toBeGreaterThan(3);
    const imports = entries.map((entry, index) => `import * as entry${index} from '${entry}';\nexport { entry${index} };\n`);
    writeFileSync(path.join(author, 'entries.ts'), imports.join(''));
    expect(readdirSync(path.join(author, 'node_modules'))).not.toContain('palestra');
  });

  test.each(compilers)('%s compiles what README says, with the declarations of every entry', async (compiler) => {
    const options = ['--strict', '--skipLibCheck', 'false', '--module', 'nodenext', '--target', 'es2023', '--outDir', 'dist'];
    const programs = ['mine.ts', 'entries.ts', ...PUBLIC.map((_, index) => `readme${index}.ts`)];
    await run(author, process.execPath, [`node_modules/${compiler}/bin/tsc`, ...options, ...programs]);
    expect(await run(author, node, ['dist/entries.js'])).toBe('');
  });

  test('an operator installs palestra without install scripts', async () => {
    await run(operator, 'npm', ['install', '--prefer-offline', '--ignore-scripts', ...tarballsOf('palestra')]);
    expect(await run(operator, 'npx', ['palestra', '--version'])).toContain(packageOf('palestra').manifest.version);
  });

  test('an older Node.js is named, by the command and by the kit', async () => {
    const old = path.join(folder, 'old.cjs');
    writeFileSync(old, "Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '18.20.8' } });");
    const bin = path.join(operator, 'node_modules/palestra/bin/palestra.cjs');
    await expect(run(operator, node, ['--require', old, bin, '--version'])).rejects.toThrow(/palestra: needs Node\.js \^20\.19\.0/);
    const load = "import('@palestra/environment-kit')";
    await expect(run(author, node, ['--require', old, '--eval', load])).rejects.toThrow(/Palestra needs Node\.js \^20\.19\.0/);
  });

  test('npx palestra up runs the service, and the official client plays the environment of the author', async () => {
    const port = String(await freePort());
    const { child, output } = await start(operator, 'npx', ['palestra', 'up'], /Palestra is ready at/, { PORT: port });
    const url = `http://127.0.0.1:${port}`;
    const secrets = readFileSync(path.join(operator, '.palestra/sign-in.txt'), 'utf8');
    const key = /OPENREWARD_API_KEY=(\S+)/.exec(secrets)![1]!;
    const variables = official(url, key);
    const get = async (route: string) => (await fetch(url + route, { headers: { 'x-api-key': key } })).json();
    expect(await get('/health/ready')).toEqual({ status: 'ready' });
    const page = await (await fetch(`${url}/`)).text();
    const script = /src="(\/assets\/[^"]+\.js)"/.exec(page)![1]!;
    expect((await fetch(url + script)).status).toBe(200);
    expect(await (await fetch(`${url}/docs/`)).text()).toContain('<h1 id="documentation"');

    const served = await start(author, node, ['dist/mine.js'], /http:\/\/\S+:\d+/);
    await run(operator, 'npx', ['palestra', 'env', 'push', '--url', served.match[0], '--name', 'guess'], variables);
    expect(await run(root, withClient(), [PLAY_GUESS, '100'], variables)).toMatch(/^1\.0$/m);
    await run(root, withClient(), ['-c', block('python', 'from openreward')], variables);
    // README's rollout, and the demo, which the installed command line plays.
    await expect.poll(async () => (await get('/v1/runs')).runs.map((one: { name: string }) => one.name)).toContain('first');
    await expect.poll(async () => (await get('/v1/runs')).runs.map((one: { name: string }) => one.name)).toContain('demo-learner');
    await expect.poll(async () => (await get('/v1/environments/palestra/coding_env')).status).toBe('ready');

    // npm waits for the service and then ends by the signal that it got.
    process.kill(-child.pid!, 'SIGINT');
    await vi.waitFor(() => expect(child.signalCode ?? child.exitCode).not.toBeNull(), { timeout: 60_000, interval: 100 });
    await expect.poll(output).toContain('Stopping');
    await expect.poll(() => processesWith(operator)).toEqual([]);
    expect(existsSync(path.join(operator, '.palestra/postgres/data/postmaster.pid'))).toBe(false);
  });

  test('palestra env init, npm install and npm run dev give a typed, tested and played environment', async () => {
    await run(operator, 'npx', ['palestra', 'env', 'init', 'guess', '--dir', folder]);
    const guess = path.join(folder, 'guess');
    // The versions of its package.json, from tarballs.
    await run(guess, 'npm', ['install', '--prefer-offline', ...tarballsOf('palestra', '@palestra/environment-kit')]);
    await run(guess, 'npm', ['run', 'check']);
    expect(await run(guess, 'npm', ['test'])).toMatch(/^. pass 3$/m);

    const noService = { OPENREWARD_API_KEY: '', PALESTRA_API_KEY: '' };
    const dev = await start(guess, 'npm', ['run', 'dev', '--', '--no-open'], /once\):\n {2}(\S+)\n/, noService);
    const link = new URL(dev.match[1]!);
    expect(link.searchParams.get('next')).toBe('/environments/local/guess/play');
    expect((await fetch(link)).status).toBe(200);
    const key = /OPENREWARD_API_KEY=(\S+)/.exec(readFileSync(path.join(guess, '.palestra/sign-in.txt'), 'utf8'))![1]!;
    expect(await run(root, withClient(), [PLAY_GUESS, '999'], official(link.origin, key))).toMatch(/^1\.0$/m);
    const source = path.join(guess, 'environment.ts');
    writeFileSync(source, readFileSync(source, 'utf8').replace('I think of', 'Think of'));
    await expect.poll(dev.output).toContain('Reloaded after a change of environment.ts');

    // As a terminal does: the signal reaches every process of the group.
    process.kill(-dev.child.pid!, 'SIGINT');
    await vi.waitFor(() => expect(dev.child.signalCode ?? dev.child.exitCode).not.toBeNull(), { timeout: 60_000, interval: 100 });
    await expect.poll(() => processesWith(guess)).toEqual([]);
    expect(existsSync(path.join(guess, '.palestra/postgres/data/postmaster.pid'))).toBe(false);
  });
});
