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
  /** The call of each step. */
  calls: { tool: string; failed: boolean }[];
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
        const calls = rewards.map((_reward, at) => ({
          tool: ['act', 'look'][chance(`${name} tool ${at}`, 2)]!,
          failed: chance(`${name} fails ${at}`, 5) === 0,
        }));
        return { id: randomUUID(), step, task, sample, rewards, calls, stop: STOPS[chance(`${name} stop`, STOPS.length)]! };
      }),
  );
}

function eventsOf(run: string, { id, step, task, sample, rewards, calls, stop }: Sent): object[] {
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
      message(2 * at, { type: 'tool_call', name: calls[at]!.tool, callId: `c${at}`, content: '{}' }),
      message(2 * at + 1, {
        type: 'tool_result',
        callId: `c${at}`,
        ...(calls[at]!.failed && { content: `ValueError: no room ${at}`, metadata: { is_error: true } }),
        ...(reward === null ? {} : { reward }),
      }),
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

/** Why a rollout failed, by the rules of docs/reference/failures.md; null: nothing did. */
function causeOf({ stop, calls }: Sent): { class: string; tool: string | null; error: string | null; stop: string | null } | null {
  const error = (tool: string, whose: string) => ({ class: whose, tool, error: 'ValueError: no room <n>', stop: null });
  if (INTERRUPTED.includes(stop)) {
    const whose = stop === 'env_error' ? 'environment' : 'infrastructure';
    const last = calls.at(-1)!;
    return last.failed ? error(last.tool, whose) : { class: whose, tool: null, error: null, stop };
  }
  for (const [at, { tool, failed }] of [...calls.entries()].toReversed()) {
    const isRecovered = calls.slice(at + 1).some((later) => later.tool === tool && !later.failed);
    if (failed && !isRecovered) return error(tool, 'environment');
  }
  return stop === 'finished' ? null : { class: 'policy', tool: null, error: null, stop };
}

let server: TestServer;
beforeAll(async () => {
  server = await sharedServer();
});
afterAll(() => server.close());

const uploads = new Map<string, Sent[]>();
function sentIn(run: string): Sent[] {
  const sent = uploads.get(run) ?? sentOf(run);
  uploads.set(run, sent);
  return sent;
}
/** Whether a reward is a success: at 1 if all rewards lie in [0, 1], else above 0. */
function solvedRule(sent: readonly Sent[]): (reward: number) => boolean {
  const inUnit = scoredOf(sent).every((one) => one >= 0 && one <= 1);
  return (reward) => (inUnit ? reward >= 1 : reward > 0);
}
const close = (value: number | null) => (value === null ? null : expect.closeTo(value, 9));

describe.each(['figures one', 'figures two'])('%s', (run) => {
  const sent = sentIn(run);
  const all = scoredOf(sent);
  const isSolved = solvedRule(sent);
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
    expect(kpi('turns')).toMatchObject({ value: close(mean(sent.map(({ calls }) => calls.length))) });
    expect(kpi('truncated')).toMatchObject({ value: close(mean(sent.map(({ stop }) => Number(stop === 'max_turns')))) });
    const failed = sent.flatMap(({ calls }) => calls.map((call) => Number(call.failed)));
    expect(kpi('tool_error')).toMatchObject({ value: close(mean(failed)), denominator: failed.length });
    const pairs = groupsOf(sent)
      .map(scoredOf)
      .filter(({ length }) => length >= 2);
    const equal = pairs.filter((rewards) => Math.max(...rewards) - Math.min(...rewards) <= 1e-6);
    expect(kpi('zero_variance')).toMatchObject({ value: close(equal.length / pairs.length), denominator: pairs.length });
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

  it.each([
    ['', 0, STEPS],
    ['&steps=3..8', 3, 8],
  ])('tools%s', async (range, from, to) => {
    const own = sent.filter(({ step }) => step >= from && step <= to);
    const { tools, rollouts } = await get(path(`tools?${range}`));
    expect(rollouts).toBe(own.length);
    expect(tools.map(({ tool }: { tool: string }) => tool).toSorted()).toEqual(['act', 'look']);
    for (const row of tools) {
      const callsOf = (one: Sent) => one.calls.filter(({ tool }) => tool === row.tool);
      const [users, others] = [own.filter((one) => callsOf(one).length > 0), own.filter((one) => callsOf(one).length === 0)];
      const calls = own.flatMap(callsOf);
      const errors = calls.filter(({ failed }) => failed).length;
      expect(row).toMatchObject({
        rollouts: users.length,
        calls: calls.length,
        calls_per_rollout: close(calls.length / users.length),
        errors,
        error_rate: close(errors / calls.length),
        reward_used: close(mean(scoredOf(users))),
        reward_unused: close(mean(scoredOf(others))),
      });
      const steps = await get(path(`tools/steps?tool=${row.tool}${range}`));
      const atStep = [...new Set(users.map(({ step }) => step))].toSorted((a, b) => a - b);
      const columns = atStep.map((step) => own.filter((one) => one.step === step));
      expect(steps).toMatchObject({
        step: atStep,
        rollouts: columns.map((members) => members.filter((one) => callsOf(one).length > 0).length),
        calls: columns.map((members) => members.flatMap(callsOf).length),
        errors: columns.map((members) => members.flatMap(callsOf).filter(({ failed }) => failed).length),
      });
    }
  });

  it.each([
    ['', 0, STEPS],
    ['&steps=3..8', 3, 8],
  ])('failures%s', async (range, from, to) => {
    const own = sent.filter(({ step }) => step >= from && step <= to);
    const keyOf = (one: Sent) => JSON.stringify(causeOf(one));
    const failed = own.filter((one) => causeOf(one) !== null);
    const solved = (members: readonly Sent[]) => members.filter((one) => rewardOf(one) !== null && isSolved(rewardOf(one)!)).length;
    const answer = await get(path(`failures?limit=100${range}`));
    expect(answer).toMatchObject({
      rollouts: own.length,
      failed: failed.length,
      kinds: new Set(failed.map(keyOf)).size,
      solved: solved(failed),
      pending: 0,
      classes: Object.fromEntries(
        ['policy', 'environment', 'infrastructure'].map((whose) => [whose, failed.filter((one) => causeOf(one)!.class === whose).length]),
      ),
    });
    expect(answer.failures).toHaveLength(answer.kinds);
    for (const row of answer.failures) {
      const stop = row.error === null ? row.example.stop : null;
      const key = JSON.stringify({ class: row.class, tool: row.tool, error: row.error, stop });
      const members = failed.filter((one) => keyOf(one) === key);
      const steps = members.map(({ step }) => step);
      expect(row, key).toMatchObject({
        count: members.length,
        solved: solved(members),
        mean_reward: close(mean(scoredOf(members))),
        first_step: Math.min(...steps),
        last_step: Math.max(...steps),
        first_seen_step: Math.min(...sent.filter((one) => keyOf(one) === key).map(({ step }) => step)),
        trend: answer.bins.map(
          (bin: { from: number; to: number }) => members.filter(({ step }) => step >= bin.from && step <= bin.to).length,
        ),
      });
      expect(members.map(({ id }) => id)).toContain(row.example.id);
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

it('the comparison of both runs, paired by task', async () => {
  const names = ['figures one', 'figures two'] as const;
  const runs = names.map(sentIn);
  const { status, body } = await server.request('GET', `/v1/compare?runs=${encodeURIComponent(names.join(','))}`);
  expect(status, JSON.stringify(body)).toBe(200);
  const [pair] = body.pairs;
  expect(body.runs).toMatchObject(
    runs.map((sent) => ({ samples: scoredOf(sent).length, left_out: sent.length - scoredOf(sent).length, steps: STEPS })),
  );
  const tau = runs.map(solvedRule);
  const values: Record<string, (one: Sent, run: number) => number[]> = {
    reward_mean: (one) => scoredOf([one]),
    success: (one, run) => scoredOf([one]).map((reward) => Number(tau[run]!(reward))),
    turns: ({ calls }) => [calls.length],
    tool_error: ({ calls }) => calls.map(({ failed }) => Number(failed)),
    truncated: ({ stop }) => [Number(stop === 'max_turns')],
  };
  for (const [metric, of] of Object.entries(values)) {
    const cells = runs.map((sent, run) =>
      Array.from({ length: 9 }, (_, task) => sent.filter((one) => one.task === task).flatMap((one) => of(one, run))),
    );
    const common = [0, 1, 2, 3, 4, 5, 6, 7, 8].filter((task) => cells.every((tasks) => tasks[task]!.length > 0));
    const means = cells.map((tasks) => common.map((task) => mean(tasks[task]!)!));
    const differences = common.map((_task, at) => means[1]![at]! - means[0]![at]!);
    const centre = mean(differences)!;
    const deviation = Math.sqrt(differences.reduce((sum, one) => sum + (one - centre) ** 2, 0) / (common.length - 1));
    const half = (T_975[common.length - 2]! * deviation) / Math.sqrt(common.length);
    const found = pair.metrics.find((one: { metric: string }) => one.metric === metric);
    const side = (run: number) => ({
      mean: close(mean(means[run]!)),
      tasks: common.length,
      samples: common.reduce((sum, task) => sum + cells[run]![task]!.length, 0),
    });
    expect(found, metric).toMatchObject({ method: 'paired', first: side(0), other: side(1), difference: close(centre) });
    expect(found.low, metric).toBeCloseTo(centre - half, 3);
    expect(found.high, metric).toBeCloseTo(centre + half, 3);
    if (metric !== 'success') continue;
    const [first, other] = means.map((rates) => rates.map((rate) => rate >= 0.5)) as [boolean[], boolean[]];
    const count = (of: (at: number) => boolean) => common.filter((_task, at) => of(at)).length;
    expect(pair.solved).toMatchObject({
      both: count((at) => first[at]! && other[at]!),
      neither: count((at) => !first[at]! && !other[at]!),
      lost: count((at) => first[at]! && !other[at]!),
      gained: count((at) => !first[at]! && other[at]!),
    });
  }
});
