import { createHash, randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runMovesSchema, runSummarySchema } from '../../../libs/protocol/src/schemas/index.ts';
import { findMoves, groupBy } from '../../../libs/metrics/src/index.ts';
import { sharedServer, type TestServer } from '../../support/server.ts';
import { strangerOf } from './run-reads.world.ts';

const [TOOL, VERSION, TASKS, NOISE, ALONE, ONE, ARGUMENTS] = ['tool', 'version', 'tasks', 'noise', 'alone', 'one', 'arguments'].map(
  (name) => `moves/${name}`,
) as [string, string, string, string, string, string, string];

interface Sent {
  id: string;
  step: number;
  /** Null: in no group. */
  task: number | null;
  sample: number;
  reward: number | null;
  /** Whether each call of `accuse` failed. */
  accuse: boolean[];
  /** Its arguments do not fit the schema, and the tool says nothing of it. */
  wrong?: boolean;
  version: string;
  environment: string;
  stop: string;
  turns: number;
}

/** A number from 0 to 1, equal for equal words. */
const chance = (...words: (string | number)[]): number => createHash('sha256').update(words.join('/')).digest().readUInt32BE(0) / 2 ** 32;

function run(
  name: string,
  steps: number,
  change: (one: { step: number; task: number; sample: number }) => Partial<Sent> & { level?: number; tasks?: never },
  tasksOf: (step: number) => number[] = (step) => Array.from({ length: 8 }, (_, at) => (step * 8 + at) % 24),
): Sent[] {
  return Array.from({ length: steps }, (_, step) =>
    tasksOf(step).flatMap((task, place) =>
      Array.from({ length: 4 }, (_nothing, sample): Sent => {
        const { level = 0.7, ...more } = change({ step, task, sample });
        const reward = chance(name, step, place, sample) < level ? 1 : 0;
        const usual = { accuse: [false], version: '1', environment: 'acme/whodunit', stop: 'finished', turns: 3 };
        return { id: randomUUID(), step, task, sample, reward, ...usual, ...more };
      }),
    ),
  ).flat();
}

const runs: Record<string, Sent[]> = {
  // From step 12 on a call of accuse fails in most rollouts, and these earn nothing; two rollouts of the step are interrupted.
  [TOOL]: run(TOOL, 15, ({ step, task, sample }) => {
    if (step === 12 && sample === 0 && task < 2) return { stop: 'infra_error', reward: null };
    const failed = chance('accuse', step, task, sample) < (step >= 12 ? 0.7 : 0.02);
    return { accuse: failed ? [true, step % 2 === 0] : [false], ...(failed && { reward: 0 }), turns: failed ? 4 : 3 };
  }),
  [VERSION]: run(VERSION, 14, ({ step }) => (step >= 10 ? { version: '2', level: 0.15 } : {})),
  // Odd tasks are hard; at step 10 only these are played.
  [TASKS]: run(
    TASKS,
    11,
    ({ task }) => ({ level: task % 2 === 1 ? 0.04 : 0.96 }),
    (step) => Array.from({ length: 24 }, (_, at) => (step === 10 ? 2 * at + 1 : (step * 24 + at) % 48)),
  ),
  [NOISE]: run(NOISE, 40, ({ step }) => ({ environment: step % 2 === 0 ? 'acme/whodunit' : 'acme/code' })),
  [ALONE]: run(ALONE, 12, ({ step }) => (step === 9 ? { task: null, level: 0.05 } : { task: null })),
  [ONE]: run(ONE, 1, () => ({})),
  // From step 9 on most rollouts call accuse with other names of arguments, and earn nothing.
  [ARGUMENTS]: run(ARGUMENTS, 12, ({ step, task, sample }) => {
    const wrong = chance('wrong', step, task, sample) < (step >= 9 ? 0.7 : 0.05);
    return { environment: 'palestra/whodunit', wrong, ...(wrong && { reward: 0 }) };
  }),
};

function eventsOf(name: string, sent: Sent): object[] {
  const { id, step, task, sample, reward, accuse, wrong, version, environment, stop, turns } = sent;
  const message = (index: number, more: object) => ({
    eventType: 'message',
    eventId: randomUUID(),
    rolloutEventId: id,
    timestamp: 1_000 + index,
    index,
    content: '',
    isFinished: false,
    metadata: {},
    ...more,
  });
  const calls = accuse.flatMap((failed, at) => [
    message(1 + 2 * at, {
      type: 'tool_call',
      name: 'accuse',
      callId: `c${at}`,
      content: JSON.stringify(failed || wrong ? { who: 'x' } : { suspect: 'x', weapon: 'y', room: 'z' }),
    }),
    message(2 + 2 * at, {
      type: 'tool_result',
      callId: `c${at}`,
      content: failed ? 'TypeError: unexpected argument who' : 'Noted.',
      metadata: failed ? { is_error: true } : {},
    }),
  ]);
  return [
    {
      eventType: 'rollout',
      eventId: id,
      timestamp: 1_000,
      runName: name,
      step,
      environment,
      split: 'train',
      metadata: {
        ...(task !== null && { group_id: `g${step}-${task}`, sample_idx: sample, n_samples: 4 }),
        num_turns: turns,
        stop_reason: stop,
      },
      rollout_info: { env_version: version, ...(task !== null && { task_index: task }) },
    },
    message(0, { type: 'user_message', content: task === null ? `Who did ${id}?` : 'Who did it?' }),
    ...calls,
    message(1 + 2 * accuse.length, { type: 'assistant_message', content: 'Done.', ...(reward !== null && { reward, isFinished: true }) }),
  ];
}

let server: TestServer;
const path = (name: string, more = '') => `/v1/runs/${encodeURIComponent(name)}/moves${more}`;
async function movesOf(name: string, more = '') {
  const { status, body } = await server.request('GET', path(name, more));
  expect(status, JSON.stringify(body)).toBe(200);
  return runMovesSchema.parse(body);
}
async function explained(name: string, step: number, more = '') {
  const { moves } = await movesOf(name, `?step=${step}${more}`);
  expect(moves).toHaveLength(1);
  return moves[0]!;
}
/** How many rollouts the explorer lists for a query. */
async function found(name: string, q: string) {
  const { status, body } = await server.request(
    'GET',
    `/v1/runs/${encodeURIComponent(name)}/rollouts?limit=500&q=${encodeURIComponent(q)}`,
  );
  expect(status, JSON.stringify(body)).toBe(200);
  return (body as { rollouts: { id: string }[] }).rollouts.map(({ id }) => id);
}
const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
const counted = (sent: readonly Sent[]) => sent.filter(({ reward, stop }) => reward !== null && stop !== 'infra_error');
const rewards = (sent: readonly Sent[]) => counted(sent).map(({ reward }) => reward!);

/** The steps as `findMoves` reads them, summed rollout by rollout. */
function stepsOf(name: string, of: (sent: Sent) => boolean = () => true) {
  const sent = counted(runs[name]!).filter(of);
  return [...new Set(sent.map(({ step }) => step))].map((step) => {
    const groups = groupBy(
      sent.filter((one) => one.step === step),
      ({ task, id }) => String(task ?? id),
    );
    const sums = [...groups.values()].map((members) => ({
      n: members.length,
      sum: rewards(members).reduce((total, reward) => total + reward, 0),
    }));
    const total = (value: (group: { n: number; sum: number }) => number) => sums.reduce((all, group) => all + value(group), 0);
    return {
      step,
      groups: groups.size,
      rollouts: total(({ n }) => n),
      sum: total(({ sum }) => sum),
      squares: total(({ n, sum }) => sum ** 2 / n),
    };
  });
}

beforeAll(async () => {
  server = await sharedServer();
  // What the environment publishes is known once somebody asked for it.
  await server.request('GET', '/v1/environments/palestra/whodunit/discovery');
  for (const [name, sent] of Object.entries(runs)) {
    const events = sent.flatMap((one) => eventsOf(name, one));
    for (let at = 0; at < events.length; at += 2_000) {
      const { status } = await server.request('POST', '/v1/rollouts', { body: { events: events.slice(at, at + 2_000) } });
      if (status !== 200) throw new Error(`${name}: ${status}`);
    }
  }
}, 120_000);
afterAll(() => server.close());

describe('why did it move', () => {
  it('rejects a missing key, runs of others, wrong steps and unknown environments', async () => {
    expect(await server.request('GET', path(TOOL), { headers: { 'x-api-key': '' } })).toMatchObject({ status: 401 });
    expect(await server.request('GET', path(TOOL), { headers: await strangerOf(server) })).toMatchObject({
      status: 404,
      body: { code: 'run_not_found' },
    });
    for (const bad of ['?step=x', '?step=-1', '?step=1.5', '?phase=some', '?env=acme/none'])
      expect(await server.request('GET', path(TOOL, bad)), bad).toMatchObject({ status: 422, body: { code: 'invalid_body' } });
  });

  it('refuses what one organisation asks beyond its share, and answers the rest', async () => {
    const answers = await Promise.all(Array.from({ length: 40 }, () => server.request('GET', path(NOISE, '?step=9'))));
    const refused = answers.filter(({ status }) => status !== 200);
    expect(refused.length).toBeGreaterThan(0);
    expect(refused.length).toBeLessThan(40);
    for (const answer of refused) expect(answer).toMatchObject({ status: 429, body: { code: 'capacity_exhausted' } });
    expect(await server.request('GET', path(NOISE, '?step=9'))).toMatchObject({ status: 200 });
  });

  it('names the tool that began to fail, with counts that equal those of the uploads', async () => {
    const { moves, steps, phase } = await movesOf(TOOL);
    expect({ steps, phase }).toEqual({ steps: 14, phase: 'train' });
    expect(moves.map(({ step }) => step)).toEqual([12]);
    const [first] = moves[0]!.causes;
    const [now, before] = [runs[TOOL]!.filter(({ step }) => step === 12), runs[TOOL]!.filter(({ step }) => step >= 7 && step < 12)];
    const errors = (sent: readonly Sent[]) => sent.flatMap(({ accuse }) => accuse).filter(Boolean).length;
    const calls = (sent: readonly Sent[]) => sent.flatMap(({ accuse }) => accuse).length;
    const failing = (sent: readonly Sent[]) => sent.filter(({ accuse }) => accuse.includes(true));
    expect(first).toMatchObject({
      kind: 'tool_error',
      name: 'accuse',
      text: `accuse failed in ${errors(now)} of ${calls(now)} calls; ${errors(before)} of ${calls(before)} before`,
      q: 'step:12 phase:train tool.error:accuse',
      now: { rollouts: failing(now).length, of: 32 },
      before: { rollouts: failing(before).length, of: 160 },
      calls: { now: { errors: errors(now), calls: calls(now) }, before: { errors: errors(before), calls: calls(before) } },
      likely: true,
      separable: true,
    });
    const share = (sent: readonly Sent[]) => failing(counted(sent)).length / counted(sent).length;
    expect(first!.share!.difference).toBeCloseTo(share(now) - share(before), 9);
    expect(first!.contribution!.high).toBeLessThan(0);
    expect(first!.explained).toBeGreaterThan(0.6);
    expect((await found(TOOL, first!.q!)).toSorted()).toEqual(
      failing(now)
        .map(({ id }) => id)
        .toSorted(),
    );
    // The example opens at its failing call.
    expect(failing(now).map(({ id }) => id)).toContain(first!.example!.rollout);
    expect(first!.example!.index).toBe(1);
  });

  it('names arguments that do not fit the schema, without an error of the tool, and the rollouts with them', async () => {
    const { moves } = await movesOf(ARGUMENTS);
    expect(moves.map(({ step }) => step)).toEqual([9]);
    const [now, before] = [runs[ARGUMENTS]!.filter(({ step }) => step === 9), runs[ARGUMENTS]!.filter(({ step }) => step >= 4 && step < 9)];
    const wrong = (sent: readonly Sent[]) => sent.filter((one) => one.wrong === true);
    const { causes } = await explained(ARGUMENTS, 9);
    expect(moves[0]!.causes).toEqual(causes.slice(0, 1));
    const [first] = causes;
    expect(first).toMatchObject({
      kind: 'arguments',
      name: 'accuse',
      text: `accuse was called with invalid arguments in ${wrong(now).length} of 32 checked calls; ${wrong(before).length} of 160 before`,
      detail: expect.stringMatching(/^must have required property '\w+'$/),
      found: null,
      now: { rollouts: wrong(now).length, of: 32 },
      before: { rollouts: wrong(before).length, of: 160 },
      calls: { now: { errors: wrong(now).length, calls: 32 }, before: { errors: wrong(before).length, calls: 160 } },
      likely: true,
      separable: true,
    });
    expect(first!.share!.difference).toBeCloseTo(wrong(now).length / 32 - wrong(before).length / 160, 9);
    expect(first!.share!.low).toBeGreaterThan(0);
    expect(first!.contribution!.high).toBeLessThan(0);
    expect((await found(ARGUMENTS, first!.q!)).toSorted()).toEqual(
      wrong(now)
        .map(({ id }) => id)
        .toSorted(),
    );
    expect(wrong(now).map(({ id }) => id)).toContain(first!.example!.rollout);
    expect(first!.example!.index).toBe(1);
  });

  it('agrees with a slow computation from the uploads at every step', async () => {
    for (const name of [TOOL, VERSION, NOISE, ALONE]) {
      const expected = findMoves(stepsOf(name));
      expect((await movesOf(name)).moves.map(({ step }) => step)).toEqual(expected.flatMap(({ step, moved }) => (moved ? [step] : [])));
      for (const { step, baseline, now, before, estimate, corrected } of expected.filter((_, at) => at % 3 === 0)) {
        const answer = await explained(name, step);
        expect(answer.baseline).toEqual({ from: baseline[0], to: baseline.at(-1), steps: baseline.length });
        expect(answer.now.mean).toBeCloseTo(mean(rewards(runs[name]!.filter((one) => one.step === step))), 9);
        expect(answer.before.mean).toBeCloseTo(mean(rewards(runs[name]!.filter((one) => baseline.includes(one.step)))), 9);
        expect([answer.now.groups, answer.now.rollouts, answer.before.groups]).toEqual([now.groups, now.rollouts, before.groups]);
        expect(answer.low).toBeCloseTo(estimate.low!, 6);
        expect(answer.high).toBeCloseTo(estimate.high!, 6);
        expect(answer.p).toBeCloseTo(corrected!, 6);
      }
    }
  });

  it('counts interrupted rollouts, and explains no reward by them', async () => {
    const { causes, now } = await explained(TOOL, 12);
    const interrupted = causes.find(({ kind }) => kind === 'interrupted')!;
    const lost = runs[TOOL]!.filter(({ step, stop }) => step === 12 && stop === 'infra_error').length;
    expect(lost).toBeGreaterThan(0);
    expect(now.rollouts).toBe(32 - lost);
    expect(interrupted).toMatchObject({
      text: `${lost} of 32 rollouts were interrupted and have no reward; 0 of 160 before`,
      contribution: null,
      explained: null,
      likely: false,
    });
    expect(await found(TOOL, interrupted.q!)).toHaveLength(lost);
  });

  it('names a new version of the environment, which holds for every rollout', async () => {
    const { moves } = await movesOf(VERSION);
    expect(moves.map(({ step }) => step)).toEqual([10]);
    const [version] = moves[0]!.causes;
    expect(version).toMatchObject({
      kind: 'version',
      name: '2',
      text: '32 of 32 rollouts ran version 2 of acme/whodunit; 0 of 160 before',
      separable: false,
      likely: true,
      now: { rollouts: 32, of: 32 },
    });
    expect(version!.explained).toBeCloseTo(1, 6);
    expect(await found(VERSION, version!.q!)).toHaveLength(32);
    expect(await found(VERSION, 'env.version:2')).toHaveLength(128);
    expect(await found(VERSION, 'env.version:1 step:>=10')).toHaveLength(0);
  });

  it('names harder tasks', async () => {
    const { moves } = await movesOf(TASKS);
    expect(moves.map(({ step }) => step)).toEqual([10]);
    const [tasks] = moves[0]!.causes;
    expect(tasks).toMatchObject({ kind: 'tasks', likely: true, now: null });
    expect(tasks!.text).toMatch(/^Its tasks earn \.4\d\d less than those before; 0 of 24 tasks differ from those before$/);
    expect(tasks!.explained).toBeGreaterThan(0.8);
    expect((await found(TASKS, tasks!.q!)).length).toBe(40);
  });

  it('counts each rollout without a group by itself', async () => {
    const { moves } = await movesOf(ALONE);
    expect(moves.map(({ step, now }) => [step, now.groups])).toEqual([
      [9, 32],
      [10, 32],
    ]);
    // No property of these rollouts changed.
    expect(moves[0]!.causes).toEqual([]);
  });

  it('reports no move of noise, of one step and of one environment of it, and nothing for steps without rewards', async () => {
    expect((await movesOf(NOISE)).moves).toEqual([]);
    expect(await movesOf(ONE)).toMatchObject({ steps: 0, moves: [] });
    expect((await movesOf(NOISE, '?step=900')).moves).toEqual([]);
    const code = await movesOf(NOISE, '?env=acme/code');
    expect(code).toMatchObject({ steps: 19, moves: [] });
    const one = await explained(NOISE, 5, '&env=acme/code');
    const expected = findMoves(stepsOf(NOISE, ({ environment }) => environment === 'acme/code')).find(({ step }) => step === 5)!;
    expect(one.baseline).toEqual({ from: 1, to: 3, steps: 2 });
    expect(one.low).toBeCloseTo(expected.estimate.low!, 6);
    expect((await movesOf(NOISE, '?phase=eval')).moves).toEqual([]);
  });

  it('tells the reader on the overview, with the cause and its rollouts', async () => {
    const advisories = async (name: string, more = '') => {
      const { body } = await server.request('GET', `/v1/runs/${encodeURIComponent(name)}/summary${more}`);
      return runSummarySchema.parse(body).advisories.filter(({ rule }) => rule === 'reward_fell');
    };
    const [fell, ...others] = await advisories(TOOL);
    expect(others).toEqual([]);
    expect(fell).toMatchObject({ level: 'warning', step: 12, q: 'step:12 phase:train tool.error:accuse' });
    expect(fell!.text).toMatch(/^Reward fell by \.\d+ at step 12: accuse failed in \d+ of \d+ calls; \d+ of \d+ before\.$/);
    expect(await advisories(TOOL, '?steps=..11')).toEqual([]);
    expect(await advisories(NOISE)).toEqual([]);
    expect((await advisories(ALONE))[0]).toMatchObject({
      text: expect.stringMatching(/ at step 9\. No single cause stands out\.$/),
      q: 'step:9',
    });
  });
});
