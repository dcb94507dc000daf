import type { Denominator } from '@palestra/protocol';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { columnsOf, passAtKInterval, rewardPercentile, rewardStd, type RolloutFigures, select } from '../../../libs/metrics/src/index.ts';
import { sharedServer, type TestServer } from '../../support/server.ts';
import { asAnswered, eventsOf, figuresOf, seeded, type Seeded, upload } from './run-reads.world.ts';

interface Kpi {
  key: string;
  value: number | null;
  denominator: number;
  of: number;
  low: number | null;
  high: number | null;
  note: string | null;
}

const success = { threshold: 1, strict: false };
const FEW = 'few rewards';
const MANY = 'many rewards';
const few = seeded(FEW, { steps: 5, tasks: 5 });
/** Rewards between 0 and 1 that all differ. */
const many = seeded(MANY, { steps: 3, tasks: 15 }).map((one, at) => ({
  ...one,
  reward: one.reward === null ? null : ((at * 37) % 180) / 181,
}));
let server: TestServer;
const kpisOf = async (run: string, query: string): Promise<Map<string, Kpi>> => {
  const { status, body } = await server.request('GET', `/v1/runs/${encodeURIComponent(run)}/summary?${query}`);
  expect(status, JSON.stringify(body)).toBe(200);
  return new Map(body.kpis.map((kpi: Kpi) => [kpi.key, kpi]));
};
const within = (all: readonly Seeded[], from: number, to: number): RolloutFigures[] =>
  all.filter(({ step }) => step >= from && step <= to).map(figuresOf);

beforeAll(async () => {
  server = await sharedServer();
  await upload(server, FEW, few);
  await upload(server, MANY, many);
  // Rollouts that `effective` leaves out: the policy did not cause their stop.
  const cancelled = few.filter(({ sample }) => sample === 3).slice(0, 4);
  const events = cancelled.map((one) => {
    const [start] = eventsOf(MANY, { ...one, id: one.id.replace(/^......../, 'cafecafe'), reward: 0.9 }) as [Record<string, unknown>];
    return { ...start, metadata: { ...(start.metadata as object), stop_reason: 'cancelled', reward_total: 0.9 } };
  });
  const { status } = await server.request('POST', '/v1/rollouts', { body: { events } });
  if (status !== 200) throw new Error(`the upload was answered with ${status}`);
  for (const { step, task, sample } of cancelled)
    gone.push({ ...figuresOf({ step, task, sample, reward: 0.9, failed: false }), stop: 'cancelled' });
});
afterAll(() => server.close());
const gone: RolloutFigures[] = [];
const ranges = [
  [0, 2],
  [1, 2],
  [2, 2],
] as const;

describe('summary of several steps', () => {
  it.each(['scored', 'all', 'effective'] as Denominator[])(
    'has percentiles and deviation of all rewards together, %s',
    async (denominator) => {
      for (const [run, all] of [
        [FEW, few],
        [MANY, many],
      ] as const)
        for (const [from, to] of ranges) {
          const columns = columnsOf([
            ...within(all, from, to),
            ...(run === MANY ? gone.filter((one) => Number(one.group![1]) >= from && Number(one.group![1]) <= to) : []),
          ]);
          const kpis = await kpisOf(run, `steps=${from}..${to}&den=${denominator}`);
          for (const p of [10, 25, 50, 75, 90])
            expect(kpis.get(`reward_p${p}`)!.value).toBeCloseTo(rewardPercentile(columns, p / 100, { denominator }).value!, 12);
          expect(kpis.get('reward_p50')).toMatchObject({
            denominator: select(columns, denominator).places.length,
            of: columns.reward.length,
          });
          expect(kpis.get('reward_std')!.value).toBeCloseTo(rewardStd(columns, { denominator }).value!, 12);
          expect(kpis.get('reward_p50')!.note ?? '').toMatch(denominator === 'all' ? /^null as 0/ : /^$/);
        }
    },
  );

  it('reads percentiles from the rollouts where a rollup does not count its rewards', async () => {
    const ofOrg = `(SELECT u.seq FROM runs u JOIN organisations o ON o.id = u.org_id WHERE o.name = $1)`;
    const { pool } = server.database;
    const updated = await pool.query(`UPDATE step_rollups SET figures = figures - 'rewards' WHERE run_seq IN ${ofOrg}`, [server.orgName]);
    expect(updated.rowCount).toBeGreaterThan(0);
    await pool.query(`UPDATE runs SET version = version + 1 WHERE seq IN ${ofOrg}`, [server.orgName]);
    const kpis = await kpisOf(FEW, 'steps=1..3&env=acme/math');
    for (const p of [10, 25, 50, 75, 90])
      expect(kpis.get(`reward_p${p}`)!.value).toBeCloseTo(rewardPercentile(columnsOf(within(few, 1, 3)), p / 100).value!, 12);
  });

  it('has the interval of pass@k by bootstrap over the groups', async () => {
    for (const [from, to] of [
      [0, 4],
      [1, 3],
      [4, 4],
    ] as const) {
      const kpis = await kpisOf(FEW, `steps=${from}..${to}`);
      for (const k of [1, 2, 4]) {
        const interval = passAtKInterval(columnsOf(within(few, from, to)), k, { success });
        expect(kpis.get(`pass@${k}`)).toMatchObject(asAnswered(interval ?? { low: null, high: null }));
        if (interval && interval.low < interval.high) expect(kpis.get(`pass@${k}`)!.note).toBe('interval: group bootstrap, 1000 draws');
      }
    }
  });
});
