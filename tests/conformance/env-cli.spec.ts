import { once } from 'node:events';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { PalestraClient } from '@palestra/client';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { validateUrl } from '../../apps/cli/src/commands/env/validate-url.ts';
import { type SharedPalestra, sharedPalestra } from '../support/palestra.ts';
import { CLI, type Foreground, foreground as start } from './support/foreground.ts';
import { openEnvPython } from './support/openenv-server.ts';
import { type Finished, run } from './support/python.ts';

/** `palestra env` beside OpenEnv's own command: the same reports, and its scaffold served, registered and played as it is. */
const python = openEnvPython('PALESTRA_PYTHON_OE_0_10_0');
const openenv = path.join(path.dirname(python), 'openenv');
/** What the command prints, for each URL in one line. */
const THEIR_REPORTS = `
import json, sys
from openenv.cli._validation import validate_running_environment
for url in sys.argv[1:]:
    print(json.dumps(validate_running_environment(url, timeout_s=60.0), separators=(",", ":")))
`;
const folder = mkdtempSync(path.join(tmpdir(), 'palestra-env-cli-'));
const scaffold = path.join(folder, 'my_env');
let palestra: SharedPalestra;
let client: PalestraClient;

beforeAll(async () => {
  palestra = await sharedPalestra();
  client = new PalestraClient({ url: palestra.url, apiKey: palestra.apiKey });
  const made = await run(openenv, ['init', 'my_env'], { cwd: folder });
  if (made.code !== 0) throw new Error(made.output);
});
afterAll(async () => {
  await client?.close();
  rmSync(folder, { recursive: true, force: true });
});

const env = () => ({ PALESTRA_URL: palestra.url, PALESTRA_API_KEY: palestra.apiKey });
const command = (...args: string[]): Promise<Finished> => run(process.execPath, [CLI, ...args], { cwd: folder, env: env() });

let running: Foreground[] = [];
afterEach(async () => {
  await Promise.all(running.map((one) => one.end()));
  running = [];
});

function foreground(...args: string[]): Foreground {
  const one = start(args, { cwd: folder, env: env() });
  running.push(one);
  return one;
}

const serveScaffold = async (): Promise<string> =>
  (await foreground('env', 'serve', scaffold, '--port', '0', '--python', python).said(/http:\/\/\S+/))[0];

describe('palestra env validate', () => {
  test('--url reports what OpenEnv’s own command reports, word for word, and ends alike', async () => {
    const url = await serveScaffold();
    const odd = await oddServer();
    const places = [url, `${url}/`, `${url}/nowhere`, url.replace('http://', ''), ...odd.urls];
    // One process for all of them: importing theirs takes seconds.
    const asked = await run(python, ['-c', THEIR_REPORTS, ...places]);
    expect(asked.code, asked.output).toBe(0);
    const theirs = asked.stdout.trim().split('\n');
    const ours = await Promise.all(places.map((place) => validateUrl(place, 60_000, new AbortController().signal)));
    expect(ours.map((report) => JSON.stringify(report))).toEqual(theirs);
    const [built, wanted] = [await command('env', 'validate', '--url', odd.urls[0]!, '--json'), JSON.parse(theirs[4]!) as object];
    expect(built.code).toBe(1);
    expect(JSON.parse(built.stdout)).toEqual(wanted);
    expect(await command('env', 'validate', url)).toMatchObject({ code: 0 });
    odd.close();
  });

  test('--url of nobody fails all six, as theirs does but for the words of the socket', async () => {
    const [ours, theirs] = await Promise.all([
      command('env', 'validate', '--url', 'http://127.0.0.1:9', '--json'),
      run(openenv, ['validate', '--url', 'http://127.0.0.1:9', '--json']),
    ]);
    const withoutDetails = (text: string) => JSON.parse(text, (key, value: unknown) => (key === 'details' ? undefined : value)) as object;
    expect(withoutDetails(ours.stdout)).toEqual(withoutDetails(theirs.stdout));
    expect([ours.code, theirs.code]).toEqual([1, 1]);
  });

  test('a path: theirs and ours pass, and each thing that is missing is named', async () => {
    expect(await command('env', 'validate', scaffold)).toMatchObject({ code: 0 });
    const broken = path.join(folder, 'broken');
    mkdirSync(broken);
    writeFileSync(path.join(broken, 'openenv.yaml'), 'name: broken\napp: server.app:app\nsomething_new: [1]\n');
    const report = await command('env', 'validate', broken, '--json');
    expect(report.code).toBe(1);
    expect(JSON.parse(report.stdout)).toMatchObject({
      passed: false,
      summary: { failed_criteria: ['server_app', 'dockerfile', 'dependencies', 'readme'] },
      criteria: [{ id: 'manifest', passed: true, actual: { keys: ['name', 'app', 'something_new'] } }, {}, {}, {}, {}],
    });
    expect(await command('env', 'validate', tmpdir())).toMatchObject({ code: 2 });
  });
});

test('the scaffold is pushed as it is, played through ORS to a reward, and given tasks', async () => {
  const pushing = foreground('env', 'push', scaffold, '--python', python);
  const [, name] = await pushing.said(/^(\S+)@1$/m);
  await pushing.said(/is an OpenEnv server/);
  expect(name).toBe(`${palestra.namespace}/my_env`);
  const view = await client.environments.get(name!);
  expect(view).toMatchObject({ source: { kind: 'openenv' }, status: 'ready' });
  expect(view.description).toContain('version 0.1.0');
  // The settings of its Space are no text of a page.
  expect(view.readme_content).toMatch(/^# /);
  const session = await client.session({ environment: name!, split: 'train', index: 0 });
  expect(JSON.stringify(await session.prompt())).toContain('echoed_message');
  const result = await session.call('step', { message: 'Hello' });
  expect(result).toMatchObject({ reward: 0.5, finished: false });
  await session.close();
  // On the same server again: nothing new.
  const url = (view.source as { url: string }).url;
  const again = await command('env', 'push', scaffold, '--url', url);
  expect(again.output).toContain(`${name}@1: already registered with this server`);

  writeFileSync(
    path.join(folder, 'train.jsonl'),
    '{"task_spec":{"seed":7},"id":"seven","prompt":"Say a long word."}\n{"task_spec":{"seed":8}}\n',
  );
  expect((await command('tasks', 'push', name!, 'train.jsonl')).stdout).toContain(`${name}@2\n`);
  const prompted = await client.session({ environment: name!, split: 'train', index: 0 });
  expect(await prompted.prompt()).toMatchObject([{ text: 'Say a long word.' }]);
  expect(await prompted.call('step', { message: 'abcdefghij' })).toMatchObject({ reward: 1 });
  await prompted.close();
  await openEnvClientSeesTasks(name!);
  expect(await pushing.end()).toBe(0);
  expect(await fetch(`${url}/health`).catch(() => null)).toBeNull();
});

test('a folder without openenv.yaml is what its server says, and so is a URL without a folder', async () => {
  const bare = path.join(folder, 'bare_env');
  cpSync(scaffold, bare, { recursive: true });
  rmSync(path.join(bare, 'openenv.yaml'));
  rmSync(path.join(bare, 'README.md'));
  const report = await command('env', 'validate', bare, '--level', 'static', '--json');
  expect(report.code, report.output).toBe(0);
  expect(JSON.parse(report.stdout)).toMatchObject({ criteria: [{ id: 'manifest', passed: false, required: false }, {}, {}, {}, {}] });
  const pushing = foreground('env', 'push', bare, '--python', python);
  const [, name] = await pushing.said(/^(\S+)@1$/m);
  await pushing.said(/is an OpenEnv server/);
  expect(name).toBe(`${palestra.namespace}/bare_env`);
  const view = await client.environments.get(name!);
  expect(view).toMatchObject({ source: { kind: 'openenv' }, status: 'ready', description: expect.stringContaining('version') });
  const session = await client.session({ environment: name!, split: 'train', index: 0 });
  expect(await session.call('step', { message: 'Hello' })).toMatchObject({ reward: 0.5 });
  await session.close();
  const { url } = view.source as { url: string };
  const { name: own } = (await (await fetch(`${url}/metadata`)).json()) as { name: string };
  const named = await command('env', 'push', path.join(folder, 'nowhere'), '--url', url);
  expect(named.stdout, named.output).toContain(`${palestra.namespace}/${own}@1`);
  expect(await pushing.end()).toBe(0);
});

/** The facade passes messages to the real server; its tasks are the uploaded ones. */
async function openEnvClientSeesTasks(name: string): Promise<void> {
  const base = `${palestra.url}/openenv/${name}`;
  const headers = { 'x-api-key': palestra.apiKey, 'content-type': 'application/json' };
  const ask = async (route: string, body?: object) => {
    const answer = await fetch(base + route, { headers, ...(body && { method: 'POST', body: JSON.stringify(body) }) });
    return [answer.status, await answer.json()];
  };
  expect(await ask('/my_env/splits')).toEqual([200, [{ name: 'train', type: 'train' }]]);
  expect(await ask('/my_env/task', { split: 'train', index: 1 })).toEqual([200, { task: { seed: 8 } }]);
  const socket = new WebSocket(`${base.replace('http', 'ws')}/ws`, { headers });
  await once(socket, 'open');
  const reply = async (message: object) => {
    socket.send(JSON.stringify(message));
    return JSON.parse(String(((await once(socket, 'message')) as [Buffer])[0])) as { type: string; data: Record<string, unknown> };
  };
  expect(await reply({ type: 'reset', data: { split: 'train', index: 0 } })).toMatchObject({ type: 'observation' });
  expect(await reply({ type: 'step', data: { message: 'abc' } })).toMatchObject({ type: 'observation', data: { done: false } });
  expect(await reply({ type: 'reset', data: { split: 'train', index: 5 } })).toMatchObject({ type: 'error' });
  socket.close();
  const authority = `http://key:${palestra.apiKey}@${palestra.url.slice('http://'.length)}/openenv/${name}`;
  expect(await command('env', 'validate', '--url', authority)).toMatchObject({ code: 0 });
}

test('init --openenv makes what OpenEnv’s own command accepts, its tests pass, and it plays', async () => {
  expect(await command('env', 'init', 'py_guess', '--openenv')).toMatchObject({ code: 0 });
  const made = path.join(folder, 'py_guess');
  const theirs = await run(openenv, ['validate', made, '--level', 'static', '--skip-build']);
  expect(theirs.code, theirs.output).toBe(0);
  const tests = await run(python, ['-m', 'unittest', 'discover', 'tests'], { cwd: made });
  expect(tests.code, tests.output).toBe(0);
  const played = await command(
    'env',
    'validate',
    'py_guess',
    '--level',
    'semantic',
    '--tasks',
    '3',
    '--player-tasks',
    '3',
    '--python',
    python,
  );
  expect(played.code, played.output).toBe(0);
  const pushing = foreground('env', 'push', 'py_guess', '--name', `${palestra.namespace}/py-guess`, '--python', python);
  await pushing.said(/is an OpenEnv server/);
  const session = await client.session({ environment: `${palestra.namespace}/py-guess`, split: 'train', index: 0 });
  let [low, high] = [0, 100];
  let reward = 0;
  for (let guesses = 0; guesses < 7 && reward === 0; guesses += 1) {
    const number = Math.floor((low + high) / 2);
    const output = await session.call('step', { number });
    reward = output.reward ?? 0;
    if (JSON.stringify(output.blocks).includes('Higher')) low = number + 1;
    else high = number - 1;
  }
  expect(reward).toBe(1);
  await session.close();
});

test('init --python makes an openreward server: its tests pass, it is valid, and dev restarts it on save', async () => {
  const openreward = process.env['PALESTRA_PYTHON_V167']!;
  expect(await command('env', 'init', 'or_guess', '--python')).toMatchObject({ code: 0 });
  const made = path.join(folder, 'or_guess');
  const tests = await run(openreward, ['-m', 'unittest'], { cwd: made });
  expect(tests.code, tests.output).toBe(0);
  const played = await command('env', 'validate', 'or_guess', '--tasks', '3', '--player-tasks', '5', '--python', openreward);
  expect(played.code, played.output).toBe(0);
  expect(played.stdout).toMatch(/^orguess: 10 passed, 0 failed, 2 skipped$/m);
  const dev = foreground('env', 'dev', 'or_guess', '--no-open', '--python', openreward);
  const name = `${palestra.namespace}/or_guess`;
  await dev.said(new RegExp(`${name} is served at`));
  const play = async () => {
    const session = await client.session({ environment: name, split: 'train', index: 0 });
    const prompt = JSON.stringify(await session.prompt());
    return { session, prompt };
  };
  const before = await play();
  expect(before.prompt).toContain('Find it with at most 10 guesses.');
  const file = path.join(made, 'server.py');
  writeFileSync(file, readFileSync(file, 'utf8').replace('GUESSES = 10', 'GUESSES = 12'));
  await dev.said(/Restarted after a change of server\.py/);
  await expect(before.session.call('guess', { number: 1 })).rejects.toThrow();
  const after = await play();
  expect(after.prompt).toContain('Find it with at most 12 guesses.');
  await after.session.close();
  expect(await dev.end()).toBe(0);
});

test('a program that fails ends with its own error', async () => {
  const failing = path.join(folder, 'failing');
  mkdirSync(failing);
  writeFileSync(path.join(failing, 'server.py'), 'import no_such_package\n');
  const { code, output } = await command('env', 'serve', 'failing', '--port', '0', '--python', process.env['PALESTRA_PYTHON_V167']!);
  expect(code).toBe(1);
  expect(output).toContain("ModuleNotFoundError: No module named 'no_such_package'\nfailing exited with code 1");
  expect(output).not.toContain('Fatal');
});

/** A server whose answers are odd in every way that a report tells apart, below one prefix for each set of routes. */
async function oddServer() {
  const routes = [['/reset', '/step'], ['/step'], ['/health'], []];
  const answers: Record<string, [number, string]> = {
    '/health': [200, '{"status":"ok"}'],
    '/metadata': [200, '{"name":"x","description":null}'],
    '/schema': [200, '{"action":{},"observation":[],"state":{}}'],
    '/mcp': [400, '[1]'],
  };
  const server = http.createServer((request, response) => {
    const [, number, route = ''] = /^\/(\d)(\/.*)$/.exec(request.url ?? '') ?? [];
    const paths = Object.fromEntries(routes[Number(number)]!.map((name) => [name, {}]));
    const openapi: [number, string] = [200, JSON.stringify({ info: { version: '2.0' }, paths })];
    const [status, body] = route === '/openapi.json' ? openapi : (answers[route] ?? [404, 'nothing']);
    response.writeHead(status, { 'content-type': 'application/json' }).end(body);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { urls: routes.map((_, number) => `${url}/${number}`), close: () => server.close() };
}
