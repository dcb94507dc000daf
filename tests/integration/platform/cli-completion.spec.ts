import { execFile, spawn, spawnSync } from 'node:child_process';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { sharedServer, type TestServer } from '../../support/server.ts';

/** The completion scripts in real shells, which call the built command line. */
const CLI = path.resolve(import.meta.dirname, '../../../apps/cli/dist/main.js');
let server: TestServer;
let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'completion-'));
  server = await sharedServer();
  await writeFile(path.join(folder, 'palestra'), `#!/bin/sh\nexec "${process.execPath}" "${CLI}" "$@"\n`);
  await chmod(path.join(folder, 'palestra'), 0o755);
  await writeFile(path.join(folder, 'guess.jsonl'), '');
});
afterAll(async () => {
  await server?.close();
  await rm(folder, { recursive: true, force: true });
});

async function run(shell: string, args: string[], extra: NodeJS.ProcessEnv = {}): Promise<string[]> {
  const env = {
    ...process.env,
    PATH: `${folder}:${process.env['PATH']}`,
    PALESTRA_URL: server.url,
    PALESTRA_API_KEY: server.apiKey,
    ...extra,
  };
  const { stdout } = await promisify(execFile)(shell, args, { env, cwd: folder, timeout: 60_000 });
  return stdout.split('\n').filter(Boolean);
}
/** In CI a missing shell is a failure. */
const isInstalled = (shell: string) => process.env['CI'] !== undefined || spawnSync(shell, ['--version']).status === 0;

/**
 * What the shells complete for a line; the word at the cursor is last. Without an answer of the server within a second they complete nothing, and a
 * person presses Tab again: so do the tests.
 */
const CASES: [line: string, expected: string[] | RegExp][] = [
  ['palestra ro', ['rollouts']],
  ['palestra env pu', ['push']],
  ['palestra rollouts export --form', ['--format']],
  ['palestra rollouts export --format sf', ['sft']],
  ['palestra env get palestra/who', ['palestra/whodunit']],
  ['palestra tasks push palestra/math gue', ['guess.jsonl']],
  ['palestra env list --search x', []],
];

describe('bash', () => {
  const complete = (line: string, extra: NodeJS.ProcessEnv = {}) => {
    const words = line.split(/ |(?==)|(?<==)/);
    const quoted = words.map((word) => `'${word}'`).join(' ');
    const script = `source <(palestra completion bash); COMP_WORDS=(${quoted}); COMP_CWORD=${words.length - 1}; _palestra; printf '%s\\n' "\${COMPREPLY[@]}"`;
    return run('bash', ['--norc', '-c', script], extra);
  };
  test.each(CASES)('%s', async (line, expected) => {
    await expect.poll(() => complete(line)).toEqual(expected);
  });
  test('--option=value, which bash splits', async () => {
    expect(await complete('palestra rollouts export --format=sf')).toEqual(['sft']);
    expect(await complete('palestra runs --output=')).toEqual(['table', 'json', 'yaml', 'jsonl']);
  });
  test('a server that does not answer completes nothing, and prints no error', async () => {
    expect(await complete('palestra env get palestra/', { PALESTRA_URL: 'http://127.0.0.1:1' })).toEqual([]);
    expect(await complete('palestra env get palestra/', { PALESTRA_API_KEY: 'or_wrong' })).toEqual([]);
  });
  test('an interactive shell completes with Tab', async () => {
    await writeFile(path.join(folder, 'rc'), "PS1='READY> '\nsource <(palestra completion bash)\n");
    const env = { ...process.env, PATH: `${folder}:${process.env['PATH']}`, PALESTRA_URL: server.url, TERM: 'dumb' };
    const child = spawn('script', ['-qec', 'bash --noprofile --rcfile rc -i', '/dev/null'], { env, cwd: folder });
    let output = '';
    child.stdout.on('data', (data: Buffer) => (output += data.toString()));
    await expect.poll(() => output).toContain('READY> ');
    child.stdin.write('palestra env va\t');
    await expect.poll(() => output).toContain('palestra env validate ');
    child.kill('SIGKILL');
  });
});

describe.runIf(isInstalled('fish'))('fish', () => {
  test.each(CASES)('%s', async (line, expected) => {
    const complete = () => run('fish', ['--no-config', '-c', `palestra completion fish | source; complete -C '${line}'`]);
    await expect.poll(async () => (await complete()).map((one) => one.split('\t')[0])).toEqual(expected);
  });
});

describe.runIf(isInstalled('zsh'))('zsh', () => {
  /** zsh completes only in its line editor: the functions that show the matches print them instead. */
  const script = (line: string) => `
    autoload -Uz compinit; compinit -u -d ${folder}/zcompdump
    source <(palestra completion zsh)
    _describe() { print -rl -- \${\${(P)2}%%:*} }
    _files() { print -rl -- \${words[CURRENT]}*(N) }
    words=(${line
      .split(' ')
      .map((word) => `'${word}'`)
      .join(' ')}); CURRENT=\${#words}
    _palestra || true`;
  test.each(CASES)('%s', async (line, expected) => {
    await expect.poll(() => run('zsh', ['-f', '-c', script(line)])).toEqual(expected);
  });
});
