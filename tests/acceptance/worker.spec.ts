import { spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { chmodSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { type Palestra, startPalestra, testApiKey } from '../support/palestra.ts';
import { commandOf, isRunning, treeOf, workerOf } from '../support/process-tree.ts';
import { randomOf } from '../support/random.ts';

/** `npm start` runs its background jobs in a child process (ADR 15). */

// Rollouts are sealed every 15 seconds; the first time after a start is up to 30 seconds away.
vi.setConfig({ testTimeout: 300_000, expect: { poll: { timeout: 120_000 } } });

let palestra: Palestra;
const folder = mkdtempSync(path.join(tmpdir(), 'palestra-worker-'));
chmodSync(folder, 0o755);
beforeAll(async () => {
  palestra = await startPalestra({
    ownPostgres: true,
    dataDir: folder,
    env: { PALESTRA_SEAL_FINISHED_S: '0', PALESTRA_SEAL_SILENT_S: '0', PALESTRA_READ_WAIT_MS: '0', PALESTRA_DRAIN_S: '1' },
  });
});
afterAll(async () => {
  await palestra.stop();
  rmSync(folder, { recursive: true, force: true });
});

const headers = { 'x-api-key': testApiKey, 'content-type': 'application/json' };
const get = async (route: string) => (await fetch(palestra.url + route, { headers })).json();
const metrics = async () => (await fetch(`${palestra.url}/metrics`, { headers })).text();
const worker = async () => (await get('/v1/health')).worker;
/** The processes of PostgreSQL end by themselves after the first of them. */
function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has ended.
  }
}
const postmaster = () => Number(readFileSync(path.join(folder, 'postgres/data/postmaster.pid'), 'utf8').split('\n')[0]);

interface Upload {
  id: string;
  events: { eventType: string; eventId: string }[];
}

function newUpload(runName: string, messages = 3): Upload {
  const id = randomUUID();
  const start = { eventType: 'rollout', eventId: id, timestamp: 1, runName, rolloutName: 'r', environment: 'acme/math', step: 0 };
  const rest = Array.from({ length: messages }, (_, index) => ({
    eventType: 'message',
    eventId: randomUUID(),
    rolloutEventId: id,
    index,
    type: 'assistant_message',
    content: `message ${index} of ${id}`,
    isFinished: index === messages - 1,
    reward: index === messages - 1 ? 1 : null,
  }));
  return { id, events: [start, ...rest] };
}

const post = (uploads: readonly Upload[]) =>
  fetch(`${palestra.url}/v1/rollouts`, {
    method: 'POST',
    headers,
    body: JSON.stringify({ events: uploads.flatMap(({ events }) => events) }),
  });

describe('the process of the jobs', () => {
  test('is the only one that runs jobs and derives, and reports to the API', async () => {
    await expect.poll(worker).toEqual({ state: 'running', restarts: 0, detail: null });
    const upload = newUpload('by the worker');
    expect((await post([upload])).status).toBe(200);
    // Reads of this service do not derive (PALESTRA_READ_WAIT_MS).
    await expect.poll(async () => (await get('/v1/runs/by%20the%20worker')).num_rollouts).toBe(1);
    // Without those of the worker when it does not answer within a second.
    let text = '';
    const sealed = async () => /palestra_seals_total\{outcome="sealed",process="worker"\} 1/.test((text = await metrics()));
    await expect.poll(sealed).toBe(true);
    expect(text).toMatch(/palestra_jobs_total\{job="seal",outcome="done",process="worker"\} [1-9]/);
    expect(text).not.toMatch(/^palestra_(jobs|seals)_total\{(?!.*process="worker")/m);
    expect(text).toMatch(/^process_resident_memory_bytes \d+\nprocess_resident_memory_bytes\{process="worker"\} \d+$/m);
    expect(text.match(/^# HELP palestra_jobs_total /gm)).toHaveLength(1);
  });

  test('has no settings on its command line', () => {
    expect(commandOf(workerOf(palestra.pid())!).trim()).toMatch(/^\S*node \S*worker-main\.js$/);
  });

  test('is restarted when it is killed', async () => {
    const before = workerOf(palestra.pid())!;
    process.kill(before, 'SIGKILL');
    await expect.poll(worker).toEqual({ state: 'running', restarts: 1, detail: 'ended with SIGKILL' });
    expect(workerOf(palestra.pid())).not.toBe(before);
    expect(palestra.output()).toContain('the worker ended; it restarts');
  });

  test('is replaced when it hangs', async () => {
    const before = workerOf(palestra.pid())!;
    process.kill(before, 'SIGSTOP');
    await expect.poll(worker).toEqual({ state: 'running', restarts: 2, detail: 'was killed: it did not answer for 30 s' });
    expect(isRunning(before)).toBe(false);
  });

  test('ignores the signals of a terminal, and stops after the API', async () => {
    const tree = treeOf(palestra.pid());
    // As Ctrl-C does, which reaches the API process and its worker.
    process.kill(workerOf(palestra.pid())!, 'SIGINT');
    process.kill(workerOf(palestra.pid())!, 'SIGTERM');
    const ends = (await worker()).restarts;
    expect(await palestra.terminate()).toBe(0);
    for (const pid of tree) await expect.poll(() => isRunning(pid)).toBe(false);
    expect(palestra.output().match(/the worker ended/g)).toHaveLength(ends);
    await palestra.restart();
  });

  test('ends with an API process that is killed', async () => {
    await expect.poll(async () => (await worker()).state).toBe('running');
    const tree = treeOf(palestra.pid());
    await palestra.kill();
    for (const pid of tree) await expect.poll(() => isRunning(pid)).toBe(false);
    await palestra.restart();
  });
});

test('kills at random moments lose and repeat no acknowledged event, and leave no process', async () => {
  const seed = Number(process.env['PALESTRA_TEST_SEED'] ?? Date.now() % 1_000_000);
  const random = randomOf(seed);
  const below = (limit: number) => Math.floor(random() * limit);
  const uploads: Upload[] = [];
  let stopped = false;
  /** Sends a batch again until it is acknowledged, as an SDK does. */
  const send = async (batch: Upload[]) => {
    while (
      !(await post(batch).then(
        ({ ok }) => ok,
        () => false,
      ))
    )
      await new Promise((resolve) => setTimeout(resolve, 100));
    uploads.push(...batch);
  };
  const client = async () => {
    while (!stopped) {
      await send(Array.from({ length: 5 }, () => newUpload('killed', 1 + below(4))));
      // Each rollout is read in the end. Without pauses there would be tens of thousands.
      await new Promise((resolve) => setTimeout(resolve, below(100)));
    }
  };
  const clients = Array.from({ length: 3 }, client);
  for (const target of ['worker', 'api', 'api and worker', 'everything', 'worker', 'api']) {
    await new Promise((resolve) => setTimeout(resolve, 300 + below(2_500)));
    const api = palestra.pid();
    const tree = treeOf(api);
    const victims = { worker: [workerOf(api)], api: [api], 'api and worker': [api, workerOf(api)], everything: [postmaster(), ...tree] }[
      target
    ]!;
    for (const pid of victims) if (pid !== undefined) kill(pid);
    if (target === 'worker') continue;
    await palestra.kill();
    await palestra.restart();
    for (const pid of tree) await expect.poll(() => isRunning(pid), { message: `seed ${seed}, ${target}: ${commandOf(pid)}` }).toBe(false);
  }
  stopped = true;
  await Promise.all(clients);

  await expect.poll(async () => (await get('/v1/runs/killed')).num_rollouts).toBe(uploads.length);
  const left = [...uploads];
  const read = async () => {
    for (let next = left.pop(); next !== undefined; next = left.pop()) {
      const { messages } = await get(`/v1/rollouts/${next.id}`);
      expect(
        messages.map(({ eventId }: { eventId: string }) => eventId),
        `seed ${seed}`,
      ).toEqual(next.events.slice(1).map(({ eventId }) => eventId));
    }
  };
  await Promise.all(Array.from({ length: 8 }, read));
});

test.each(['worker-main.js', 'platform/untrusted-work/work-main.js'])('%s ends when the API was killed before it ran', async (main) => {
  const parent = `const { pid } = require('node:child_process').fork(process.argv[1], { stdio: ['ignore', 'ignore', 'ignore', 'ipc'] });
    process.stdout.write(String(pid), () => process.kill(process.pid, 'SIGKILL'));`;
  const file = path.join(import.meta.dirname, '../../apps/api/dist', main);
  const pid = Number(spawnSync(process.execPath, ['-e', parent, file], { encoding: 'utf8' }).stdout);
  expect(pid).toBeGreaterThan(0);
  await expect.poll(() => isRunning(pid)).toBe(false);
});
