import { spawn } from 'node:child_process';
import { createHash, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { compareSchema } from '../../../libs/protocol/src/schemas/index.ts';
import { pairedEstimate } from '../../../libs/metrics/src/index.ts';
import { formatReward } from '../../../libs/kit/src/reward-text.ts';
import { sharedServer, type TestServer } from '../../support/server.ts';
import { eventsOf, strangerOf } from './run-reads.world.ts';

const [LONG, SHORT, LATE, OTHER_TASKS, SINGLE, TWO] = ['pair/long', 'pair/short', 'pair/late', 'pair/other', 'pair/single', 'pair/two'].map(
  (name) => `compare-runs/${name}`,
) as [string, string, string, string, string, string];
const TASKS = 30;
const SAMPLES = 4;
const BROKEN = { stop: 'infra_error' };

interface Sent {
  step: number;
  task: number;
  sample: number;
  reward: number | null;
  stop?: string;
  environment?: string;
}

/** A number from 0 to 1, equal for equal words. */
const chance = (...words: (string | number)[]): number => createHash('sha256').update(words.join('/')).digest().readUInt32BE(0) / 2 ** 32;

/** Tasks differ much; `gain` is added to the chance of each. Rises with the steps. */
function run(
  name: string,
  {
    steps,
    from = 0,
    tasks = TASKS,
    firstTask = 0,
    gain = 0,
  }: { steps: number; from?: number; tasks?: number; firstTask?: number; gain?: number },
): Sent[] {
  const sent: Sent[] = [];
  for (let step = from; step < from + steps; step += 1)
    for (let task = firstTask; task < firstTask + tasks; task += 1)
      for (let sample = 0; sample < SAMPLES; sample += 1) {
        const level = 0.7 * chance('level', task) + 0.04 * step + gain;
        sent.push({ step, task, sample, reward: chance(name, step, task, sample) < level ? 1 : 0 });
      }
  return sent;
}

const runs: Record<string, Sent[]> = {
  [LONG]: run(LONG, { steps: 8 }),
  // Broken rollouts hold a partial sum that is no reward.
  [SHORT]: [
    ...run(SHORT, { steps: 5, gain: 0.15 }),
    ...Array.from({ length: TASKS }, (_, task) => ({ step: 1, task, sample: SAMPLES, reward: -5, ...BROKEN })),
    { step: 2, task: 0, sample: SAMPLES, reward: null },
  ],
  [LATE]: run(LATE, { steps: 2, from: 20 }),
  [OTHER_TASKS]: run(OTHER_TASKS, { steps: 2, firstTask: 500, gain: 0.1 }),
  [SINGLE]: run(SINGLE, { steps: 2, tasks: 1 }),
  [TWO]: [
    ...run(TWO, { steps: 2, gain: 0.1 }),
    ...run(`${TWO}x`, { steps: 2, firstTask: 700, tasks: 6 }).map((one) => ({ ...one, environment: 'acme/code' })),
  ],
};

let server: TestServer;
const query = (names: readonly string[], more = '') =>
  `/v1/compare?${names.map((name) => `runs=${encodeURIComponent(name)}`).join('&')}${more}`;
async function compared(names: readonly string[], more = '') {
  const { status, body } = await server.request('GET', query(names, more));
  expect(status).toBe(200);
  return compareSchema.parse(body);
}
const metricOf = (answer: Awaited<ReturnType<typeof compared>>, metric = 'reward_mean', pair = 0) =>
  answer.pairs[pair]!.metrics.find((one) => one.metric === metric)!;
const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;

/** The mean of each task, computed directly. */
function means(name: string, steps: (step: number) => boolean): Map<number, number> {
  const counted = runs[name]!.filter(({ step, reward, stop }) => steps(step) && reward !== null && stop === undefined);
  return new Map(
    [...new Set(counted.map(({ task }) => task))].map((task) => [
      task,
      mean(counted.filter((one) => one.task === task).map(({ reward }) => reward!)),
    ]),
  );
}

beforeAll(async () => {
  server = await sharedServer();
  for (const [name, sent] of Object.entries(runs)) {
    const events = sent.flatMap(({ step, task, sample, reward, stop, environment }) => {
      const [start, ...rest] = eventsOf(name, { id: randomUUID(), step, task, sample, reward, failed: false }) as Record<string, object>[];
      return [
        { ...start!, ...(environment && { environment }), metadata: { ...start!['metadata'], ...(stop && { stop_reason: stop }) } },
        ...rest,
      ];
    });
    for (let at = 0; at < events.length; at += 2_000) {
      const { status } = await server.request('POST', '/v1/rollouts', { body: { events: events.slice(at, at + 2_000) } });
      if (status !== 200) throw new Error(`${name}: ${status}`);
    }
  }
}, 120_000);
afterAll(() => server.close());

describe('comparing runs', () => {
  it('rejects a missing key, runs of others, one run and a wrong range', async () => {
    expect(await server.request('GET', query([LONG, SHORT]), { headers: { 'x-api-key': '' } })).toMatchObject({
      status: 401,
      body: { code: 'unauthorized' },
    });
    expect(await server.request('GET', query([LONG, SHORT]), { headers: await strangerOf(server) })).toMatchObject({
      status: 404,
      body: { code: 'run_not_found' },
    });
    for (const bad of [query([LONG]), query([LONG, SHORT], '&steps=some'), query([LONG, SHORT], '&den=some')])
      expect(await server.request('GET', bad)).toMatchObject({ status: 422, body: { code: 'invalid_body' } });
  });

  it('refuses what one organisation asks beyond its share, and answers the rest', async () => {
    const answers = await Promise.all(Array.from({ length: 40 }, () => server.request('GET', query([LONG, SHORT]))));
    const refused = answers.filter(({ status }) => status !== 200);
    expect(refused.length).toBeGreaterThan(0);
    expect(refused.length).toBeLessThan(40);
    for (const answer of refused) expect(answer).toMatchObject({ status: 429, body: { code: 'capacity_exhausted' } });
  });

  it('uses the common steps of both runs, and says so', async () => {
    const answer = await compared([LONG, SHORT]);
    expect(answer.steps).toEqual({
      choice: 'common',
      common: true,
      count: 5,
      from: 0,
      to: 4,
      words: 'Steps 0 to 4: the 5 that every run has (of 8, 5).',
    });
    expect(answer.runs.map(({ steps, samples, tasks }) => [steps, samples, tasks])).toEqual([
      [8, 5 * TASKS * SAMPLES, TASKS],
      [5, 5 * TASKS * SAMPLES, TASKS],
    ]);
    const { first, method } = metricOf(answer);
    expect(method).toBe('paired');
    expect(first.mean).toBeCloseTo(mean([...means(LONG, (step) => step < 5).values()]), 12);
    // The last steps of the long run are better: all steps would hide a part of the difference.
    const all = await compared([LONG, SHORT], '&steps=all');
    expect(all.steps).toMatchObject({ choice: 'all', common: false, count: null, words: 'Every step of each run (8, 5).' });
    expect(metricOf(all).first.mean).toBeCloseTo(mean([...means(LONG, () => true).values()]), 12);
    expect(metricOf(all).difference).toBeLessThan(metricOf(answer).difference);
    const range = await compared([LONG, SHORT], '&steps=3..6');
    expect(range.steps).toMatchObject({ choice: 'range', common: true, from: 3, to: 4, count: 2 });
    expect(metricOf(range).first.mean).toBeCloseTo(mean([...means(LONG, (step) => step === 3 || step === 4).values()]), 12);
  });

  it('pairs the tasks: an interval of at most 0.7 of the unpaired one', async () => {
    const found = metricOf(await compared([LONG, SHORT]));
    const [a, b] = [means(LONG, (step) => step < 5), means(SHORT, (step) => step < 5)];
    const expected = pairedEstimate([...a].map(([task, value]) => b.get(task)! - value))!;
    expect(found.difference).toBeCloseTo(expected.difference, 12);
    expect(found.low).toBeCloseTo(expected.low!, 12);
    expect(found.high).toBeCloseTo(expected.high!, 12);
    expect(found.high! - found.low!).toBeLessThan(0.7 * (found.unpaired!.high - found.unpaired!.low));
    expect(found.power).toMatchObject({ resolved: true });
    expect(found.bootstrap!.low).toBeGreaterThan(0);
    expect(found.bootstrap).toEqual(metricOf(await compared([LONG, SHORT])).bootstrap);
  });

  it('leaves out rollouts that broke, and counts them', async () => {
    const answer = await compared([LONG, SHORT]);
    expect(answer).toMatchObject({ den: 'effective' });
    expect(answer.runs.map(({ left_out }) => left_out)).toEqual([0, TASKS + 1]);
    // Other figures count every rollout.
    expect(metricOf(answer, 'calls').other.samples).toBe(metricOf(answer).other.samples + TASKS + 1);
    expect(metricOf(await compared([LONG, SHORT], '&den=scored')).other.mean).toBeLessThan(metricOf(answer).other.mean);
    expect((await compared([LONG, SHORT], '&den=all')).runs[1]).toMatchObject({ left_out: 0 });
  });

  it('lists the tasks that flipped, with McNemar', async () => {
    const { solved } = (await compared([LONG, SHORT])).pairs[0]!;
    const [a, b] = [means(LONG, (step) => step < 5), means(SHORT, (step) => step < 5)];
    const flipped = [...a].filter(([task, value]) => value >= 0.5 !== b.get(task)! >= 0.5).map(([task]) => task);
    const gained = flipped.filter((task) => b.get(task)! >= 0.5);
    expect(flipped.length).toBeGreaterThan(0);
    expect(solved).toMatchObject({ gained: gained.length, lost: flipped.length - gained.length, exact: true });
    expect(solved!.both + solved!.neither + solved!.lost + solved!.gained).toBe(TASKS);
    expect(solved!.flips.map(({ task }) => task.index).toSorted((x, y) => x! - y!)).toEqual(flipped.toSorted((x, y) => x - y));
    for (const { task, first, other } of solved!.flips)
      expect([first, other]).toEqual([
        { success: expect.closeTo(a.get(task.index!)!, 12), samples: 5 * SAMPLES },
        { success: expect.closeTo(b.get(task.index!)!, 12), samples: 5 * SAMPLES },
      ]);
  });

  it('falls back, in words, where steps or tasks have nothing in common', async () => {
    const late = await compared([LONG, LATE]);
    expect(late.steps).toMatchObject({
      choice: 'common',
      common: false,
      words: 'The runs have no step in common: all steps of each run count.',
    });
    const apart = await compared([LONG, OTHER_TASKS]);
    expect(apart.pairs[0]).toMatchObject({ common_tasks: 0, solved: null });
    expect(metricOf(apart)).toMatchObject({ method: 'unpaired', first: { tasks: TASKS }, other: { tasks: TASKS } });
    const single = metricOf(await compared([SINGLE, SINGLE]));
    expect(single).toMatchObject({ method: 'rollouts', difference: 0, first: { tasks: 1, samples: 2 * SAMPLES } });
    expect((await compared([LONG, SHORT], '&phase=eval')).pairs[0]).toMatchObject({
      common_tasks: 0,
      metrics: [],
      solved: null,
      environments: [],
    });
  });

  it('compares up to four runs with the first, and environments with Holm', async () => {
    const answer = await compared([TWO, TWO, LONG, SHORT]);
    expect(answer.pairs).toHaveLength(3);
    expect(metricOf(answer, 'success')).toMatchObject({ difference: 0, low: 0, high: 0, p: 1, power: { detectable: 0, needed: null } });
    const [same] = answer.pairs;
    expect(same!.environments.map(({ environment, tasks, p_holm }) => [environment, tasks, p_holm])).toEqual([
      ['acme/code', 6, 1],
      ['acme/math', TASKS, 1],
    ]);
    const only = await compared([TWO, LONG], '&env=acme/math');
    expect(only.pairs[0]!.environments).toEqual([]);
    expect(only.runs[0]).toMatchObject({ tasks: TASKS });
  });

  it('survives rewards at the edge of numbers', async () => {
    const events = [1.7e308, -1.7e308, 1, 0].flatMap((reward, task) =>
      eventsOf('compare-runs/edge', { id: randomUUID(), step: 0, task, sample: 0, reward, failed: false }),
    );
    expect(await server.request('POST', '/v1/rollouts', { body: { events } })).toMatchObject({ status: 200 });
    const found = metricOf(await compared(['compare-runs/edge', LONG]));
    expect(Number.isFinite(found.difference) && Number.isFinite(found.low)).toBe(true);
  });
});

describe('palestra compare', () => {
  const CLI = path.resolve(import.meta.dirname, '../../../apps/cli/dist/main.js');
  async function cli(args: readonly string[], url = server.url) {
    const child = spawn(process.execPath, [CLI, 'compare', ...args], {
      env: { ...process.env, PALESTRA_URL: url, PALESTRA_API_KEY: server.apiKey },
    });
    const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
    return { code: child.exitCode, stdout, stderr };
  }

  it('prints the table of the answer, and its words', async () => {
    const { code, stdout, stderr } = await cli([LONG, SHORT]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const found = metricOf(await compared([LONG, SHORT]));
    expect(stdout).toContain('Steps 0 to 4: the 5 that every run has (of 8, 5). Phase train. Denominator effective.');
    expect(stdout).toMatch(
      new RegExp(`^B - A {2}reward_mean .*\\${formatReward(found.difference, { signed: true })} .*paired {2}30 {5}600, 600$`, 'm'),
    );
    expect(stdout).toContain(found.power_words);
    expect(stdout).toMatch(/^B - A: \d+ tasks gained, \d+ lost \(McNemar p /m);
  });

  it.each<[string[], number]>([
    [['--fail-if', 'reward_mean<-0.02'], 0],
    [['--fail-if', 'reward_mean<-0.02', '--fail-if', 'success.high > 0.01'], 5],
    [['--fail-if', 'reward_mean.low<-0.5', '--metric', 'success', '--steps', '3..4'], 0],
    [['--fail-if', 'tool_error.low>1', '--phase', 'eval'], 1],
    [['--fail-if', 'reward<0'], 2],
    [['--fail-if', 'reward_mean=0'], 2],
    [['--metric', 'reward'], 2],
    [['--colour'], 2],
    [['--steps', 'some'], 2],
    [['--den', 'some'], 2],
  ])('%j ends with %i', async (args, expected) => {
    expect((await cli([LONG, SHORT, ...args])).code).toBe(expected);
  });

  it('does not take a missing answer for a result', async () => {
    expect(await cli([LONG])).toMatchObject({ code: 2, stderr: expect.stringContaining('two to four runs') });
    expect(await cli([])).toMatchObject({ code: 2 });
    expect(await cli([LONG, 'nobody'])).toMatchObject({ code: 1, stderr: expect.stringContaining('No such run') });
    expect(await cli([LONG, SHORT], 'http://127.0.0.1:1')).toMatchObject({ code: 3, stderr: expect.stringContaining('ECONNREFUSED') });
  });

  it('prints the answer with the outcome of each condition as JSON', async () => {
    const { code, stdout } = await cli([LONG, SHORT, '-o', 'json', '--fail-if', 'reward_mean>0']);
    const printed = JSON.parse(stdout);
    expect(code).toBe(5);
    expect(compareSchema.parse(printed).pairs).toEqual((await compared([LONG, SHORT])).pairs);
    expect(printed.conditions).toEqual([
      { condition: 'reward_mean>0', run: printed.runs[1].id, value: metricOf(printed).difference, met: true },
    ]);
  });
});
