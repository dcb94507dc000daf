import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { serve } from '@palestra/environment-kit';
import { type FailureList, TASK_ROW_FORMATS } from '@palestra/protocol';
import { startHttpFaultProxy } from '../support/http-fault-proxy.ts';
import { addRemote, type Palestra, type SharedPalestra, sharedPalestra, startPalestra } from '../support/palestra.ts';
import { executions, textEnvironments } from '../support/text-environments.ts';
import { clientEnv } from './support/client-env.ts';
import { python, pythonFolder, run, runScript } from './support/python.ts';

/** The Python package `palestra` (integrations/python): its own tests, and the same program against the service and through faults. */
const root = path.resolve(import.meta.dirname, '../..');
const packageFolder = path.join(root, 'integrations/python');

interface Event {
  eventType: string;
  eventId: string;
  index: number;
  type: string;
  content?: string;
  name?: string;
  callId?: string;
  reward?: number;
  isFinished: boolean;
  rollout_info?: Record<string, unknown>;
}
interface Played {
  kind: string;
  environment: string;
  stop: string;
  failure: { code: string; failure_class: string; advice: string } | null;
  total: number | null;
  calls: [string, string, number | null][];
  messages: { role: string; content: string }[];
  session: string;
  rollout: string;
}
interface Recorded {
  played: Played[];
  events: Record<string, Event[]>;
  complete: boolean;
  report: string;
}
interface Stored {
  reward: number | null;
  step: number | null;
  missing_indexes: number[];
  rollout_info: Record<string, unknown>;
  messages: (Omit<Event, 'eventType' | 'eventId'> & Record<string, string | number | boolean | null>)[];
}
type Service = Pick<Palestra, 'url' | 'apiKey'>;

const drive = (service: Service, mode: string, args: string[], env: Record<string, string> = {}, timeoutMs?: number) =>
  drivePython(mode, args, { ...clientEnv(service), ...env }, timeoutMs);

async function drivePython(mode: string, args: string[], env: Record<string, string>, timeoutMs = 240_000): Promise<any> {
  const finished = await run(python('v167'), [path.join(pythonFolder, 'palestra_package.py'), mode, ...args], { env, timeoutMs });
  if (finished.code !== 0) throw new Error(`palestra_package.py ${mode} ended with ${finished.code}:\n${finished.output.slice(-6_000)}`);
  return JSON.parse(finished.stdout.trimEnd().split('\n').at(-1)!);
}

async function read<T>(service: Service, route: string): Promise<T> {
  const answer = await fetch(`${service.url}${route}`, { headers: { 'x-api-key': service.apiKey } });
  expect(answer.status, await answer.clone().text()).toBe(200);
  return (await answer.json()) as T;
}

const partsOf = (message: Partial<Event>) => [
  message.index,
  message.type,
  message.content ?? null,
  message.name ?? null,
  message.callId ?? null,
  message.reward ?? null,
  message.isFinished,
];

/** What is stored is what was logged: nothing is missing, doubled or changed. */
async function assertStored(service: Service, { played, events, complete, report }: Recorded): Promise<Stored[]> {
  expect(complete, report).toBe(true);
  const all: Stored[] = [];
  for (const { rollout } of played) {
    const stored = await read<Stored>(service, `/v1/rollouts/${rollout}`);
    const logged = events[rollout]!.filter(({ eventType }) => eventType === 'message');
    expect(stored.missing_indexes).toEqual([]);
    expect(stored.messages.map((message) => partsOf(message as Partial<Event>))).toEqual(logged.map(partsOf));
    const update = events[rollout]!.find(({ eventType }) => eventType === 'rollout_update')!;
    expect(stored.rollout_info).toMatchObject(update.rollout_info!);
    all.push(stored);
  }
  return all;
}

describe('the package', () => {
  test('passes its own tests', async () => {
    const finished = await run(python('v167'), ['-m', 'pytest', '-q', '-p', 'no:cacheprovider', 'tests'], {
      cwd: packageFolder,
      timeoutMs: 280_000,
    });
    expect(finished.code, finished.output.slice(-5_000)).toBe(0);
    expect(finished.stdout).toMatch(/\d{3} passed/);
    expect(finished.stdout).not.toMatch(/skipped|failed/);
  });
});

describe('against the service', () => {
  let palestra: SharedPalestra;
  let running: Awaited<ReturnType<typeof serve>>;
  let environment: string;
  beforeAll(async () => {
    running = await serve(textEnvironments);
    palestra = await sharedPalestra();
    environment = await addRemote(palestra, 'texts', running.url);
  });
  afterAll(async () => {
    await running?.close();
  });

  test('plays alike with its own sessions and those of openreward, and records what it played', async () => {
    const recorded = (await drive(palestra, 'play', ['palestra/whodunit', 'palestra/math'])) as Recorded;
    const stored = await assertStored(palestra, recorded);
    expect(recorded.played.map(({ kind }) => kind)).toEqual(['palestra', 'async', 'sync', 'palestra', 'async', 'sync']);
    for (const three of [recorded.played.slice(0, 3), recorded.played.slice(3)]) {
      const [ours, ...official] = three.map(({ stop, total, calls, messages, failure }) => ({ stop, total, calls, messages, failure }));
      expect(ours!.failure).toBeNull();
      expect(ours!.calls.length).toBeGreaterThan(0);
      expect(official).toEqual([ours, ours]);
    }
    expect(stored.map(({ step, rollout_info: info }) => [step, info['task_index']])).toEqual(Array(6).fill([3, 0]));
  });

  test('reads texts and answers them as the text sessions do', async () => {
    const golden = JSON.parse(readFileSync(path.join(pythonFolder, 'text_goldens.json'), 'utf8')) as {
      name: string;
      steps: { observations: object[]; reward: number; done: boolean; metadata: { tool_name?: string } }[];
    }[];
    const played = (await drive(palestra, 'forms', [environment])) as { name: string; stop: string; steps: object[] }[];
    for (const { name, steps, stop } of played) {
      const all = golden.find((one) => one.name === name)!.steps;
      // A tool that raises ends an episode here: the state of its environment is unknown.
      const raised = all.findIndex(({ metadata }) => metadata.tool_name === 'boom');
      const done = all.findIndex((step) => step.done);
      const until = Math.min(...[raised, done + 1, all.length].filter((end) => end > 0));
      const theirs = all.slice(0, until).map(({ observations, reward }) => ({ observations, reward }));
      expect([name, steps.slice(0, until)]).toEqual([name, theirs]);
      expect([name, stop === 'env_error']).toEqual([name, raised >= 0]);
    }
    expect(played).toHaveLength(golden.length);
  });

  test('lists tasks, and rows equal to the export of the service', async () => {
    const seen = await drive(palestra, 'tasks', ['palestra/math']);
    expect(seen.refs).toHaveLength(4);
    expect(seen.refs[1]).toMatchObject({ owner: 'palestra', env: 'math', split: 'train', index: 1, variant: null });
    expect(new Set(seen.refs.map(({ key }: { key: string }) => key)).size).toBe(4);
    expect(seen.second_page).toEqual([2, 3]);
    expect(seen.same).toBe(true);
    const cli = path.join(root, 'apps/cli/dist/main.js');
    const folder = mkdtempSync(path.join(tmpdir(), 'palestra-rows-'));
    try {
      const formats = [
        ['skyrl-script', '--format', 'skyrl'],
        ['skyrl', '--format', 'skyrl', '--prompt-format', 'messages'],
      ];
      for (const format of TASK_ROW_FORMATS) if (format !== 'skyrl') formats.push([format, '--format', format]);
      for (const [number, [format, ...options]] of formats.entries()) {
        const output = path.join(folder, `${format}.jsonl`);
        const args = ['prepare-tasks', '--env', 'palestra/math', '--split', 'train', '--max-tasks', '4', '--output', output, ...options];
        // The service writes one file, the command by sessions the next.
        if (number % 2 === 1) args.push('--concurrency', '4');
        const finished = await run(process.execPath, [cli, ...args], { env: clientEnv(palestra) });
        expect(finished.code, finished.output).toBe(0);
        const text = readFileSync(output, 'utf8');
        if (format === 'skyrl-script') expect(seen.script).toBe(text);
        const rows = text
          .trimEnd()
          .split('\n')
          .map((line) => JSON.parse(line) as object);
        expect([format, seen.rows[format!]]).toEqual([format, rows]);
      }
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
    // The facts of the service: the key is the hash by which it compares tasks.
    expect(seen.rows.trl[0]).toMatchObject({ env_name: 'palestra/math', task_index: 0, task_key: seen.refs[0].key });
    expect(seen.difficulty[0]).toHaveProperty('num_rollouts');
  });

  test('names what goes wrong, and loses nothing of it', async () => {
    const own = await addRemote(palestra, 'fragile', running.url);
    const seen = (await drive(palestra, 'errors', [own])) as Record<string, any>;
    expect(seen['key_revoked']).toMatchObject({ stop: 'infra_error', failure: { code: 'key_revoked' }, total: null });
    expect(seen['key_revoked'].calls).toHaveLength(2);
    // What the revoked key could not upload waits on disk, until another key of the organisation uploads it.
    expect(seen['key_revoked'].spilled).toBeGreaterThan(0);
    expect(seen['key_revoked'].report_error).toBe('key_revoked');
    expect(seen['uploaded_later']).toEqual({ stored: seen['key_revoked'].spilled, complete: true });
    expect(seen['quota_reached']).toMatchObject({ stop: 'infra_error', failure: { code: 'capacity_exhausted' } });
    expect(seen['beside_the_quota']).toMatchObject({ stop: 'max_turns', total: 3, failure: null, spilled: 0 });
    expect(seen['renamed_while_playing']).toMatchObject({ stop: 'max_turns', total: 3, failure: null, spilled: 0 });
    expect(seen['after_the_renaming']).toMatchObject({ stop: 'infra_error', failure: { code: 'deployment_not_found' } });
    expect(seen['service_down']).toMatchObject({ stop: 'infra_error', failure: { code: 'unreachable' } });
    for (const one of Object.values(seen)) {
      if (one.failure) expect(one.failure).toMatchObject({ failure_class: 'infrastructure', advice: expect.stringMatching(/\.$/) });
    }
  });

  test('does what its README shows', async () => {
    const env = {
      PALESTRA_URL: palestra.url,
      PALESTRA_API_KEY: palestra.apiKey,
      PALESTRA_SPOOL_DIR: mkdtempSync(path.join(tmpdir(), 'spool-')),
    };
    const seen = (await runScript('v167', 'palestra_package.py', ['readme'], env)) as { blocks: number; files: string[] };
    expect(seen.blocks).toBeGreaterThanOrEqual(7);
    expect(seen.files).toEqual(['train.jsonl']);
  });
});

describe('through faults', () => {
  let palestra: Palestra;
  let running: Awaited<ReturnType<typeof serve>>;
  let environment: string;
  beforeAll(async () => {
    running = await serve(textEnvironments);
    palestra = await startPalestra({ env: { PALESTRA_QUEUE_PATIENCE_S: '2' } });
    environment = await addRemote(palestra, 'texts', running.url);
  });
  afterAll(async () => {
    await palestra?.stop();
    await running?.close();
  });

  const counted = (turns: number) => Array.from({ length: turns }, (_, turn) => ['count', `count ${turn + 1}`, 1]);

  test(
    '429, 502, 503, lost, cut and stalled responses: each tool runs once, and each message is stored once',
    { timeout: 400_000 },
    async () => {
      const proxy = await startHttpFaultProxy({ port: palestra.port, share: 0.25, seed: 28, stallMs: 4_000 });
      try {
        const before = executions.count;
        const through = { url: proxy.url, apiKey: palestra.apiKey };
        const recorded = (await drive(through, 'count', [environment, '8', '6'], { TEST_STALL_S: '3' }, 380_000)) as Recorded;
        expect(recorded.played.map(({ stop, failure }) => [stop, failure])).toEqual(Array(6).fill(['max_turns', null]));
        for (const { calls } of recorded.played) expect(calls).toEqual(counted(8));
        expect(executions.count - before).toBe(48);
        await assertStored(palestra, recorded);
        for (const [fault, times] of Object.entries(proxy.counts)) expect([fault, times > 0]).toEqual([fault, true]);
      } finally {
        await proxy.close();
      }
    },
  );

  test('a quota that refuses a sample of a group: the others are played, and the run names the reason', async () => {
    const recorded = (await drive(palestra, 'quota', [environment])) as Recorded;
    const stored = await assertStored(palestra, recorded);
    const played = recorded.played.toSorted((a, b) => Number(a.failure !== null) - Number(b.failure !== null));
    expect(played.map(({ stop, total, failure }) => [stop, total, failure?.code])).toEqual([
      ['max_turns', 3, undefined],
      ['max_turns', 3, undefined],
      ['infra_error', null, 'capacity_exhausted'],
    ]);
    const reason = expect.stringMatching(/this API key may have 2 sessions open.* none became free within 2 s/);
    expect(played[2]!.failure).toMatchObject({ failure_class: 'infrastructure', detail: reason });
    expect(stored.map(({ reward }) => reward)).toEqual(recorded.played.map(({ total }) => total));
    const { runs } = await read<{ runs: { id: string; name: string }[] }>(palestra, '/v1/runs?search=quota');
    const { failures, rollouts } = await read<FailureList>(palestra, `/v1/runs/${runs[0]!.id}/failures`);
    expect(rollouts).toBe(3);
    const refused = failures.filter((failure) => failure.class === 'infrastructure');
    expect(refused).toMatchObject([{ count: 1, example: { text: reason, stop: 'infra_error' } }]);
  });

  test('kill -9 of the service while it is played and recorded', { timeout: 400_000 }, async () => {
    const before = executions.count;
    const playing = drive(palestra, 'count', [environment, '40', '4'], {}, 380_000) as Promise<Recorded>;
    playing.catch(() => {});
    for (const at of [20, 90]) {
      await expect.poll(() => executions.count - before, { timeout: 120_000, interval: 5 }).toBeGreaterThan(at);
      await palestra.kill();
      await palestra.restart();
    }
    const recorded = await playing;
    expect(recorded.played.map(({ stop, failure }) => [stop, failure])).toEqual(Array(4).fill(['max_turns', null]));
    for (const { calls } of recorded.played) expect(calls).toEqual(counted(40));
    expect(executions.count - before).toBe(160);
    const stored = await assertStored(palestra, recorded);
    expect(stored.map(({ reward }) => reward)).toEqual(Array(4).fill(40));
  });
});

describe('the wheel', () => {
  test('has the sources, types, licence and nothing else, and installs in an empty environment', { timeout: 400_000 }, async () => {
    const folder = mkdtempSync(path.join(tmpdir(), 'palestra-wheel-'));
    try {
      const tool = process.env['PALESTRA_UV'] ?? 'uv';
      const env = { ...process.env, UV_NO_PROGRESS: '1' };
      execFileSync(tool, ['build', '--wheel', '--out-dir', folder, packageFolder], { env, stdio: 'pipe' });
      const wheel = path.join(folder, 'palestra-0.1.0-py3-none-any.whl');
      const listed = execFileSync('python3', ['-m', 'zipfile', '-l', wheel]).toString();
      const files = listed
        .split('\n')
        .slice(1, -1)
        .map((line) => line.split(' ')[0]!);
      const sources = execFileSync('git', ['ls-files', 'src'], { cwd: packageFolder }).toString().trimEnd().split('\n');
      const info = 'palestra-0.1.0.dist-info';
      const expected = [
        ...sources.map((file) => file.replace('src/', '')),
        ...['METADATA', 'RECORD', 'WHEEL', 'entry_points.txt', 'licenses/LICENSE'].map((file) => `${info}/${file}`),
      ];
      expect(files.toSorted()).toEqual(expected.toSorted());
      expect(files).toContain('palestra/py.typed');
      // Every Python that the package supports and this machine has.
      const versions = ['3.10', '3.11', '3.12', '3.13'];
      const found = execFileSync(tool, ['python', 'list', '--only-installed', '--offline'], {
        env,
        stdio: ['ignore', 'pipe', 'ignore'],
      }).toString();
      const available = versions.filter((version) => found.includes(`cpython-${version}.`));
      expect(available.length).toBeGreaterThan(0);
      for (const version of available) {
        const venv = path.join(folder, version);
        execFileSync(tool, ['venv', '-q', '--offline', '--python', version, venv], { env, stdio: 'pipe' });
        const interpreter = path.join(venv, 'bin/python');
        execFileSync(tool, ['pip', 'install', '-q', '--python', interpreter, wheel], { env, stdio: 'pipe' });
        const loaded = execFileSync(interpreter, ['-c', 'import palestra, sys; print(palestra.__version__, "torch" in sys.modules)'], {
          cwd: folder,
        });
        expect(loaded.toString()).toBe('0.1.0 False\n');
        const help = execFileSync(path.join(venv, 'bin/palestra-upload'), ['--help'], { cwd: folder }).toString();
        expect(help).toContain('Upload the rollout events');
      }
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});
