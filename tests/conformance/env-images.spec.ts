import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { PalestraClient } from '@palestra/client';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { freePort } from '@palestra/hosting';
import { type SharedPalestra, sharedPalestra } from '../support/palestra.ts';
import { containerEngine, importPython, type TestEngine } from './support/containers.ts';
import { CLI, type Foreground, foreground as start } from './support/foreground.ts';
import { openEnvPython } from './support/openenv-server.ts';
import { type Finished, run } from './support/python.ts';

/** `palestra env` with images, on a real container engine: the image is what `openenv build` makes of its scaffold. */
// Each test starts several containers.
vi.setConfig({ testTimeout: 300_000 });
const python = openEnvPython('PALESTRA_PYTHON_OE_0_10_0');
const openenv = path.join(path.dirname(python), 'openenv');
const folder = mkdtempSync(path.join(tmpdir(), 'palestra-env-images-'));
const scaffold = path.join(folder, 'my_env');
const PLAY = `
import sys
from openenv import GenericEnvClient
with GenericEnvClient(base_url=sys.argv[1]).sync() as env:
    env.reset()
    result = env.step({"message": "Hello"})
    print(result.reward, result.observation["echoed_message"])
`;
let engine: TestEngine;
let palestra: SharedPalestra;
let client: PalestraClient;
let base: string;
let image: string;

beforeAll(async () => {
  engine = await containerEngine(folder);
  [palestra, base] = await Promise.all([sharedPalestra(), importPython(engine, python, ['openenv', 'uvicorn'])]);
  client = new PalestraClient({ url: palestra.url, apiKey: palestra.apiKey });
  image = engine.image('echo');
  const made = await run(openenv, ['init', 'my_env'], { cwd: folder });
  if (made.code !== 0) throw new Error(made.output);
  const PATH = `${engine.asDocker(path.join(folder, 'bin'))}:${process.env['PATH']}`;
  const built = await run(openenv, ['build', scaffold, '--tag', image, '--build-arg', `BASE_IMAGE=${base}`], { env: { PATH } });
  if (built.code !== 0) throw new Error(built.output);
}, 400_000);
afterAll(async () => {
  await client?.close();
  await engine?.removeAll();
  rmSync(folder, { recursive: true, force: true });
});

const env = () => ({ PALESTRA_URL: palestra.url, PALESTRA_API_KEY: palestra.apiKey, PALESTRA_CONTAINER_ENGINE: engine.command });
const command = (...args: string[]): Promise<Finished> => run(process.execPath, [CLI, ...args], { cwd: folder, env: env() });

let running: Foreground[] = [];
afterEach(async () => {
  await Promise.all(running.map((one) => one.end()));
  running = [];
  const left = await engine.containers();
  if (left.length > 0) throw new Error(`containers are left behind: ${left.join(', ')}`);
});

function foreground(...args: string[]): Foreground {
  const one = start(args, { cwd: folder, env: { ...env(), MODEL_KEY: 'from here' } });
  running.push(one);
  return one;
}
const isHealthy = async (url: string) =>
  (await fetch(`${url}/health`, { signal: AbortSignal.timeout(20_000) }).catch(() => null))?.ok ?? false;

test('an image is pushed, played by both protocols, started again when it dies, and gone at the end', async () => {
  const pushing = foreground('env', 'push', image, '--env', 'MODEL_KEY', '--env', 'A=b=c', '--memory', '600m', '--cpus', '1.5');
  const [, url] = await pushing.said(/^Serving (http:\S+)\. Press/m);
  const [, name] = /^(\S+)@1$/m.exec(pushing.output())!;
  expect(await client.environments.get(name!)).toMatchObject({ source: { kind: 'openenv', url }, status: 'ready' });

  const session = await client.session({ environment: name!, split: 'train', index: 0 });
  expect(await session.call('step', { message: 'Hello' })).toMatchObject({ reward: 0.5, finished: false });
  await session.close();
  const authority = `http://key:${palestra.apiKey}@${palestra.url.slice('http://'.length)}/openenv/${name}`;
  const played = await run(python, ['-c', PLAY, authority]);
  expect(played.stdout, played.output).toBe('0.5 Hello\n');

  const [container] = await engine.containers();
  expect(await engine.ask('port', container!)).toMatch(/^\d+\/tcp -> 127\.0\.0\.1:\d+$/);
  const format = '{{.HostConfig.Memory}} {{.HostConfig.NanoCpus}} {{index .Config.Labels "palestra.environment"}}';
  expect(await engine.ask('inspect', '-f', format, container!)).toBe(`${600 * 1024 ** 2} 1500000000 ${name!.split('/')[1]}`);
  expect(await engine.ask('exec', container!, 'sh', '-c', 'echo "$MODEL_KEY,$A"')).toBe('from here,b=c');
  await engine.ask('kill', container!);
  await pushing.said(/ended with status 137[\s\S]*connection open[\s\S]*Restarting it/);
  await expect.poll(() => isHealthy(url!), { timeout: 60_000 }).toBe(true);
  expect(await pushing.end()).toBe(0);
  expect(await isHealthy(url!)).toBe(false);
});

test('serve takes an image; its port is the one that it exposes; the end of the terminal ends it', async () => {
  const exposing = await engine.build('exposing', [
    `FROM ${image}`,
    'EXPOSE 7000/tcp',
    'VOLUME /kept',
    'CMD ["sh", "-c", "cd /app/env && exec uvicorn server.app:app --host 0.0.0.0 --port 7000"]',
  ]);
  const volumes = await engine.ask('volume', 'ls', '-q');
  const port = await freePort();
  const serving = foreground('env', 'serve', exposing, '--port', String(port));
  await serving.said(new RegExp(`^http://127.0.0.1:${port}$`, 'm'));
  expect(await isHealthy(`http://127.0.0.1:${port}`)).toBe(true);
  expect(await command('env', 'validate', '--url', `http://127.0.0.1:${port}`)).toMatchObject({ code: 0 });
  expect(await serving.end('SIGHUP')).toBe(0);
  // Nor is the volume left that the image declares.
  expect(await engine.ask('volume', 'ls', '-q')).toBe(volumes);
});

test('a folder is built by its own Dockerfile, and stays when it is detached', async () => {
  const name = engine.image('folder').split(/[/:]/).at(-2)!;
  const options = ['--build', '--build-arg', `BASE_IMAGE=${base}`, '--name', `${palestra.namespace}/${name}`, '--detach'];
  const pushed = await command('env', 'push', scaffold, ...options);
  expect(pushed.output).toContain(`${palestra.namespace}/${name}@1`);
  expect(pushed.code, pushed.output).toBe(0);
  expect((await client.environments.get(`${palestra.namespace}/${name}`)).description).toContain('version 0.1.0');
  const session = await client.session({ environment: `${palestra.namespace}/${name}`, split: 'train', index: 0 });
  expect(await session.call('step', { message: 'Hello' })).toMatchObject({ reward: 0.5 });
  await session.close();
  const [container] = await engine.containers();
  expect(pushed.output).toContain(`The container ${container} serves`);
  expect(await engine.ask('inspect', '-f', '{{.HostConfig.RestartPolicy.Name}}', container!)).toBe('unless-stopped');
  await engine.ask('rm', '-f', container!);
  await engine.ask('rmi', '-f', 'palestra-env/my-env');
});

describe('what cannot be served is said, and leaves nothing behind:', () => {
  test('no engine, no image, a port that is taken', async () => {
    const noEngine = await command('env', 'serve', image, '--engine', 'no-such-engine');
    expect(noEngine).toMatchObject({ code: 2, output: expect.stringContaining('no-such-engine is not installed') });
    const absent = await command('env', 'push', engine.image('absent'));
    expect(absent).toMatchObject({
      code: 1,
      output: expect.stringContaining(`The image ${engine.image('absent')} does not exist on this machine`),
    });
    const taken = await command('env', 'serve', image, '--port', String(palestra.port));
    expect(taken).toMatchObject({ code: 2, output: expect.stringContaining(`Port ${palestra.port} of 127.0.0.1 is in use`) });
    const unset = await command('env', 'serve', image, '--env', 'NOT_SET_ANYWHERE');
    expect(unset).toMatchObject({ code: 2, output: expect.stringContaining('the variable is not set') });
  });

  test('a server that ends, also when the engine would start it for ever; its last lines are shown', async () => {
    const dying = await engine.build('dying', [`FROM ${base}`, 'CMD ["sh", "-c", "echo reading; echo no MODEL_KEY >&2; exit 3"]']);
    const died = /ended with status 3; last log lines:\nreading\nno MODEL_KEY/;
    expect(await command('env', 'serve', dying, '--port', '0')).toMatchObject({ code: 1, output: expect.stringMatching(died) });
    const detached = await command('env', 'push', dying, '--detach');
    expect(detached).toMatchObject({ code: 1, output: expect.stringMatching(/ended [\s\S]*no MODEL_KEY/) });
  });

  test('a server that needs more memory than it may have', async () => {
    const small = await command('env', 'serve', image, '--port', '0', '--memory', '24m');
    expect(small).toMatchObject({ code: 1, output: expect.stringContaining('its memory limit may be too low') });
  });

  test('one that never answers, which port it is not saying, and an impatient user', async () => {
    const silent = await engine.build('silent', [`FROM ${base}`, 'EXPOSE 7000 7001', 'CMD ["sleep", "600"]']);
    const which = await command('env', 'serve', silent, '--port', '0');
    expect(which).toMatchObject({ code: 2, output: expect.stringContaining('Choose one with --container-port') });
    const late = await command('env', 'serve', silent, '--port', '0', '--container-port', '7000', '--start-timeout', '2');
    expect(late).toMatchObject({ code: 1, output: expect.stringContaining('did not answer /health on its port 7000 within 2 s') });
    const waiting = foreground('env', 'push', silent, '--container-port', '7001');
    await expect.poll(() => engine.containers(), { timeout: 60_000 }).toHaveLength(1);
    expect(await waiting.end('SIGTERM')).toBe(143);
  });
});
