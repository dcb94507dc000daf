import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { groupKeyOf } from '../fill-rules/group-key.ts';
import { type Arrival, inferSteps } from './step-inference.ts';
import { cpuTime } from '../../../../tests/support/cpu-time.ts';
import { full } from '../../../../tests/support/full.ts';

/** What a synchronous trainer uploads: batches of `batch` tasks of `tasks`, n samples each, epoch after epoch, a pause after each batch. */
interface Trainer {
  tasks: number;
  batch: number;
  n: number;
  steps: number;
  pauseMs?: number;
  spreadMs?: number;
  seed?: number;
}
type Expected = Arrival & { step: number };

function random(seed: number): () => number {
  let state = seed >>> 0 || 1;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

function shuffle<T>(items: T[], next: () => number): T[] {
  for (let at = items.length - 1; at > 0; at -= 1) {
    const other = Math.floor(next() * (at + 1));
    [items[at], items[other]] = [items[other]!, items[at]!];
  }
  return items;
}

function train({ tasks, batch, n, steps, pauseMs = 60_000, spreadMs = 20_000, seed = 1 }: Trainer): Expected[] {
  const next = random(seed);
  const perEpoch = Math.floor(tasks / batch);
  let order: number[] = [];
  let clock = 1_795_000_000_000;
  const arrivals: Expected[] = [];
  for (let step = 0; step < steps; step += 1) {
    if (step % perEpoch === 0) order = shuffle([...Array(tasks).keys()], next);
    const chosen = order.slice((step % perEpoch) * batch, (step % perEpoch) * batch + batch);
    const episodes = shuffle(
      chosen.flatMap((task) => Array<number>(n).fill(task)),
      next,
    );
    episodes.forEach((task, at) => {
      const receivedAt = Math.round(clock + (at / episodes.length) * spreadMs);
      arrivals.push({ id: `${step}-${String(at).padStart(6, '0')}`, taskKey: `t${task}`, receivedAt, phase: null, step });
    });
    clock += spreadMs + pauseMs;
  }
  return arrivals;
}

const wrongSteps = (expected: readonly Expected[], run: ReturnType<typeof inferSteps>) =>
  expected.filter(({ id, step }) => run.rollouts.get(id)?.step !== step).length;

function groupsOf(arrivals: readonly Expected[], run: ReturnType<typeof inferSteps>): Map<string | null, Expected[]> {
  const groups = new Map<string | null, Expected[]>();
  for (const arrival of arrivals) {
    const { groupKey } = run.rollouts.get(arrival.id)!;
    groups.set(groupKey, [...(groups.get(groupKey) ?? []), arrival]);
  }
  return groups;
}

describe('inferSteps', () => {
  it('is exact for a synchronous trainer, whatever the order inside a batch and of the input', () => {
    const trainer = fc.record({
      batch: fc.integer({ min: 2, max: 12 }),
      batches: fc.integer({ min: 1, max: 4 }),
      n: fc.integer({ min: 2, max: 8 }),
      steps: fc.integer({ min: 1, max: 9 }),
      seed: fc.nat(),
      known: fc.constantFrom({}, { n: true }, { n: true, batchSize: true }),
    });
    fc.assert(
      fc.property(trainer, ({ batch, batches, n, steps, seed, known }) => {
        const expected = train({ tasks: batch * batches, batch, n, steps, seed });
        const settings = { n: 'n' in known ? n : null, batchSize: 'batchSize' in known ? batch : null };
        const run = inferSteps(shuffle([...expected], random(seed + 1)), settings);
        expect(run).toMatchObject({ n, confidence: 1, waves: steps });
        expect(wrongSteps(expected, run)).toBe(0);
        const groups = groupsOf(expected, run);
        expect(groups.size).toBe(steps * batch);
        for (const [key, members] of groups) {
          expect(key).toBe(groupKeyOf('train', members[0]!.taskKey!, members[0]!.step));
          expect(new Set(members.map(({ id }) => run.rollouts.get(id)!.sampleIdx))).toEqual(new Set(Array(n).keys()));
        }
      }),
      { numRuns: full ? 60 : 25 },
    );
  });

  it('counts visits: the epoch of a task', () => {
    const expected = train({ tasks: 8, batch: 4, n: 4, steps: 6 });
    const { rollouts } = inferSteps(expected);
    for (const { id, step } of expected) expect(rollouts.get(id)!.visit).toBe(Math.floor(step / 2));
  });

  it.each([1, 2, 9])('keeps %i stragglers in their wave', (stragglers) => {
    const expected = train({ tasks: 32, batch: 16, n: 4, steps: 6 });
    // The last episodes of step 2 take half a minute longer than all others.
    for (const arrival of expected.filter(({ step }) => step === 2).slice(-stragglers)) arrival.receivedAt += 30_000;
    expect(wrongSteps(expected, inferSteps(expected))).toBe(0);
  });

  it('goes on with the next wave when a sample was lost', () => {
    const expected = train({ tasks: 64, batch: 16, n: 4, steps: 12 }).filter((_, at) => at !== 70 && at !== 333);
    const run = inferSteps(expected);
    expect(run).toMatchObject({ n: 4, confidence: 1, waves: 12 });
    expect(wrongSteps(expected, run)).toBe(0);
  });

  it('cuts by a known batch size where there are no pauses, and re-anchors after a loss', () => {
    const whole = train({ tasks: 64, batch: 8, n: 4, steps: 16, pauseMs: 0 });
    expect(wrongSteps(whole, inferSteps(whole, { n: 4, batchSize: 8 }))).toBe(0);
    const lossy = whole.filter((_, at) => at !== 40);
    expect(wrongSteps(lossy, inferSteps(lossy, { n: 4, batchSize: 8 }))).toBeLessThanOrEqual(2);
  });

  it('tells no step of an asynchronous trainer, and groups by visits', () => {
    const next = random(7);
    const arrivals: Arrival[] = [];
    for (let at = 0; at < 4_000; at += 1) {
      const taskKey = `t${Math.floor(next() * 50)}`;
      arrivals.push({ id: String(at).padStart(5, '0'), taskKey, receivedAt: 1e12 + at * 700, phase: null });
    }
    const run = inferSteps(arrivals, { n: 4 });
    expect(run.confidence).toBeLessThan(0.8);
    const first = arrivals.filter(({ taskKey }) => taskKey === 't7').map(({ id }) => run.rollouts.get(id)!);
    expect(first.slice(0, 5).map(({ step, visit, sampleIdx }) => [step, visit, sampleIdx])).toEqual([
      [null, 0, 0],
      [null, 0, 1],
      [null, 0, 2],
      [null, 0, 3],
      [null, 1, 0],
    ]);
    expect(first[0]!.groupKey).toBe(groupKeyOf(null, 't7', null, 0));
    expect(inferSteps(arrivals, { n: 4, batchSize: 8 }).confidence).toBeLessThan(0.8);
  });

  it('does not take a stream without pauses for one step', () => {
    const stream = (tasks: number, length: number) =>
      [...Array(length).keys()].map((at): Arrival => ({
        id: `${at}`,
        taskKey: `t${at % tasks}`,
        receivedAt: 1e12 + at * 50_000,
        phase: null,
      }));
    expect(inferSteps(stream(10, 1_000))).toMatchObject({ n: 100, confidence: 0, waves: 1 });
    expect(inferSteps(stream(10, 25))).toMatchObject({ n: 3, confidence: 0, waves: 1 });
    expect(inferSteps(stream(10, 25), { n: 4 })).toMatchObject({ confidence: 1 });
    expect(inferSteps(stream(10, 40))).toMatchObject({ n: 4, confidence: 1 });
  });

  it('takes evaluations on the training tasks out of the waves', () => {
    const training = train({ tasks: 32, batch: 8, n: 4, steps: 8 });
    const pause = 80_000;
    const evaluation = (after: number): Arrival[] =>
      [...Array(32).keys()].map((task) => ({
        id: `eval-${after}-${String(task).padStart(2, '0')}`,
        taskKey: `t${task}`,
        receivedAt: training.findLast(({ step }) => step === after)!.receivedAt + 30_000 + task * 100,
        phase: null,
      }));
    const shifted = training.map((arrival) => ({ ...arrival, receivedAt: arrival.receivedAt + Math.floor(arrival.step / 4) * pause }));
    const evals = evaluation(3);
    const run = inferSteps([...shifted, ...evals]);
    expect(run).toMatchObject({ n: 4, confidence: 1, waves: 8 });
    expect(wrongSteps(shifted, run)).toBe(0);
    for (const { id } of evals) expect(run.rollouts.get(id)).toMatchObject({ phase: 'eval', step: 3, sampleIdx: 0 });
  });

  it('keeps rollouts known as evaluations apart, at the step before them', () => {
    const training = train({ tasks: 16, batch: 8, n: 4, steps: 4 });
    const evals = training
      .filter(({ step }) => step === 1)
      .slice(0, 8)
      .map((arrival, at): Arrival => ({
        ...arrival,
        id: `eval-${at}`,
        taskKey: `t${at}`,
        receivedAt: arrival.receivedAt + 40_000,
        phase: 'eval',
      }));
    const run = inferSteps([...training, ...evals]);
    expect(wrongSteps(training, run)).toBe(0);
    for (const { id, taskKey } of evals) {
      expect(run.rollouts.get(id)).toMatchObject({ step: 1, groupKey: groupKeyOf('eval', taskKey!, 1) });
    }
  });

  it('answers for nothing, for no task and for one rollout', () => {
    expect(inferSteps([])).toMatchObject({ n: null, confidence: 0, waves: 0 });
    const arrival = { id: 'a', taskKey: null, receivedAt: 1, phase: null };
    expect(inferSteps([arrival]).rollouts.get('a')).toEqual({
      step: null,
      window: 0,
      visit: null,
      groupKey: null,
      sampleIdx: null,
      phase: null,
    });
    expect(inferSteps([{ ...arrival, taskKey: 't' }]).rollouts.get('a')).toMatchObject({ step: 0, visit: 0, sampleIdx: 0 });
  });

  it('does not hang on odd times and settings', () => {
    fc.assert(
      fc.property(
        fc.array(fc.record({ receivedAt: fc.nat(10 ** 6), task: fc.nat(5), phase: fc.constantFrom(null, 'train', 'eval') }), {
          maxLength: 60,
        }),
        fc.record({ n: fc.option(fc.integer()), batchSize: fc.option(fc.integer()) }),
        (rows, settings) => {
          const arrivals = rows.map(({ receivedAt, task, phase }, at): Arrival => ({
            id: `${at}`,
            taskKey: `t${task}`,
            receivedAt,
            phase: phase as Arrival['phase'],
          }));
          const run = inferSteps(arrivals, settings);
          expect(run.rollouts.size).toBe(arrivals.length);
          expect(inferSteps(arrivals.toReversed(), settings)).toEqual(run);
        },
      ),
    );
  });

  it('takes seconds, not minutes, for a long run', { timeout: 120_000 }, () => {
    const expected = train({ tasks: 2_000, batch: 50, n: 8, steps: 500 });
    const startedAt = cpuTime();
    const run = inferSteps(expected);
    expect(cpuTime() - startedAt).toBeLessThan(10_000);
    expect(wrongSteps(expected, run)).toBe(0);
  });
});
