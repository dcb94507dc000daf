import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import type { FailureList, RolloutRow } from '@palestra/protocol';
import { expect } from 'vitest';
import { addRemote, type SharedPalestra } from '../../support/palestra.ts';
import { type Finished, run } from '../support/python.ts';

/** What every trainer's adapter has to fulfil; its program beside the spec plays through the real interface of its trainer. */

/** `PALESTRA_PYTHON_<NAME>` of `.ci/run`. Throws when it is missing: a proof that could not run is a failure, never a skip. */
export function pythonOf(name: string): string {
  const variable = `PALESTRA_PYTHON_${name.toUpperCase().replaceAll(/[-.]/g, '_')}`;
  const file = process.env[variable];
  if (!file || !existsSync(file)) throw new Error(`${variable} must name a Python interpreter; it is ${file ?? 'not set'}`);
  return file;
}

const packageSource = path.resolve(import.meta.dirname, '../../../integrations/python/src');

const spools = mkdtempSync(path.join(tmpdir(), 'palestra-spool-'));
process.once('exit', () => rmSync(spools, { recursive: true, force: true }));
let started = 0;

export interface Play {
  /** Name of the environment of `pythonOf`. */
  python: string;
  /** File in this folder. */
  program: string;
  args?: string[];
  /** Name of the run, which adapters read from PALESTRA_RUN. */
  run: string;
  env?: Record<string, string>;
  timeoutMs?: number;
}

/** Runs a program with the service's variables and the package in its path. Does not look at its exit code. */
export const start = (palestra: Pick<SharedPalestra, 'url' | 'apiKey'>, play: Play): Promise<Finished> =>
  run(pythonOf(play.python), [path.join(import.meta.dirname, play.program), ...(play.args ?? [])], {
    cwd: import.meta.dirname,
    env: {
      PYTHONPATH: packageSource,
      PALESTRA_URL: palestra.url,
      PALESTRA_API_KEY: palestra.apiKey,
      OPENREWARD_URL: palestra.url,
      OPENREWARD_API_KEY: palestra.apiKey,
      PALESTRA_SPOOL_DIR: path.join(spools, String((started += 1))),
      PALESTRA_RUN: play.run,
      ...play.env,
    },
    timeoutMs: play.timeoutMs ?? 200_000,
  });

/** Values in one order, for rollouts whose order says nothing. */
export const ordered = <T>(values: T[]): T[] => values.toSorted((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));

/** The rollouts of each group. */
export function groupsOf(rows: RolloutRow[]): RolloutRow[][] {
  const groups = new Map<string | null, RolloutRow[]>();
  for (const row of rows) groups.set(row.group, [...(groups.get(row.group) ?? []), row]);
  return [...groups.values()];
}

/** The JSON document that the program prints as its last line. */
export async function drive<T>(palestra: Pick<SharedPalestra, 'url' | 'apiKey'>, play: Play): Promise<T> {
  const finished = await start(palestra, play);
  if (finished.code !== 0) throw new Error(`${play.program} ended with ${finished.code}:\n${finished.output.slice(-6_000)}`);
  return JSON.parse(finished.stdout.trimEnd().split('\n').at(-1) ?? 'null') as T;
}

async function read<T>(palestra: Pick<SharedPalestra, 'url' | 'apiKey'>, route: string): Promise<T> {
  const answer = await fetch(`${palestra.url}${route}`, { headers: { 'x-api-key': palestra.apiKey } });
  expect(answer.status, await answer.clone().text()).toBe(200);
  return (await answer.json()) as T;
}

const place = ({ step, task_index, sample }: RolloutRow) => [step ?? 0, task_index ?? 0, sample ?? 0] as const;

async function runNamed(palestra: Pick<SharedPalestra, 'url' | 'apiKey'>, name: string): Promise<{ id: string } | undefined> {
  const { runs } = await read<{ runs: { id: string; name: string }[] }>(palestra, `/v1/runs?search=${encodeURIComponent(name)}`);
  return runs.find((one) => one.name === name);
}

/** Why rollouts of a run failed, as its page shows it. */
export async function failuresOf(palestra: Pick<SharedPalestra, 'url' | 'apiKey'>, name: string): Promise<FailureList['failures']> {
  const run = await runNamed(palestra, name);
  return (await read<FailureList>(palestra, `/v1/runs/${run?.id}/failures`)).failures;
}

/** The rollouts of a run by step, task and sample, when there are `count` of them and each has ended. */
export async function rolloutsOf(palestra: SharedPalestra, name: string, count: number): Promise<RolloutRow[]> {
  let rows: RolloutRow[] = [];
  await expect
    .poll(async () => {
      const found = await runNamed(palestra, name);
      if (found === undefined) return { ended: 0, total: 0 };
      const list = await read<{ rollouts: RolloutRow[] }>(palestra, `/v1/runs/${found.id}/rollouts?sort=created_at&order=asc&limit=200`);
      rows = list.rollouts.toSorted(
        (a, b) =>
          place(a)
            .map((value, at) => value - place(b)[at]!)
            .find((order) => order !== 0) ?? 0,
      );
      return { ended: rows.filter(({ stop }) => stop !== null).length, total: rows.length };
    })
    .toEqual({ ended: count, total: count });
  return rows;
}

/** No session of the organisation is open. */
export async function assertNoSession(palestra: SharedPalestra): Promise<void> {
  const live = async () => (await read<{ sessions: { sid: string }[] }>(palestra, '/v1/sessions?state=live')).sessions;
  await expect.poll(live).toEqual([]);
}

export interface Expected {
  /** Of each rollout, by step, task and sample; `null` for one that failed. */
  rewards: (number | null)[];
  /** `step` and `sample` of each; undefined where the trainer does not know them. */
  steps?: (number | null)[];
  samples?: (number | null)[];
  /** How many groups there are, of equal size. */
  groups?: number;
  /** Replies of the policy, of each or of all. */
  turns?: number;
  failures?: ('environment' | 'infrastructure' | null)[];
}

/** The rollouts of a run are stored as the trainer saw them, each with its session, and no session is left open. Returns them. */
export async function assertRun(palestra: SharedPalestra, name: string, expected: Expected): Promise<RolloutRow[]> {
  const rows = await rolloutsOf(palestra, name, expected.rewards.length);
  expect(rows.map(({ reward }) => reward)).toEqual(expected.rewards.map((reward) => (reward === null ? null : expect.closeTo(reward, 5))));
  expect(rows.map(({ failure_class }) => failure_class)).toEqual(expected.failures ?? rows.map(() => null));
  expect(rows.map(({ session }) => session)).toEqual(rows.map(() => expect.any(String)));
  expect(rows.map(({ gaps }) => gaps)).toEqual(rows.map(() => 0));
  if (expected.steps) expect(rows.map(({ step }) => step)).toEqual(expected.steps);
  if (expected.samples) expect(rows.map(({ sample }) => sample)).toEqual(expected.samples);
  if (expected.turns !== undefined) expect(rows.map(({ turns }) => turns)).toEqual(rows.map(() => expected.turns));
  if (expected.groups !== undefined) {
    const sizes = new Map<string | null, number>();
    for (const { group } of rows) sizes.set(group, (sizes.get(group) ?? 0) + 1);
    expect(sizes.has(null)).toBe(false);
    expect([...sizes.values()]).toEqual(Array(expected.groups).fill(rows.length / expected.groups));
  }
  await assertNoSession(palestra);
  return rows;
}

/**
 * Hosts `<namespace>/<name>`, whose server dies when its tool `vanish` is called. `look` gives a reward of .25 and continues, `finish` ends
 * with 1. policy.py finishes its task 0, and makes the server vanish in task 1, after which no task can be played.
 */
export async function hostFragile(palestra: SharedPalestra, name = 'fragile'): Promise<{ environment: string; close(): void }> {
  const program = path.join(import.meta.dirname, 'fragile-environment.mjs');
  const child = spawn(process.execPath, [program], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [url] = (await once(createInterface(child.stdout), 'line')) as [string];
  return { environment: await addRemote(palestra, name, url), close: () => void child.kill('SIGKILL') };
}
