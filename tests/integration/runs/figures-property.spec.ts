import { createHash, randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { sharedServer, type TestServer } from '../../support/server.ts';

/** Compares what pages show of runs with a slow recomputation from the rollouts as they were sent. */
interface Sent {
  id: string;
  step: number;
  task: number;
  sample: number;
  /** Rewards of its steps; null: the step has none. */
  rewards: (number | null)[];
  stop: string;
}

const INTERRUPTED = ['env_error', 'infra_error', 'timeout', 'aborted', 'cancelled'];
const STOPS = ['finished', 'finished', 'finished', 'max_turns', 'parse_error', ...INTERRUPTED];
const REWARDS = [null, 0, 0.05, 0.45, 0.9, 1];
const STEPS = 14;

/** Numbers from 0 on, the same for the same name. */
const chance = (name: string, below: number): number => createHash('sha256').update(name).digest().readUInt32BE() % below;

/** Tasks rotate: each step has three of nine. Most groups have 4 rollouts, some 1, 3 or 7. */
function sentOf(run: string): Sent[] {
  return Array.from({ length: STEPS * 3 }, (_, group) => ({ step: Math.floor(group / 3), task: (group * 5) % 9 })).flatMap(
    ({ step, task }, group) =>
      Array.from({ length: [4, 4, 4, 4, 1, 3, 7][chance(`${run} size ${group}`, 7)]! }, (_, sample): Sent => {
        const name = `${run} ${group} ${sample}`;
        const rewards = Array.from({ length: 1 + chance(`${name} steps`, 3) }, (__, at) => REWARDS[chance(`${name} ${at}`, 6)]!);
        return { id: randomUUID(), step, task, sample, rewards, stop: STOPS[chance(`${name} stop`, STOPS.length)]! };
      }),
  );
}

function eventsOf(run: string, { id, step, task, sample, rewards, stop }: Sent): object[] {
  const metadata = { group_id: `g${step}-${task}`, sample_idx: sample, stop_reason: stop };
  const message = (index: number, more: object) => ({
    eventType: 'message',
    eventId: randomUUID(),
    rolloutEventId: id,
    timestamp: 1,
    index,
    content: 'x',
    isFinished: false,
    metadata: {},
    ...more,
  });
  return [
    {
      eventType: 'rollout',
      eventId: id,
      timestamp: 1,
      runName: run,
      step,
      environment: 'acme/math',
      split: 'train',
      rolloutName: `r${task}`,
      metadata,
      rollout_info: { task_index: task },
    },
    ...rewards.flatMap((reward, at) => [
      message(2 * at, { type: 'tool_call', name: 'act', callId: `c${at}`, content: '{}' }),
      message(2 * at + 1, { type: 'tool_result', callId: `c${at}`, ...(reward === null ? {} : { reward }) }),
    ]),
  ];
}

const rewardOf = ({ rewards, stop }: Sent): number | null => {
  const known = rewards.filter((reward) => reward !== null);
  return INTERRUPTED.includes(stop) || known.length === 0 ? null : known.reduce((sum, reward) => sum + reward, 0);
};
const mean = (values: readonly number[]): number | null =>
  values.length === 0 ? null : values.reduce((sum, value) => sum + value, 0) / values.length;
const scoredOf = (sent: readonly Sent[]): number[] => sent.flatMap((one) => rewardOf(one) ?? []);

function groupsOf(sent: readonly Sent[]): Sent[][] {
  const groups = new Map<string, Sent[]>();
  for (const one of sent) groups.set(`${one.step} ${one.task}`, [...(groups.get(`${one.step} ${one.task}`) ?? []), one]);
  return [...groups.values()];
}

/** The probability that k rewards drawn from the group contain a success, by counting all draws. */
function passOf(rewards: readonly number[], isSolved: (reward: number) => boolean, k: number): number | null {
  if (rewards.length < k) return null;
  let [draws, hits] = [0, 0];
  const draw = (from: number, left: number, hit: boolean): void => {
    if (left === 0) {
      draws += 1;
      hits += Number(hit);
      return;
    }
    for (let at = from; at <= rewards.length - left; at += 1) draw(at + 1, left - 1, hit || isSolved(rewards[at]!));
  };
  draw(0, k, false);
  return hits / draws;
}

function commonSize(sent: readonly Sent[]): number {
  const sizes = new Map<number, number>();
  for (const { length } of groupsOf(sent)) sizes.set(length, (sizes.get(length) ?? 0) + 1);
  return [...sizes].toSorted(([a, m], [b, n]) => n - m || b - a)[0]![0];
}

/** Quantiles .975 of Student’s t with 1 to 9 degrees of freedom, of a printed table. */
const T_975 = [12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.306, 2.2622];

let server: TestServer;
beforeAll(async () => {
  server = await sharedServer();
});
afterAll(() => server.close());

const close = (value: number | null) => (value === null ? null : expect.closeTo(value, 9));

describe.each(['figures one', 'figures two'])('%s', (run) => {
  const sent = sentOf(run);
  const all = scoredOf(sent);
  const isSolved = (reward: number) => (all.every((one) => one >= 0 && one <= 1) ? reward >= 1 : reward > 0);
  const get = async (address: string): Promise<any> => {
    const { status, body } = await server.request('GET', address);
    if (status !== 200) throw new Error(`GET ${address}: ${status} ${JSON.stringify(body)}`);
    return body;
  };
  const path = (rest: string) => `/v1/runs/${encodeURIComponent(run)}/${rest}`;
  beforeAll(async () => {
    const { status } = await server.request('POST', '/v1/rollouts', { body: { events: sent.flatMap((one) => eventsOf(run, one)) } });
    if (status !== 200) throw new Error(`the upload was answered with ${status}`);
  });

  it('overview', async () => {
    const size = commonSize(sent);
    const { kpis, rollouts, scored, group_size } = await get(path('summary'));
    expect({ rollouts, scored, n: group_size.n }).toEqual({ rollouts: sent.length, scored: all.length, n: size });
    const kpi = (key: string) => kpis.find((one: { key: string }) => one.key === key);
    expect(kpi('reward_mean')).toMatchObject({ value: close(mean(all)), denominator: all.length, of: sent.length });
    expect(kpi('success')).toMatchObject({ value: close(all.filter(isSolved).length / all.length) });
    const means = groupsOf(sent).flatMap((group) => mean(scoredOf(group)) ?? []);
    expect(kpi('avg@n')).toMatchObject({ value: close(mean(means)), denominator: means.length });
    for (const k of new Set([1, 2, 4, size])) {
      const passes = groupsOf(sent).flatMap((group) => passOf(scoredOf(group), isSolved, k) ?? []);
      expect(kpi(`pass@${k}`)).toMatchObject({ value: close(mean(passes)), denominator: passes.length, of: groupsOf(sent).length });
    }
  });

  it('curves', async () => {
    const { series } = await get(path('series?m=reward_mean&m=pass@2'));
    for (const { key, step, value, of } of series)
      for (const [at, one] of step.entries()) {
        const own = sent.filter((rollout) => rollout.step === one);
        const passes = groupsOf(own).flatMap((group) => passOf(scoredOf(group), isSolved, 2) ?? []);
        expect(value[at], `${key} at step ${one}`).toEqual(close(mean(key === 'reward_mean' ? scoredOf(own) : passes)));
        expect(of[at]).toBe(key === 'reward_mean' ? own.length : groupsOf(own).length);
      }
  });

  it('groups, with rewards and advantages of their rollouts', async () => {
    const { groups } = await get(path('groups?limit=200'));
    expect(groups).toHaveLength(groupsOf(sent).length);
    for (const group of groups) {
      const own = sent.filter(({ step, task }) => step === group.step && task === group.task.index);
      const rewards = scoredOf(own);
      expect(group).toMatchObject({ received: own.length, scored: rewards.length, mean: close(mean(rewards)) });
    }
    for (const { key, step, task } of groups.slice(0, 8)) {
      const own = sent.filter((one) => one.step === step && one.task === task.index);
      const centre = mean(scoredOf(own));
      for (const row of (await get(path(`groups/${key}?step=${step}`))).rollouts) {
        const one = own.find(({ id }) => id === row.id)!;
        const reward = rewardOf(one);
        expect(row).toMatchObject({ reward: close(reward), advantage_centred: reward === null ? null : close(reward - centre!) });
        const known = one.rewards.filter((part) => part !== null);
        const partial = INTERRUPTED.includes(one.stop) && known.length > 0 ? known.reduce((sum, part) => sum + part, 0) : null;
        expect(row.partial_reward).toEqual(close(partial));
        if (reward === null) expect(row.advantage).toBeNull();
      }
    }
  });

  it('tasks, which rotate', async () => {
    const { tasks } = await get(path('tasks?limit=200'));
    expect(tasks).toHaveLength(new Set(sent.map(({ task }) => task)).size);
    for (const { task, ...strip } of tasks) {
      const own = sent.filter((one) => one.task === task.index);
      const steps = [...new Set(own.map(({ step }) => step))].toSorted((a, b) => a - b);
      const visits = steps.map((step) => own.filter((one) => one.step === step));
      const rewards = visits.map(scoredOf);
      expect(strip).toMatchObject({
        step: steps,
        received: visits.map(({ length }) => length),
        scored: rewards.map(({ length }) => length),
        solve: rewards.map((of) => close(of.length === 0 ? null : of.filter(isSolved).length / of.length)),
      });
      const { reward } = await get(path(`tasks/${task.id}`));
      expect(reward.mean).toEqual(rewards.map((of) => close(mean(of))));
      for (const [at, of] of rewards.entries()) {
        const centre = mean(of);
        const deviation = Math.sqrt(of.reduce((sum, one) => sum + (one - centre!) ** 2, 0) / (of.length - 1));
        const half = of.length < 2 ? null : (T_975[of.length - 2]! * deviation) / Math.sqrt(of.length);
        for (const [side, sign] of [
          ['low', -1],
          ['high', 1],
        ] as const)
          if (half === null) expect(reward[side][at]).toBeNull();
          else expect(reward[side][at]).toBeCloseTo(centre! + sign * half, 3);
      }
      const known = rewards.filter(({ length }) => length > 0).map((of) => of.map((reward) => Number(isSolved(reward))));
      const flat = known.flat();
      if (flat.length === 0) {
        expect(strip.solve_rate).toBeNull();
        continue;
      }
      const rate = mean(flat)!;
      // The variance of the rate between visits, over that of independent rollouts.
      const residuals = known.map((visit) => visit.reduce((sum, solved) => sum + solved - rate, 0) / flat.length);
      const between = residuals.reduce((sum, residual) => sum + residual ** 2, 0) * (known.length / Math.max(1, known.length - 1));
      const within = mean(flat.map((solved) => (solved - rate) ** 2))! / flat.length;
      const effective = flat.length / (within === 0 ? 1 : Math.max(1, between / within));
      expect(strip.solve_rate).toMatchObject({ rate: close(rate), successes: flat.filter(Boolean).length, scored: flat.length });
      expect(strip.solve_rate.effective).toBeCloseTo(effective, 6);
      // Wilson's interval has the rates p for which (rate − p)² = z²·p(1−p)/n.
      for (const p of [strip.solve_rate.low, strip.solve_rate.high])
        expect((rate - p) ** 2).toBeCloseTo((1.959963984540054 ** 2 * p * (1 - p)) / effective, 6);
    }
  });

  it('the list of runs', async () => {
    const { runs } = await get(`/v1/runs?name=${encodeURIComponent(run)}`);
    const last = sent.filter(({ step }) => step >= STEPS - 10);
    const size = commonSize(last);
    const passes = groupsOf(last).flatMap((group) => passOf(scoredOf(group), isSolved, size) ?? []);
    expect(runs[0]).toMatchObject({ num_rollouts: sent.length, num_scored: all.length, avg_rollout_reward: close(mean(all)) });
    expect(runs[0].recent).toMatchObject({
      steps: 10,
      rollouts: last.length,
      scored: scoredOf(last).length,
      reward: close(mean(scoredOf(last))),
      pass_k: size,
      pass: close(mean(passes)),
      pass_groups: passes.length,
      groups: groupsOf(last).length,
      broken_off: close(last.filter(({ stop }) => INTERRUPTED.includes(stop)).length / last.length),
    });
    const { kpis } = await get(path(`summary?steps=${STEPS - 10}..${STEPS - 1}`));
    expect(runs[0].recent.reward).toBeCloseTo(kpis.find(({ key }: { key: string }) => key === 'reward_mean').value, 9);
  });
});
