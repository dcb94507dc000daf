import type { Denominator, Lens } from '@palestra/protocol';
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { columnsOf, metric, type RolloutFigures } from '../../../libs/metrics/src/index.ts';
import { randomOf } from '../../support/random.ts';
import { sharedServer, type TestServer } from '../../support/server.ts';
import { figuresOf } from './run-reads.world.ts';

/** A run that trains on variants of an environment: its figures are those of all of them. */
const PLACES = [
  { environment: 'acme/a' },
  { environment: 'acme/a', variant: 'easy' },
  { environment: 'acme/a', variant: 'hard' },
  { environment: 'acme/b' },
];
const random = randomOf(7);
const rollouts = Array.from({ length: 90 }, (_, at) => {
  const place = PLACES[Math.floor(random() * PLACES.length)]!;
  const [step, task] = [1 + Math.floor(random() * 3), Math.floor(random() * 2)];
  // The last step has only hard ones.
  const hard = step === 3 && place.environment === 'acme/a' ? PLACES[2]! : place;
  return { id: randomUUID(), sample: at, step, task, reward: random() < 0.1 ? null : Math.round(random() * 4) / 4, failed: false, ...hard };
});
type Rollout = (typeof rollouts)[number] & { variant?: string };
const success = { threshold: 1, strict: false };
const figures = (one: Rollout): RolloutFigures => ({
  ...figuresOf(one),
  group: `${one.variant} ${one.step} ${one.task}`,
  turns: 1,
  calls: 0,
  callErrors: 0,
});
const at = (environment: string, step: number) =>
  rollouts.filter((one) => one.environment === environment && one.step === step).map(figures);

let server: TestServer;
const get = async (url: string) => (await server.request('GET', url)).body;
const eventsOf = (runName: string, { id, step, task, reward, environment, variant }: Rollout, knowsStep: boolean) => {
  const metadata = { phase: 'train', stop_reason: reward === null ? 'max_turns' : 'finished', group_id: `${step} ${task}` };
  const start = {
    eventType: 'rollout',
    eventId: id,
    timestamp: 1,
    runName,
    environment,
    variant,
    metadata,
    ...(knowsStep ? { step } : {}),
  };
  const message = { eventType: 'message', eventId: randomUUID(), rolloutEventId: id, timestamp: 1, index: 0, type: 'assistant_message' };
  return [start, { ...message, content: 'x', metadata: {}, ...(reward === null ? {} : { reward }) }];
};
beforeAll(async () => {
  server = await sharedServer();
  for (const [run, knowsStep] of [
    ['told', true],
    ['untold', false],
  ] as const) {
    const events = rollouts.flatMap((one) => eventsOf(run, knowsStep ? one : { ...one, id: randomUUID() }, knowsStep));
    const { status } = await server.request('POST', '/v1/rollouts', { body: { events } });
    if (status !== 200) throw new Error(`an upload was answered with ${status}`);
  }
});
afterAll(() => server?.close());

const METRICS = [
  'reward_mean',
  'reward_std',
  'reward_p25',
  'reward_p50',
  'pass@1',
  'pass@2',
  'groups',
  'success',
  'zero_variance',
  'truncated',
  'turns',
];

describe('curves of an environment of several variants', () => {
  it.each(['scored', 'all', 'effective'] as Denominator[])('are one curve per metric, of all its rollouts (%s)', async (denominator) => {
    for (const scope of ['by=env', 'env=acme/a', 'env=acme/a']) {
      const { series, incomplete } = await get(
        `/v1/runs/told/series?${METRICS.map((m) => `m=${m}`).join('&')}&den=${denominator}&${scope}`,
      );
      expect(incomplete).toBe(false);
      const environments = scope === 'by=env' ? ['acme/a', 'acme/b'] : ['acme/a'];
      expect(series.map(({ key, env }: any) => `${env} ${key}`).toSorted()).toEqual(
        environments.flatMap((env) => METRICS.map((m) => `${env} ${m}`)).toSorted(),
      );
      for (const { key, env, step, value, denominator: counted, of } of series) {
        expect(step).toEqual([1, 2, 3]);
        for (const [place, one] of step.entries()) {
          const figure = metric('canonical', key)!.compute(columnsOf(at(env, one)), { success, denominator }) as {
            value: number | null;
            denominator: number;
            of: number;
          };
          expect([counted[place], of[place]], `${env} ${key} ${one}`).toEqual([figure.denominator, figure.of]);
          if (figure.value === null) expect(value[place]).toBeNull();
          else expect(value[place], `${env} ${key} ${one}`).toBeCloseTo(figure.value, 12);
        }
      }
    }
  });

  it('count its rollouts once, and have every k of its groups', async () => {
    const { series } = await get('/v1/runs/told/series?m=reward_mean&env=acme/a&x=count');
    const counts = [1, 2, 3].map((step) => at('acme/a', step).length);
    expect(series.map(({ x }: any) => x)).toEqual([[counts[0], counts[0]! + counts[1]!, counts[0]! + counts[1]! + counts[2]!]]);
    const passes = (await get('/v1/runs/told/series?m=pass@{k}&env=acme/a')).series.map(({ key }: any) => key);
    expect(passes).toEqual(expect.arrayContaining(['pass@1', 'pass@2', 'pass@4']));
    expect(new Set(passes).size).toBe(passes.length);
  });

  it('are one curve where the step is not known, too', async () => {
    const { series } = await get('/v1/runs/untold/series?m=reward_p50&m=reward_mean&by=env');
    expect(series.map(({ key, env, axis }: any) => [env, key, axis]).toSorted()).toEqual(
      ['acme/a', 'acme/b'].flatMap((env) => ['reward_mean', 'reward_p50'].map((key) => [env, key, 'window'])),
    );
    for (const { env, key, denominator, value } of series) {
      const own = rollouts.filter(({ environment }) => environment === env).map(figures);
      const figure = metric('canonical', key)!.compute(columnsOf(own), { success }) as { value: number; denominator: number };
      // All arrived at once: in one window, or in two adjacent ones.
      expect(denominator.reduce((sum: number, one: number) => sum + one, 0)).toBe(figure.denominator);
      if (value.length === 1) expect(value[0]).toBeCloseTo(figure.value, 12);
    }
  });

  it('follow a trainer in its lens, like the summary, which counts steps', async () => {
    for (const [lens, m] of [
      ['trl', 'reward_std'],
      ['trl', 'frac_reward_zero_std'],
      ['skyrl', 'reward/avg_raw_reward'],
    ] as [Lens, string][]) {
      const { series } = await get(`/v1/runs/told/series?m=${m}&lens=${lens}&env=acme/a`);
      expect(series).toHaveLength(1);
      const { kpis } = await get(`/v1/runs/told/summary?lens=${lens}&env=acme/a&steps=2`);
      const figure = metric(lens, m)!.compute(columnsOf(at('acme/a', 2)), { success }) as { value: number };
      expect(series[0].value[1], `${lens} ${m}`).toBeCloseTo(figure.value, 12);
      expect(kpis.find(({ key }: any) => key === m)).toMatchObject({ value: series[0].value[1], steps: 1 });
    }
    const { kpis } = await get('/v1/runs/told/summary?env=acme/a');
    expect(Math.max(...kpis.map(({ steps }: any) => steps))).toBe(3);
    for (const key of ['reward_mean', 'reward_p50', 'pass@1']) expect(kpis.find((kpi: any) => kpi.key === key)).toMatchObject({ steps: 3 });
  });

  it('are recomputed when one of the variants changes', async () => {
    const mean = async () => {
      const [curve] = (await get('/v1/runs/told/series?m=reward_mean&m=reward_p50&env=acme/a')).series;
      return [curve.denominator[0], curve.value[0]];
    };
    const before = await mean();
    const late: Rollout = { ...rollouts[0]!, id: randomUUID(), step: 1, reward: 1, ...PLACES[2]! };
    expect(await server.request('POST', '/v1/rollouts', { body: { events: eventsOf('told', late, true) } })).toMatchObject({ status: 200 });
    const [count, value] = await mean();
    expect(count).toBe(before[0] + 1);
    expect(value).toBeCloseTo((before[1] * before[0] + 1) / count, 12);
  });
});
