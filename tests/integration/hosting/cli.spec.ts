import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { PalestraClient } from '@palestra/client';
import type { DeployView, HostingLogLine, InstanceList, JsonObject, VersionDiff } from '@palestra/protocol';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { CLI, foreground, type Foreground } from '../../conformance/support/foreground.ts';
import { type Palestra, startPalestra } from '../../support/palestra.ts';

/** docs/hosting.md as an author follows it: an empty folder, `palestra env init`, `palestra env deploy`, and what comes after, by processes. */
let palestra: Palestra;
let client: PalestraClient;
const folder = mkdtempSync(path.join(tmpdir(), 'palestra-hosting-'));
const guess = path.join(folder, 'guess');
const module = path.join(guess, 'environment.ts');

beforeAll(async () => {
  palestra = await startPalestra({ env: { PALESTRA_HOSTING: 'process', PALESTRA_ALLOW_COMMANDS: '1' } });
  client = new PalestraClient({ url: palestra.url, apiKey: palestra.apiKey });
});
afterAll(async () => {
  // Instances outlive the service.
  await deleteEnvironments();
  await client?.close();
  await palestra?.stop();
  rmSync(folder, { recursive: true, force: true });
});

async function deleteEnvironments(): Promise<void> {
  const { environments } = await client.environments.list({ owner: palestra.namespace });
  for (const { owner, name } of environments)
    await fetch(`${palestra.url}/v1/environments/${owner}/${name}`, { method: 'DELETE', headers: { 'x-api-key': palestra.apiKey } });
}

function start(args: string[], cwd = guess): Foreground {
  return foreground(args, { cwd, env: { PALESTRA_URL: palestra.url, PALESTRA_API_KEY: palestra.apiKey, NO_COLOR: '1' } });
}

interface Ended {
  code: number | null;
  stdout: string;
  output: string;
}
async function run(args: string[], { cwd = guess, input }: { cwd?: string; input?: string } = {}): Promise<Ended> {
  const env = { ...process.env, PALESTRA_URL: palestra.url, PALESTRA_API_KEY: palestra.apiKey, NO_COLOR: '1' };
  const child = spawn(process.execPath, [CLI, ...args], { cwd, env, stdio: ['pipe', 'pipe', 'pipe'] });
  let [stdout, output] = ['', ''];
  child.stdout.on('data', (data: Buffer) => {
    stdout += data.toString();
    output += data.toString();
  });
  child.stderr.on('data', (data: Buffer) => (output += data.toString()));
  child.stdin.end(input);
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, stdout, output };
}
/** What a command prints for programs. */
async function read<T>(...args: string[]): Promise<T> {
  const { code, stdout, output } = await run([...args, '-o', 'json']);
  expect(code, output).toBe(0);
  return JSON.parse(stdout) as T;
}

function changeModule(from: string, to: string): void {
  const text = readFileSync(module, 'utf8');
  expect(text).toContain(from);
  writeFileSync(module, text.replace(from, to));
}

/** Plays one call of an episode. Returns what it said. */
async function play(environment: string, input: JsonObject): Promise<string> {
  await using session = await client.session({ environment, split: 'test', index: 1 });
  const { blocks } = await session.call('guess', input);
  return blocks.map((block) => ('text' in block ? block.text : '')).join('');
}

test('an author deploys, compares, promotes and rolls back', async () => {
  expect(await run(['env', 'init', 'guess'], { cwd: folder })).toMatchObject({ code: 0 });
  const first = await run(['env', 'deploy']);
  expect(first, first.output).toMatchObject({ code: 0, stdout: `${palestra.namespace}/guess@1\n` });
  const name = first.stdout.split('@')[0]!;
  expect(await play(name, { number: 999 })).toBe('Lower. 9 guesses left.');
  expect(await client.environments.get(name)).toMatchObject({
    description: 'Guess a number with hints higher or lower · version 0.1.0',
    is_private: true,
  });

  changeModule('const hint = number', 'console.log(`guessed ${number}, because ${why}`);\n        const hint = number');
  changeModule('run({ number }', 'run({ number, why }');
  changeModule("describe('The number that you guess.')", "describe('The number that you guess.'), why: z.string().describe('Why.')");
  const second = await read<DeployView>('env', 'deploy', '--no-promote');
  expect(second).toMatchObject({ state: 'ready', version: 2, channel: null });
  expect(await play(name, { number: 999 })).toBe('Lower. 9 guesses left.');
  expect(await play(`${name}@2`, { number: 999, why: 'x' })).toBe('Lower. 9 guesses left.');

  const diff = await run(['env', 'diff', '1', '2', '--fail-on-breaking']);
  expect(diff.output).toMatch(/^Version 1 to 2\nbreaks clients\n  ! .*why.*\ntools\n  ~ guess/);
  expect(diff.code).toBe(5);
  expect(await read<VersionDiff>('env', 'diff', `${name}@1`, '1')).toMatchObject({ breaking: [], tools: [] });

  expect(await run(['env', 'promote', '2', '--percent', '50'])).toMatchObject({
    code: 0,
    stdout: `${name}@stable: version 1, 50 % of new sessions: version 2\n`,
  });
  const promoted = await run(['env', 'promote', '2']);
  expect(promoted.output).toContain('breaks clients');
  expect(promoted.stdout).toBe(`${name}@stable: version 2\n`);
  const versions = await read<{ number: number; channels: string[] }[]>('env', 'versions');
  expect(versions.map(({ number, channels }) => [number, channels])).toEqual([
    [2, ['stable']],
    [1, []],
  ]);

  const logs = start(['env', 'logs', '-f', '--search', 'GUESSED', '-o', 'jsonl']);
  expect(await play(name, { number: 999, why: 'luck' })).toBe('Lower. 9 guesses left.');
  const [text] = await logs.said(/\{.*guessed 999, because luck.*\}/);
  expect(JSON.parse(text)).toMatchObject({ stream: 'stdout', text: 'guessed 999, because luck' });
  expect(await logs.end()).toBe(0);

  expect(await run(['env', 'rollback'])).toMatchObject({ code: 0, stdout: `${name}@stable: version 1\n` });
  expect(await play(name, { number: 999 })).toBe('Lower. 9 guesses left.');
  const { instances } = await read<InstanceList>('env', 'instances');
  expect(instances.map(({ version, provider }) => [version, provider])).toContainEqual([1, 'process']);
  expect((await run(['env', 'deploys'])).stdout.split('\n')).toHaveLength(4);
});

test('a deploy that fails shows the line of the log that failed', async () => {
  const kept = readFileSync(module, 'utf8');
  changeModule('export default defineEnvironment', 'export default defineEnvironment(((');
  const failed = await run(['env', 'deploy']);
  expect(failed.code, failed.output).toBe(1);
  expect(failed.output).toMatch(/palestra: The deploy failed: .*\n(?:.*\n)*> +\d+ \| .*/);
  const forPrograms = await run(['env', 'deploy', '-o', 'json']);
  expect(forPrograms).toMatchObject({ code: 1, stdout: '' });
  expect(JSON.parse(forPrograms.output.trimEnd().split('\n').at(-1)!)).toMatchObject({ code: expect.any(String), statusCode: null });
  const lines = await read<HostingLogLine[]>('env', 'logs', '--build', '--severity', 'error');
  expect(lines.length).toBeGreaterThan(0);
  writeFileSync(module, kept);
});

test('Ctrl-C cancels a deploy', async () => {
  const kept = readFileSync(module, 'utf8');
  writeFileSync(module, `await new Promise((resolve) => setTimeout(resolve, 600_000));\n${kept}`);
  const waiting = start(['env', 'deploy', '--start-timeout', '300']);
  await waiting.said(/Starting an instance/);
  expect(await waiting.end('SIGINT')).toBe(130);
  expect(waiting.output()).toContain('The deploy was cancelled.');
  const [last] = await read<DeployView[]>('env', 'deploys');
  expect(last).toMatchObject({ state: 'cancelled' });
  writeFileSync(module, kept);
});

test('instances read secrets as files; no command shows a value', async () => {
  expect(await run(['env', 'secrets', 'set', 'API_KEY'], { input: 'sesame\n' })).toMatchObject({ code: 0, stdout: 'API_KEY\n' });
  writeFileSync(path.join(folder, 'two-lines'), 'a\nb\n');
  expect(await run(['env', 'secrets', 'set', 'FILE', '--from-file', '../two-lines'])).toMatchObject({ code: 0 });
  expect((await read<{ name: string }[]>('env', 'secrets')).map(({ name }) => name)).toEqual(['API_KEY', 'FILE']);
  changeModule(
    "{ content: 'Right!'",
    "{ content: JSON.stringify(['API_KEY', 'FILE'].map((name) => readFileSync(`${process.env['PALESTRA_SECRETS_DIR']}/${name}`, 'utf8').length))",
  );
  writeFileSync(module, `import { readFileSync } from 'node:fs';\n${readFileSync(module, 'utf8')}`);
  const { environment, version } = await read<DeployView>('env', 'deploy');
  await using session = await client.session({ environment, split: 'test', index: 0 });
  const { blocks } = await session.call('guess', { number: 0, why: 'x' });
  expect(blocks).toMatchObject([{ text: '[6,4]' }]);
  expect(version).toBeGreaterThan(2);
  expect(await run(['env', 'secrets', 'delete', 'FILE'])).toMatchObject({ code: 0 });
  expect((await read<{ name: string }[]>('env', 'secrets', 'list')).map(({ name }) => name)).toEqual(['API_KEY']);
});

test('settings are merged, and what processes cannot enforce is refused', async () => {
  expect(await read('env', 'scale', '--max', '2', '--env', 'A=1')).toMatchObject({ max: 2, variables: { A: '1' } });
  expect(await read('env', 'scale', '--env', 'B=2', '--remove-env', 'A')).toMatchObject({ max: 2, variables: { B: '2' } });
  const refused = await run(['env', 'scale', '--egress', 'pypi.org', '-o', 'json']);
  expect(refused.code).toBe(1);
  expect(JSON.parse(refused.output)).toMatchObject({ code: 'hosting_unsupported', statusCode: 422 });
});

test('sessions get uploaded tasks, and a pushed server, after a promotion that the push names', async () => {
  writeFileSync(path.join(guess, 'train.jsonl'), '{"secret": 7}\n');
  const name = `${palestra.namespace}/guess`;
  const pushed = await run(['tasks', 'push', name, 'train.jsonl']);
  expect(pushed.output).toMatch(/^Sessions on \S+\/guess get version \d+\. To give them this one: palestra env promote \S+\/guess@\d+$/m);
  const version = pushed.stdout.trim().split('\n').at(-1)!;
  expect(pushed.output).toContain(`palestra env promote ${version}\n`);
  expect(await run(['env', 'promote', version])).toMatchObject({ code: 0 });
  expect(await client.environments.numTasks(name, 'train')).toBe(1);
  expect((await run(['tasks', 'push', name, 'train.jsonl'])).output).not.toContain('promote');
  const served = start(['env', 'dev', '--no-open']);
  await served.said(new RegExp(`Sessions on \\S+ get version ${version.split('@')[1]}\\. To give them this one: palestra env promote`));
  await served.end();
});
