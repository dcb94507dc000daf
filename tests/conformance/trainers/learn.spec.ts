import type { ComparedRuns } from '@palestra/protocol';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { freePort } from '@palestra/hosting';
import { beforeAll, describe, expect, test } from 'vitest';
import { addRemote, type SharedPalestra, sharedPalestra } from '../../support/palestra.ts';
import { assertNoSession, drive, pythonOf } from './contract.ts';

/** `examples/learn` learns: the same seeds give the same episodes on any machine, so that nothing here depends on its speed. */
interface Learned {
  run: string;
  means: number[];
  /** Mean reward of each group of each step. */
  groups: number[][];
  uploaded: boolean;
}

const STEPS = 20;
const TASKS = 4;
const SAMPLES = 8;
/** Steps at each end that are compared. */
const ENDS = 4;

const mean = (values: number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
const variance = (values: number[]) => values.reduce((sum, value) => sum + (value - mean(values)) ** 2, 0) / (values.length - 1);

/** The 95 % normal interval of the difference of the means of two samples. */
function differenceOf(first: number[], last: number[]): { low: number; high: number } {
  const margin = 1.96 * Math.sqrt(variance(first) / first.length + variance(last) / last.length);
  return { low: mean(last) - mean(first) - margin, high: mean(last) - mean(first) + margin };
}

describe('examples/learn on palestra/whodunit', () => {
  let palestra: SharedPalestra;
  let learned: Learned;
  let untrained: Learned;

  const learn = (run: string, ...more: string[]) =>
    drive<Learned>(palestra, {
      python: 'v167',
      program: '../../../examples/learn/learn.py',
      args: ['--run', run, '--steps', String(STEPS), '--tasks', String(TASKS), '--samples', String(SAMPLES), ...more],
      run,
      timeoutMs: 280_000,
    });
  const read = async <T>(route: string): Promise<T> => {
    const answer = await fetch(`${palestra.url}${route}`, { headers: { 'x-api-key': palestra.apiKey } });
    expect(answer.status, await answer.clone().text()).toBe(200);
    return (await answer.json()) as T;
  };
  const idOf = async (name: string) => (await read<{ id: string }>(`/v1/runs/${encodeURIComponent(name)}`)).id;

  beforeAll(async () => {
    palestra = await sharedPalestra();
    [learned, untrained] = await Promise.all([learn('learn'), learn('learn-untrained', '--untrained', '--samples', '2')]);
  }, 300_000);

  test('the mean reward rises by at least 0.3, by more than noise', () => {
    const { low } = differenceOf(learned.groups.slice(0, ENDS).flat(), learned.groups.slice(-ENDS).flat());
    expect(low).toBeGreaterThan(0.3);
    const without = differenceOf(untrained.groups.slice(0, ENDS).flat(), untrained.groups.slice(-ENDS).flat());
    expect(without.low).toBeLessThan(0.1);
  });

  test('the run has every step, group and sample, and its curve', async () => {
    expect([learned.uploaded, untrained.uploaded]).toEqual([true, true]);
    const id = await idOf('learn');
    const { series } = await read<{ series: { step: number[]; value: number[]; denominator: number[] }[] }>(
      `/v1/runs/${id}/series?m=reward_mean`,
    );
    expect(series).toHaveLength(1);
    expect(series[0]!.step).toEqual([...Array(STEPS).keys()]);
    expect(series[0]!.denominator).toEqual(Array(STEPS).fill(TASKS * SAMPLES));
    expect(series[0]!.value).toEqual(learned.means.map((value) => expect.closeTo(value, 3)));
    const { groups } = await read<{ groups: { step: number; received: number; expected: number; complete: boolean }[] }>(
      `/v1/runs/${id}/groups?limit=500`,
    );
    expect(groups).toHaveLength(STEPS * TASKS);
    expect(groups).toMatchObject(groups.map(() => ({ received: SAMPLES, expected: SAMPLES, complete: true })));
    await assertNoSession(palestra);
  });

  test('the comparison with the untrained run shows an improvement', async () => {
    const { pairs } = await read<ComparedRuns>('/v1/compare?runs=learn-untrained,learn');
    const reward = pairs[0]!.metrics.find(({ metric }) => metric === 'reward_mean')!;
    expect(reward).toMatchObject({ method: 'paired', power: { resolved: true } });
    expect(reward.low).toBeGreaterThan(0);
    expect(reward.difference).toBeGreaterThan(0.3);
  });
});

test('examples/learn on chain_sum of reasoning-gym: the mean reward rises by at least 0.3, by more than noise', async () => {
  const palestra = await sharedPalestra();
  const port = await freePort();
  const env = { ...process.env, PYTHONPATH: path.resolve(import.meta.dirname, '../../../integrations/python/src') };
  const args = ['-m', 'palestra.serve', 'reasoning-gym:chain_sum', '--workers', '1', '--port', String(port)];
  const served = spawn(pythonOf('serve'), args, { env, stdio: ['ignore', 'pipe', 'inherit'] });
  try {
    // It prints one line when it is ready.
    await once(createInterface(served.stdout), 'line');
    const environment = await addRemote(palestra, 'chain-sum', `http://127.0.0.1:${port}`);
    const { groups, uploaded } = await drive<Learned>(palestra, {
      python: 'v167',
      program: '../../../examples/learn/learn.py',
      args: ['--environment', environment, '--run', 'learn-chain-sum', '--steps', String(STEPS)],
      run: 'learn-chain-sum',
    });
    expect(uploaded).toBe(true);
    const { low } = differenceOf(groups.slice(0, ENDS).flat(), groups.slice(-ENDS).flat());
    expect(low).toBeGreaterThan(0.3);
    await assertNoSession(palestra);
  } finally {
    served.kill();
  }
});
