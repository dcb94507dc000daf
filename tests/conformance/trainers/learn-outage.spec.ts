import { randomBytes } from 'node:crypto';
import type { RolloutRow } from '@palestra/protocol';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { full } from '../../support/full.ts';
import { type MortalPostgres, startMortalPostgres } from '../../support/mortal-postgres.ts';
import { type Palestra, startPalestra } from '../../support/palestra.ts';
import { drive } from './contract.ts';

/** The service and its PostgreSQL are killed in the middle of `examples/learn`, and come back after this time. */
const OUTAGE_S = Number(process.env['PALESTRA_TEST_OUTAGE_S'] ?? (full ? 20 : 5));
const STEPS = 12;

let postgres: MortalPostgres;
let palestra: Palestra;
beforeAll(async () => {
  postgres = await startMortalPostgres();
  palestra = await startPalestra({ env: { DATABASE_URL: postgres.url, PALESTRA_BUNDLED_ENVIRONMENTS: '1' } });
});
afterAll(async () => {
  await palestra?.stop();
  await postgres?.stop();
});

async function read<T>(route: string): Promise<T> {
  const answer = await fetch(`${palestra.url}${route}`, { headers: { 'x-api-key': palestra.apiKey } });
  if (!answer.ok) throw new Error(`${route}: ${answer.status} ${await answer.text()}`);
  return (await answer.json()) as T;
}

/** All rollouts of the run, page by page. */
async function rollouts(run: string): Promise<RolloutRow[]> {
  const rows: RolloutRow[] = [];
  for (let cursor: string | null = null; ;) {
    const page: { rollouts: RolloutRow[]; next: string | null } = await read(
      `/v1/runs/${run}/rollouts?limit=200${cursor === null ? '' : `&cursor=${encodeURIComponent(cursor)}`}`,
    );
    rows.push(...page.rollouts);
    if (page.next === null) return rows;
    cursor = page.next;
  }
}

test(`training goes on after the service was away for ${OUTAGE_S} s, and no failed episode counts as 0`, { timeout: 600_000 }, async () => {
  // Bundled environments are registered after the service answers.
  await expect.poll(() => read('/v1/environments/palestra/whodunit').then(Boolean, () => false)).toBe(true);
  const name = `outage-${randomBytes(4).toString('hex')}`;
  const learning = drive<{ means: number[]; uploaded: boolean }>(palestra, {
    python: 'v167',
    program: '../../../examples/learn/learn.py',
    args: ['--run', name, '--steps', String(STEPS), '--samples', '4'],
    run: name,
    timeoutMs: 500_000,
  });
  // Not before the first steps are stored, so that the outage is in the middle.
  const stored = async () => (await read<{ num_rollouts: number }>(`/v1/runs/${name}`).catch(() => null))?.num_rollouts ?? 0;
  await expect.poll(stored, { timeout: 120_000, interval: 100 }).toBeGreaterThan(40);
  const before = await stored();
  await palestra.kill();
  // A crash of both within a second may forget calls that the client knows (ADR 2).
  await new Promise((resolve) => setTimeout(resolve, 1_500));
  await postgres.crash(OUTAGE_S * 1_000);
  await palestra.restart();

  const { means, uploaded } = await learning;
  expect(means).toHaveLength(STEPS);
  expect(uploaded).toBe(true);
  // What is stored last is derived a moment later.
  await expect.poll(async () => (await rollouts(name)).filter(({ stop }) => stop === null).length, { timeout: 60_000 }).toBe(0);
  const rows = await rollouts(name);
  expect(rows.length).toBeGreaterThan(before);
  // Of those that were open while the service was away, as many as did not survive it. None of them counts.
  const failed = rows.filter(({ stop }) => stop === 'infra_error');
  expect(failed.filter(({ reward }) => reward !== null)).toEqual([]);
  const unexplained = rows.filter(({ stop, reward }) => stop !== 'infra_error' && reward === null);
  expect(unexplained.map(({ id, step, stop, failure_class: kind }) => ({ id, step, stop, kind }))).toEqual([]);
  // Every step has the mean of the episodes that were played to their end.
  const curve = async () => {
    const { series } = await read<{ series: { step: number[]; value: (number | null)[] }[] }>(`/v1/runs/${name}/series?m=reward_mean`);
    return { step: series[0]?.step, value: series[0]?.value };
  };
  await expect.poll(curve).toEqual({ step: [...Array(STEPS).keys()], value: means.map((value) => expect.closeTo(value, 3)) });
  console.info(`${OUTAGE_S} s away: ${rows.length} episodes, ${failed.length} of them failed`, means.join(' '));
});
