import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { WebSocket } from 'ws';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type RunningServer, serve } from '@palestra/environment-kit';
import { freePort } from '@palestra/hosting';
import { addRemote, type SharedPalestra, sharedPalestra } from '../support/palestra.ts';
import { shapes } from './skyrl-openenv.world.ts';
import { run, runScript } from './support/python.ts';
import { rolloutsOf } from './trainers/contract.ts';

/**
 * The calls of SkyRL's OpenEnv integration to `docker` and the packages `envs.*` (docs/reference/skyrl.md#openenv-integration) against the built
 * service. Two environments are bundled; the other four have the same wire shapes. Its own `env.py` is checked by hand.
 */
const integration = path.resolve(import.meta.dirname, '../../integrations/skyrl-openenv');
const PATIENCE_MS = 180_000;

let palestra: SharedPalestra;
const kits: RunningServer[] = [];
let runFolder: string;
const environment: Record<string, string> = {};

beforeAll(async () => {
  runFolder = mkdtempSync(path.join(tmpdir(), 'palestra-docker-test-'));
  palestra = await sharedPalestra();
  for (const shape of shapes) {
    const kit = await serve([shape]);
    kits.push(kit);
    await addRemote(palestra, shape.name, kit.url, true);
  }
  Object.assign(environment, {
    PATH: `${path.join(integration, 'bin')}:${process.env['PATH']}`,
    PYTHONPATH: path.join(integration, 'python'),
    PALESTRA_URL: palestra.url,
    PALESTRA_API_KEY: palestra.apiKey,
    XDG_RUNTIME_DIR: runFolder,
    // The other images find their environments by name, of this organisation or of the service.
    PALESTRA_DOCKER_IMAGES: JSON.stringify({ 'finrl-env': `${palestra.namespace}/finrl` }),
  });
}, PATIENCE_MS);
afterAll(async () => {
  await Promise.all(kits.map((kit) => kit.close()));
  if (runFolder) rmSync(runFolder, { recursive: true, force: true });
});

const docker = (args: string[], env: Record<string, string> = {}) => run('docker', args, { env: { ...environment, ...env } });
const containers = () => readdirSync(runFolder, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.json'));
async function liveSessions(): Promise<unknown[]> {
  const answer = await fetch(`${palestra.url}/v1/sessions?live=true`, { headers: { 'x-api-key': palestra.apiKey } });
  return ((await answer.json()) as { sessions: { live: boolean }[] }).sessions.filter(({ live }) => live);
}

interface Shown {
  fields: string[];
  observation: Record<string, unknown>;
  reward: number | null;
  done: boolean;
}
interface Played {
  env_name: string;
  reset: Shown;
  steps: Shown[];
  state: Record<string, unknown>;
  after: number[];
}

describe('docker', () => {
  test('refuses unknown images and containers like docker', { timeout: PATIENCE_MS }, async () => {
    expect(await docker(['run', '-d', '-p', '0:8000', 'nothing-env:latest'])).toMatchObject({
      code: 125,
      stdout: '',
      output: expect.stringMatching(/Unable to find image 'nothing-env:latest': .+ has no environment nothing-env that this key may see/),
    });
    const wrong = await docker(['run', '-d', '-p', '0:8000', 'echo-env'], { PALESTRA_API_KEY: 'or_wrong' });
    expect(wrong).toMatchObject({ code: 125, output: expect.stringContaining('refused the API key (401)') });
    expect(await docker(['run', '-d', '-p', 'x:8000', 'echo-env'])).toMatchObject({
      code: 125,
      output: expect.stringContaining('Invalid'),
    });
    expect(await docker(['stop', 'nobody'])).toMatchObject({ code: 1, output: 'Error response from daemon: No such container: nobody\n' });
    expect(await docker(['rm', 'nobody'])).toMatchObject({ code: 0, output: 'nobody\n' });
    expect(containers()).toEqual([]);
  });

  test('does not guess between environments of one name', { timeout: PATIENCE_MS }, async () => {
    const kit = await serve([shapes[1]!]);
    kits.push(kit);
    for (const name of ['two-envs', 'two_envs']) await addRemote(palestra, name, kit.url, true);
    const [first, second] = [`${palestra.namespace}/two-envs`, `${palestra.namespace}/two_envs`];
    const run = ['run', '-d', '-p', '0:8000', 'two_envs:latest'];
    const refused = await docker(run);
    expect(refused).toMatchObject({ code: 125, stdout: '', output: expect.stringContaining("'two_envs:latest' is ambiguous") });
    for (const name of [first, second]) expect(refused.output).toContain(name);
    const chosen = await docker(run, { PALESTRA_DOCKER_IMAGES: JSON.stringify({ 'two-envs': second }) });
    // A name that is written out is one environment.
    expect(chosen).toMatchObject({ code: 0 });
    expect(await docker(['stop', chosen.stdout.trim()])).toMatchObject({ code: 0 });
  });

  test('listens when it reports so and stops its session', { timeout: PATIENCE_MS }, async () => {
    const port = await freePort();
    const run = ['run', '-d', '--name', 'echo_env-1', '-p', `${port}:8000`, '-e', 'A=b', 'echo_env:latest'];
    const started = await docker(run);
    expect(started).toMatchObject({ code: 0, output: expect.stringMatching(/^[a-f]{64}\n$/) });
    expect(await (await fetch(`http://127.0.0.1:${port}/health`)).json()).toEqual({ status: 'healthy' });
    expect(await docker(run)).toMatchObject({ code: 125, output: expect.stringContaining('port is already allocated') });
    await fetch(`http://127.0.0.1:${port}/reset`, { method: 'POST', body: '{}' });
    expect(await liveSessions()).toHaveLength(1);

    const before = performance.now();
    expect(await docker(['stop', 'echo_env-1'])).toMatchObject({ code: 0, output: 'echo_env-1\n' });
    expect(performance.now() - before).toBeLessThan(30_000);
    await expect(fetch(`http://127.0.0.1:${port}/health`)).rejects.toThrow('fetch failed');
    expect(containers()).toEqual([]);
    await expect.poll(liveSessions).toEqual([]);
    // Without PALESTRA_RUN the run has this name.
    expect(await rolloutsOf(palestra, 'skyrl-openenv', 1)).toMatchObject([{ environment: 'palestra/echo_env', stop: 'max_turns' }]);
  });

  test('ends when it is idle', { timeout: PATIENCE_MS }, async () => {
    const port = await freePort();
    await docker(['run', '-d', '-p', `${port}:8000`, 'echo_env:latest'], { PALESTRA_DOCKER_IDLE_SECONDS: '5' });
    await fetch(`http://127.0.0.1:${port}/reset`, { method: 'POST', body: '{}' });
    await expect.poll(containers, { timeout: 60_000 }).toEqual([]);
    await expect.poll(liveSessions).toEqual([]);
  });

  test('serves the WebSocket of later generations', { timeout: PATIENCE_MS }, async () => {
    const port = await freePort();
    const { stdout } = await docker(['run', '-d', '-p', `${port}:8000`, 'echo_env:latest']);
    const socket = new WebSocket(`ws://127.0.0.1:${port}/ws`);
    await once(socket, 'open');
    socket.send('{"type":"reset","data":{}}');
    const [answer] = (await once(socket, 'message')) as [Buffer];
    expect(JSON.parse(answer.toString())).toMatchObject({
      type: 'observation',
      data: { observation: { echoed_message: 'Echo environment ready!' } },
    });
    socket.close();
    expect(await docker(['stop', stdout.trim()])).toMatchObject({ code: 0 });
  });
});

test('plays all six environments', { timeout: PATIENCE_MS }, async () => {
  const texts = [
    ['echo_env', ['hello', '']],
    ['coding_env', ['x = 21', 'print(2 * x)', 'def f(:']],
    ['openspiel-env', ['2']],
    ['atari-env', ['3']],
    ['sumo-rl-env', ['1']],
    ['finrl-env', ['[0.5, -0.25]']],
  ];
  const played = (await runScript('v167', 'skyrl_openenv.py', [JSON.stringify(texts)], {
    ...environment,
    PALESTRA_RUN: 'six environments',
  })) as Played[];
  const base = ['done', 'reward', 'metadata'];
  expect(Object.fromEntries(played.map(({ env_name: name, reset }) => [name, reset.fields]))).toEqual({
    echo_env: [...base, 'echoed_message', 'message_length'],
    coding_env: [...base, 'stdout', 'stderr', 'exit_code'],
    'openspiel-env': [...base, 'info_state', 'legal_actions', 'game_phase', 'current_player_id', 'opponent_last_action'],
    'atari-env': [...base, 'screen', 'screen_shape', 'legal_actions', 'lives', 'episode_frame_number', 'frame_number'],
    'sumo-rl-env': [...base, 'observation', 'observation_shape', 'action_mask', 'sim_time'],
    'finrl-env': [...base, 'state', 'portfolio_value', 'date'],
  });
  const [echo, coding, openspiel, atari, sumo, finrl] = played;
  expect(echo).toMatchObject({
    reset: { observation: { echoed_message: 'Echo environment ready!', message_length: 0 }, done: false },
    steps: [
      { observation: { done: false, reward: 0.5, metadata: {}, echoed_message: 'hello', message_length: 5 }, reward: 0.5, done: false },
      { observation: { echoed_message: '', message_length: 0 }, reward: 0 },
    ],
    state: { step_count: 2 },
  });
  expect(coding).toMatchObject({
    reset: { observation: { stdout: '', stderr: '', exit_code: 0 } },
    steps: [
      { observation: { stdout: '', exit_code: 0 }, reward: 0.1 },
      { observation: { stdout: '42\n', stderr: '', exit_code: 0 } },
      { observation: { exit_code: 1, stderr: expect.stringContaining('SyntaxError') }, reward: -0.1 },
    ],
  });
  expect(openspiel!.steps[0]).toMatchObject({
    observation: { info_state: expect.any(Array), legal_actions: [2], game_phase: 'catch', opponent_last_action: 2 },
    reward: 1,
    done: true,
  });
  expect(openspiel!.steps[0]!.observation['info_state']).toHaveLength(50);
  expect(atari!.steps[0]).toMatchObject({
    observation: { screen: [3, 3], screen_shape: [2], lives: 2, frame_number: 8 },
    reward: null,
    done: false,
  });
  expect(sumo!.reset.observation).toMatchObject({ observation: [0.25], action_mask: [1, 0] });
  expect(sumo!.steps[0]).toMatchObject({ observation: { observation: [1, 0], sim_time: 5, metadata: {} }, reward: -0.5 });
  expect(finrl!.steps[0]).toMatchObject({
    observation: { state: [1000.25, null], portfolio_value: 1000.25, date: '2020-01-03' },
    reward: 0.25,
  });
  // Every container was gone after `close`: `stop` did not know it, `rm` did not mind.
  expect(played.map(({ after }) => after)).toEqual(played.map(() => [1, 0]));
  expect(containers()).toEqual([]);
  await expect.poll(liveSessions).toEqual([]);

  // Each episode is a rollout of the run, with what was done, seen and rewarded.
  const rollouts = await rolloutsOf(palestra, 'six environments', texts.length);
  const facts = rollouts.map((one) => [one.environment?.split('/')[1], one.num_tool_calls, one.num_messages, one.reward, one.stop]);
  expect(facts).toEqual([
    ['echo_env', 2, 4, expect.closeTo(0.5), 'max_turns'],
    ['coding_env', 3, 6, expect.closeTo(0.1, 5), 'max_turns'],
    ['openspiel_env', 1, 2, 1, 'finished'],
    ['atari-env', 1, 2, null, 'max_turns'],
    ['sumo_rl-env', 1, 2, -0.5, 'max_turns'],
    ['finrl', 1, 2, 0.25, 'max_turns'],
  ]);
});
