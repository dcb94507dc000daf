import { expect, test } from 'vitest';
import type { Crash, StoredDemand, StoredInstance } from './instance.sql.ts';
import { hostingOf } from '../hosting-settings.ts';
import { crashesByVersion, demandOf, factsOf } from './snapshot.ts';

const row: StoredInstance = {
  id: 'i',
  environment_id: 'e',
  version_id: 'v',
  org_id: 'o',
  provider: 'docker',
  state: 'ready',
  endpoint: 'http://127.0.0.1:1',
  detail: null,
  restarts: 0,
  created_at: 1_000,
  ready_at: 2_000,
  draining_at: null,
  sessions: 0,
  sessions_left: null,
};
const crash = (ended_at: number, ready_at: number | null = null): Crash => ({
  id: 'i',
  version_id: 'v',
  created_at: ended_at - 500,
  ready_at,
  ended_at,
});

test('instances that end together are one crash, and an answer ends a series without one', () => {
  const crashes = [crash(10_000), crash(11_000), crash(20_000, 19_900), crash(60_000), crash(70_000)];
  expect(crashesByVersion(crashes, []).get('v')).toEqual({ moments: 4, unready: 2, lastAt: 70_000 });
  expect(crashesByVersion(crashes, [{ ...row, ready_at: 69_800 }]).get('v')).toMatchObject({ unready: 0 });
  expect(crashesByVersion([], [row]).get('v')).toBeUndefined();
});

test('the end of an instance is worded for its owner', () => {
  const exited = (code: number | null, reason: string) =>
    factsOf(
      row,
      new Map([['i', { id: 'i', versionId: 'v', state: 'exited', endpoint: null, exit: { code, reason }, startedAt: null, restarts: 0 }]]),
      {
        idleSince: null,
        silent: false,
        answersSince: 0,
      },
    );
  expect(exited(1, 'exited with code 1')).toMatchObject({ engine: 'exited', exit: 'It ended: exited with code 1.' });
  expect(exited(137, 'exited with code 137').exit).toContain('memory');
  expect(exited(1, 'The server ended with status 1. cannot open ../data.').exit).toBe(
    'It ended: The server ended with status 1. cannot open ../data.',
  );
  const known = 'The server was killed (status 137), probably because it used more than its 128 MB of memory.';
  expect(exited(137, known).exit).toBe(`It ended: ${known}`);
  expect(factsOf(row, null, { idleSince: null, silent: false, answersSince: 0 }).engine).toBe('unknown');
  expect(factsOf(row, new Map(), { idleSince: null, silent: false, answersSince: 0 }).engine).toBe('absent');
});

const demand: StoredDemand = {
  id: 'v',
  environment_id: 'e',
  org_id: 'o',
  provider: 'remote',
  kind: 'urls',
  urls: 3,
  settings: null,
  served: true,
  tested: false,
  waiting: 0,
};

test('servers at URLs have an instance each while their version is in use', () => {
  expect(demandOf(demand, undefined, null)).toMatchObject({ minWarm: 3, max: 3 });
  expect(demandOf({ ...demand, served: false }, undefined, null)).toMatchObject({ minWarm: 0, max: 3 });
  expect(demandOf({ ...demand, served: false, waiting: 1 }, undefined, null)).toMatchObject({ minWarm: 3 });
  expect(demandOf({ ...demand, urls: null, served: false }, undefined, null)).toMatchObject({ minWarm: 0, max: 4, idleMs: 300_000 });
});

test('an instance of Harbor tasks has at most 32 sessions, wherever they are counted', () => {
  const concurrency = (kind: string) => demandOf({ ...demand, kind, urls: null }, undefined, null).concurrency;
  expect([concurrency('harbor'), concurrency('image')]).toEqual([32, 64]);
  const placed = (hosting: object, kind: string) => hostingOf({ hosting }, { artifact: { kind } }).concurrency;
  expect([placed({}, 'harbor'), placed({ concurrency: 4 }, 'harbor'), placed({}, 'image')]).toEqual([32, 4, 64]);
});

test('sessions share no instance where the engine can give each its own, and the engine keeps the warm ones', () => {
  const engine = { isolation: [], egress: [], gpus: false, limits: true, maxMemoryMb: null, builds: false, perSession: true };
  const settings = { min_warm: 2, max: 4, concurrency: 1, idle_s: 0, drain_s: 0, start_timeout_s: 1 };
  const demand = {
    id: 'v',
    environment_id: 'e',
    org_id: 'o',
    provider: 'kubernetes',
    kind: 'image',
    urls: null,
    settings,
    served: true,
    tested: false,
    waiting: 0,
  };
  expect(demandOf(demand, undefined, engine)).toMatchObject({ minWarm: 0, max: 4, pool: 2 });
  expect(demandOf({ ...demand, served: false }, undefined, engine)).toMatchObject({ minWarm: 0, pool: 0 });
  expect(demandOf(demand, undefined, { ...engine, perSession: false })).toMatchObject({ minWarm: 2, pool: null });
  expect(demandOf(demand, undefined, null)).toMatchObject({ minWarm: 2, pool: null });
  expect(demandOf({ ...demand, settings: { ...settings, concurrency: 2 } }, undefined, engine)).toMatchObject({ minWarm: 2, pool: null });
});
