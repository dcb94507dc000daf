import type { Denominator } from '@palestra/protocol';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { columnsOf, metric, passAtK, rewardMean } from '../../../libs/metrics/src/index.ts';
import { settled } from '../../support/derived-rows.ts';
import { sharedServer, type TestServer } from '../../support/server.ts';
import { asAnswered, columnsFrom, eventsOf, figuresOf, seeded, type Seeded, upload } from './run-reads.world.ts';

/** An asynchronous trainer that uploads no step: rollouts arrive one after the other, in any order of tasks. */
const ASYNC = 'steps unknown';
const BY_HAND = 'without steps';
const MIXED = 'some steps';
/** 120 rollouts in six hours: about nine in each window. */
const WIDTH = 1_800_000;
const began = Date.UTC(2026, 0, 5, 10, 20);
const rollouts = seeded(ASYNC, { steps: 8, tasks: 5, n: 3 }).map((one, at) => ({ ...one, task: (at * at) % 7, sample: at, failed: false }));
/** One every three minutes, so that no gap shows where a step ends. */
const arrivedAt = (at: number) => began + at * 180_000;

let server: TestServer;
const get = async (run: string, rest: string) => {
  const { status, body } = await server.request('GET', `/v1/runs/${encodeURIComponent(run)}/${rest}`);
  expect(status, JSON.stringify(body)).toBe(200);
  return body;
};

/** Like slime's uploads: no step, no group. */
function withoutStep(run: string, one: Seeded, framework: string): object[] {
  const [start, ...messages] = eventsOf(run, one) as Record<string, unknown>[];
  const { step: _step, metadata: _metadata, ...rest } = start!;
  return [{ ...rest, run_info: { framework }, metadata: { num_turns: 2 } }, ...messages];
}

async function post(run: string, all: readonly Seeded[], framework: string) {
  const { status } = await server.request('POST', '/v1/rollouts', {
    body: { events: all.flatMap((one) => withoutStep(run, one, framework)) },
  });
  if (status !== 200) throw new Error(`the upload was answered with ${status}`);
}

beforeAll(async () => {
  server = await sharedServer();
  await post(ASYNC, rollouts, 'slime');
  await post(BY_HAND, seeded(BY_HAND, { steps: 1 }), 'none');
  await upload(server, MIXED, seeded(MIXED, { steps: 2 }));
  await post(MIXED, seeded(`${MIXED} too`, { steps: 1 }), 'none');
  await server.database.pool.query(
    `UPDATE rollout_heads h SET received_at = to_timestamp(n.at / 1000), dirty = true, revision = revision + 1
     FROM unnest($1::uuid[], $2::float8[]) AS n(id, at) WHERE h.id = n.id`,
    [rollouts.map(({ id }) => id), rollouts.map((_one, at) => arrivedAt(at))],
  );
  // The unknown step may hold a whole run, so it is rebuilt in a twentieth of the time.
  await settled(server.database.pool, server.orgName);
});
afterAll(() => server?.close());

/** Rollouts by the start of their window of `width`. */
function byWindow(width: number): Map<number, Seeded[]> {
  const found = new Map<number, Seeded[]>();
  rollouts.forEach((one, at) => {
    const from = Math.floor(arrivedAt(at) / width) * width;
    found.set(from, [...(found.get(from) ?? []), one]);
  });
  return found;
}

describe('a run without known steps', () => {
  it('has curves over arrival windows, and labels the axis so', async () => {
    const { inference } = (await get(ASYNC, 'config')) as { inference: { confidence: number } };
    expect(inference.confidence).toBeLessThan(0.8);
    const answer = await get(ASYNC, 'series?m=reward_mean&x=step');
    expect(answer).toMatchObject({
      x: 'step',
      axis: 'window',
      axis_label: 'arrival window of 30 min',
      window_ms: WIDTH,
      unknown_step: 120,
    });
    const [series] = answer.series;
    const expected = [...byWindow(WIDTH)];
    expect(expected).toHaveLength(13);
    expect(series).toMatchObject({ axis: 'window', x: expected.map(([from]) => from), step: expected.map((_window, at) => at) });
    expect(series.value).toEqual(asAnswered(expected.map(([, own]) => rewardMean(columnsFrom(own)).value)));
    expect(series.denominator).toEqual(expected.map(([, own]) => own.filter(({ reward }) => reward !== null).length));
    expect(new Set(series.provenance)).toEqual(new Set(['unknown']));
  });

  it('has curves in every lens and denominator, and stores them', async () => {
    for (let round = 0; round < 2; round += 1) {
      const { series } = await get(ASYNC, `series?m=${encodeURIComponent('critic/score/mean')}&m=num_turns/mean`);
      const expected = [...byWindow(WIDTH).values()];
      const verl = metric('verl', 'critic/score/mean')!;
      const withTurns = (own: Seeded[]) => columnsOf(own.map((one) => ({ ...figuresOf(one), assistantTurns: 2, toolTurns: 1 })));
      expect(series[0].value).toEqual(asAnswered(expected.map((own) => (verl.compute(withTurns(own)) as { value: number }).value)));
      expect(series[1].value).toEqual(expected.map(() => 4));
      for (const denominator of ['all', 'scored'] as Denominator[]) {
        const [mean] = (await get(ASYNC, `series?m=reward_mean&den=${denominator}`)).series;
        expect(mean.value).toEqual(asAnswered(expected.map((own) => rewardMean(columnsFrom(own), { denominator }).value)));
      }
    }
    const { rows } = await server.database.pool.query(
      `SELECT s.windows->'windows'->0->'figures'->'lenses' AS lenses FROM step_rollups s JOIN runs r ON r.seq = s.run_seq WHERE r.name = $1 AND env_id = 0`,
      [ASYNC],
    );
    expect(Object.keys(rows[0].lenses).toSorted()).toEqual(['canonical/all', 'canonical/scored', 'verl/effective']);
  });

  it('has curves over time and rollouts, and by environment', async () => {
    const from = [...byWindow(WIDTH).keys()];
    expect((await get(ASYNC, 'series?x=time')).series[0]).toMatchObject({ axis: 'time', x: from });
    const counted = await get(ASYNC, 'series?x=count');
    expect(counted).toMatchObject({ axis: 'count', axis_label: 'rollouts, by arrival window of 30 min' });
    expect(counted.series[0].x.at(-1)).toBe(120);
    const { series } = await get(ASYNC, 'series?by=env');
    expect(series).toMatchObject([{ env: 'acme/math', axis: 'window', x: from }]);
    // A range of steps excludes them.
    expect((await get(ASYNC, 'series?steps=0..5')).series).toEqual([]);
  });

  it.each(['reward', 'turns'])('has a heatmap of %s by window that counts every rollout', async (y) => {
    const heatmap = await get(ASYNC, `heatmap?y=${y}`);
    const expected = [...byWindow(WIDTH)];
    expect(heatmap).toMatchObject({
      axis: 'window',
      window_ms: WIDTH,
      from: expected.map(([from]) => from),
      to: expected.map(([from]) => from + WIDTH),
    });
    const counts = heatmap.counts.map((column: number[]) => column.reduce((a, b) => a + b, 0));
    expect(counts).toEqual(expected.map(([, own]) => (y === 'turns' ? own : own.filter(({ reward }) => reward !== null)).length));
  });

  it('counts by them how many rollouts came, and why they stopped', async () => {
    const counted = await get(ASYNC, 'steps');
    const expected = [...byWindow(WIDTH)];
    expect(counted).toMatchObject({
      from: expected.map(([from]) => from),
      to: expected.map(([from]) => from + WIDTH),
      rollouts: expected.map(([, own]) => own.length),
    });
    const stopped = counted.stops.flatMap(({ counts }: { counts: number[] }) => counts);
    expect(stopped.reduce((a: number, b: number) => a + b, 0)).toBe(rollouts.length);
  });

  it('has a summary of all rollouts with the range of its windows', async () => {
    const summary = await get(ASYNC, 'summary');
    expect(summary).toMatchObject({
      rollouts: 120,
      axis: 'window',
      steps: { count: 0 },
      windows: { from: Math.floor(began / WIDTH) * WIDTH, count: 13 },
    });
    expect(summary.kpis.find(({ key }: { key: string }) => key === 'reward_mean').value).toBeCloseTo(
      rewardMean(columnsFrom(rollouts)).value!,
      12,
    );
  });

  it('adds later rollouts to their windows', async () => {
    const { series } = await get(BY_HAND, 'series?m=reward_mean&m=pass@1');
    expect(series[0]).toMatchObject({ axis: 'window', denominator: [expect.any(Number)] });
    const own = seeded(BY_HAND, { steps: 1 });
    const columns = columnsOf(own.map((one) => ({ ...figuresOf(one), group: `task ${one.task}` })));
    expect(series[1].value).toEqual(asAnswered([passAtK(columns, 1, { success: { threshold: 1, strict: false } }).value]));
    const more = seeded('more', { steps: 1, tasks: 1 });
    await post(BY_HAND, more, 'none');
    await expect.poll(async () => (await get(BY_HAND, 'summary')).rollouts, { timeout: 30_000 }).toBe(16);
    await expect.poll(async () => (await get(BY_HAND, 'series?x=count')).series[0].x.at(-1), { timeout: 30_000 }).toBe(16);
  }, 90_000);
});

describe('a run of which some steps are known', () => {
  it('is drawn over steps, and over windows what has none', async () => {
    const steps = await get(MIXED, 'series');
    expect(steps).toMatchObject({ axis: 'step', axis_label: 'step', window_ms: null, unknown_step: 12 });
    expect(steps.series[0]).toMatchObject({ phase: 'train', axis: 'step', step: [0, 1], x: [0, 1] });
    const windows = await get(MIXED, 'series?x=window&m=scored');
    expect(windows).toMatchObject({ axis: 'window' });
    expect(windows.series[0].of.reduce((a: number, b: number) => a + b, 0)).toBe(12);
    expect(await get(MIXED, 'heatmap?x=window')).toMatchObject({ axis: 'window' });
    expect(await get(MIXED, 'heatmap')).toMatchObject({ axis: 'step', from: [0, 1], to: [0, 1] });
    expect(await get(MIXED, 'summary')).toMatchObject({ axis: 'step', windows: null });
  });
});
