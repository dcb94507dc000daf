import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import type { ApiKeyView, EnvironmentVersionList, RolloutList, RolloutView, RunList, RunSummary } from '@palestra/protocol';
import { type Palestra, startPalestra } from '../support/palestra.ts';

/** The demo of an empty data directory, seen through the public API: what it promises, its removal, and an interruption. */

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 });

const EPISODES = 344;
let palestra: Palestra;
const folder = mkdtempSync(path.join(tmpdir(), 'palestra-demo-'));

async function ask<T>(route: string, method = 'GET'): Promise<T> {
  const answer = await fetch(palestra.url + route, { method, headers: { 'x-api-key': palestra.apiKey } });
  if (!answer.ok) throw new Error(`${method} ${route}: ${answer.status} ${await answer.text()}`);
  return (await answer.json()) as T;
}
const runs = async () => (await ask<RunList>('/v1/runs')).runs;
const rollouts = (run: string, q: string) => ask<RolloutList>(`/v1/runs/${run}/rollouts?limit=100&q=${encodeURIComponent(q)}`);
const total = async (run: string, q: string) => (await rollouts(run, q)).total;
const demoKeys = async () => (await ask<{ keys: ApiKeyView[] }>('/v1/keys')).keys.filter(({ name }) => name === 'demo');
const complete = async () => (await demoKeys()).every(({ revoked_at }) => revoked_at !== null);

beforeAll(async () => {
  palestra = await startPalestra({ dataDir: folder, env: { PALESTRA_DEMO: '1', PALESTRA_BUNDLED_ENVIRONMENTS: '1' } });
});
afterAll(async () => {
  await palestra.stop();
  rmSync(folder, { recursive: true, force: true });
});

test('continues after a crash, without a rollout twice', async () => {
  await vi.waitUntil(async () => (await runs()).some(({ num_rollouts }) => num_rollouts > 60), { timeout: 120_000, interval: 200 });
  await palestra.kill();
  await palestra.restart();
  await vi.waitUntil(complete, { timeout: 200_000, interval: 500 });
  expect(
    (await runs()).map(({ name, num_rollouts, tags }) => ({ name, num_rollouts, tags })).toSorted((a, b) => (a.name < b.name ? -1 : 1)),
  ).toEqual([
    { name: 'demo-baseline', num_rollouts: EPISODES, tags: ['demo'] },
    { name: 'demo-learner', num_rollouts: EPISODES, tags: ['demo'] },
  ]);
});

describe('the two runs', () => {
  test('have twenty steps of groups of four over two environments, with an evaluation', async () => {
    for (const run of ['demo-learner', 'demo-baseline']) {
      const summary = await ask<RunSummary>(`/v1/runs/${run}/summary`);
      expect(summary).toMatchObject({
        steps: { from: 0, to: 19, count: 20 },
        rollouts: 320,
        group_size: { n: 4, groups: 80, of: 80 },
        gaps: 0,
      });
      expect((await ask<RunList['runs'][number]>(`/v1/runs/${run}`)).environments.toSorted()).toEqual([
        'local/demo-ctf',
        'palestra/whodunit',
      ]);
      expect(await total(run, 'phase:eval')).toBe(24);
    }
  });

  test('are a policy that learns and one that does not, on the same tasks', async () => {
    const [learner, baseline] = ['demo-learner', 'demo-baseline'].map(
      async (name) => (await runs()).find((run) => run.name === name)!.sparkline,
    );
    const mean = (values: (number | null)[]) => values.reduce<number>((sum, value) => sum + value!, 0) / values.length;
    const [rising, flat] = [await learner!, await baseline!];
    expect(mean(rising.slice(16)) - mean(rising.slice(0, 4))).toBeGreaterThan(0.4);
    expect(Math.abs(mean(flat.slice(16)) - mean(flat.slice(0, 4)))).toBeLessThan(0.25);
    const compared = await ask<{ comparisons: unknown[] }>('/v1/compare?runs=demo-learner&runs=demo-baseline');
    expect(JSON.stringify(compared)).toContain('"tasks":20');
  });

  test('have a tool that fails from step 12 on, with a new version of its environment, and the reward falls with it', async () => {
    expect(await total('demo-learner', 'tool.error:decode step:..11')).toBe(0);
    const broken = await rollouts('demo-learner', 'tool.error:decode step:12');
    expect(broken.total).toBeGreaterThan(0);
    const { sparkline } = (await runs()).find(({ name }) => name === 'demo-learner')!;
    expect(sparkline[11]! - sparkline[12]!).toBeGreaterThan(0.3);
    const { moves } = await ask<{ moves: { step: number; text: string; causes: { text: string; likely: boolean }[] }[] }>(
      '/v1/runs/demo-learner/moves',
    );
    const fall = moves.find(({ step }) => step === 12)!;
    expect(fall.text).toContain('fell');
    expect(fall.causes[0]).toMatchObject({ text: expect.stringMatching(/^decode failed in 8 of 8 calls/), likely: true });
    const { versions } = await ask<EnvironmentVersionList>('/v1/environments/local/demo-ctf/versions');
    expect(versions.map(({ number }) => number)).toEqual([2, 1]);
    const versionOf = async (q: string) => {
      const [rollout] = (await rollouts('demo-learner', q)).rollouts;
      const session = await ask<{ environment_version: number }>(`/v1/sessions/${rollout!.session}`);
      return session.environment_version;
    };
    expect(await versionOf('env:local/demo-ctf step:11')).toBe(1);
    expect(await versionOf('env:local/demo-ctf step:12')).toBe(2);
  });

  test('have one episode that the infrastructure ended without a reward', async () => {
    // The client reports the end at once; the comparison with the ledger takes a moment.
    const failed = async () => (await rollouts('demo-learner', 'stop:infra_error')).rollouts;
    const expected = [{ reward: null, stop: 'infra_error', verified: 'verified' }];
    await expect.poll(failed, { timeout: 60_000 }).toMatchObject(expected);
  });

  test('have a failure of the policy that repeats, and several ends', async () => {
    const careless = await rollouts('demo-learner', 'tool.error:accuse');
    expect(careless.total).toBeGreaterThan(3);
    expect(careless.rollouts.every(({ num_errors, stop }) => num_errors > 5 && stop === 'max_turns')).toBe(true);
    for (const stop of ['finished', 'max_turns', 'no_tool_call']) expect(await total('demo-learner', `stop:${stop}`)).toBeGreaterThan(0);
  });

  test('show reasoning, LaTeX, Markdown and JSON', async () => {
    const [solved] = (await rollouts('demo-learner', 'env:palestra/whodunit reward:1 has:reasoning')).rollouts;
    const { messages } = await ask<RolloutView>(`/v1/rollouts/${solved!.id}`);
    const text = messages.map(({ content }) => content).join('\n');
    for (const part of ['$$\\{s', '| suspect |', '{"room":']) expect(text).toContain(part);
  });

  test('agree with the session ledger', async () => {
    const unverified = async () => (await rollouts('demo-learner', 'step:3')).rollouts.filter(({ verified }) => verified !== 'verified');
    await expect.poll(unverified, { timeout: 60_000 }).toEqual([]);
  });
});

test('one request removes everything, and a restart does not bring it back', async () => {
  const mine = await fetch(`${palestra.url}/v1/rollouts`, {
    method: 'POST',
    headers: { 'x-api-key': palestra.apiKey, 'content-type': 'application/json' },
    body: JSON.stringify({ events: [{ eventType: 'rollout', eventId: crypto.randomUUID(), timestamp: 1, runName: 'mine' }] }),
  });
  expect(mine.status).toBe(200);
  expect(await ask('/v1/demo', 'DELETE')).toEqual({ deleted: true });
  const left = async () => ({
    runs: (await runs()).map(({ name }) => name),
    sessions: (await ask<{ sessions: unknown[] }>('/v1/sessions')).sessions,
    environments: (await ask<{ total: number }>('/v1/environments?owner=local')).total,
    keys: (await demoKeys()).filter(({ revoked_at }) => revoked_at === null),
  });
  const nothing = { runs: ['mine'], sessions: [], environments: 0, keys: [] };
  expect(await left()).toEqual(nothing);
  await palestra.terminate();
  await palestra.restart();
  expect(await left()).toEqual(nothing);
  await ask('/v1/runs/mine', 'DELETE');
  await palestra.terminate();
  await palestra.restart();
  expect(await left()).toEqual({ ...nothing, runs: [] });
  expect(await ask('/v1/demo', 'DELETE')).toEqual({ deleted: true });
});
