import { type Denominator, PHASES } from '@palestra/protocol';
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { advantages, avgInterval, metric, passAtK, rewardMean, zeroVariance } from '../../../libs/metrics/src/index.ts';
import { sharedServer, type TestServer } from '../../support/server.ts';
import { asAnswered, columnsFrom, seeded, strangerOf, upload } from './run-reads.world.ts';

const RUN = 'reads/of a run';
const path = (rest: string, run = RUN) => `/v1/runs/${encodeURIComponent(run)}/${rest}`;
const rollouts = seeded(RUN);
const columns = columnsFrom(rollouts);
const ofStep = (step: number) => columnsFrom(rollouts.filter((one) => one.step === step));
/** Runs of the organisation $1. */
const OF_ORG = `(SELECT u.seq FROM runs u JOIN organisations o ON o.id = u.org_id WHERE o.name = $1)`;
const success = { threshold: 1, strict: false };

let server: TestServer;
let stranger: Record<string, string>;
const get = (url: string, headers = {}) => server.request('GET', url, { headers });
const curve = async (rest: string) => (await get(path(`series?${rest}`))).body.series;

beforeAll(async () => {
  server = await sharedServer();
  stranger = await strangerOf(server);
  await upload(server, RUN, rollouts);
});
afterAll(() => server.close());

describe('reads of a run reject', () => {
  const routes = ['series', 'summary', 'heatmap', 'facets', 'groups', 'tasks', 'tools', 'failures', 'config', 'search?q=fox', 'rollouts'];

  it.each(routes)('%s without a key, and for unknown runs and runs of others', async (route) => {
    expect(await get(path(route), { 'x-api-key': '' })).toMatchObject({ status: 401, body: { code: 'unauthorized' } });
    expect(await get(path(route), stranger)).toMatchObject({ status: 404, body: { code: 'run_not_found' } });
    expect(await get(path(route, 'nobody'))).toMatchObject({ status: 404, body: { code: 'run_not_found' } });
  });

  it('unknown metrics, with the nearest one, and invalid ranges, environments and numbers', async () => {
    expect(await get(path('series?m=reward_maen'))).toMatchObject({
      status: 422,
      body: { code: 'invalid_query', detail: [{ suggestion: 'reward_mean' }] },
    });
    for (const bad of [
      'series?steps=a..b',
      'series?lens=nobody',
      'summary?den=some',
      'heatmap?bins=7',
      'series?max=1',
      'summary?env=acme/chess',
    ])
      expect(await get(path(bad))).toMatchObject({ status: 422, body: { code: 'invalid_body' } });
  });
});

describe('series', () => {
  it('are the canonical figures of every step, with denominators and provenance', async () => {
    const [series] = await curve('m=reward_mean');
    const figures = [0, 1, 2, 3].map((step) => rewardMean(ofStep(step), { success }));
    expect(series).toMatchObject({ lens: 'canonical', den: 'effective', phase: 'train', env: null, step: [0, 1, 2, 3], x: [0, 1, 2, 3] });
    expect(series.value).toEqual(asAnswered(figures.map(({ value }) => value)));
    expect(series.denominator).toEqual(figures.map(({ denominator }) => denominator));
    expect(series.provenance).toEqual(Array.from({ length: 4 }, () => expect.stringMatching(/^(parsed|reported|unknown)$/)));
  });

  it.each(['all', 'scored', 'effective'] as Denominator[])('count %s on request, and note null as 0', async (denominator) => {
    for (let round = 0; round < 2; round += 1) {
      const [series] = await curve(`m=reward_mean&den=${denominator}`);
      expect(series.value).toEqual(asAnswered([0, 1, 2, 3].map((step) => rewardMean(ofStep(step), { success, denominator }).value)));
      expect(series.notes.length > 0).toBe(denominator === 'all');
    }
  });

  it('accept trainers’ names and any k, and store the figures until the step changes', async () => {
    const names = ['reward/avg_raw_reward', 'pass@3', 'pass@{k}'];
    const series = await curve(names.map((m) => `m=${encodeURIComponent(m)}`).join('&'));
    const skyrl = metric('skyrl', 'reward/avg_raw_reward')!;
    expect(series[0]).toMatchObject({ lens: 'skyrl', den: null, key: 'reward/avg_raw_reward' });
    expect(series[0].value).toEqual(asAnswered([0, 1, 2, 3].map((step) => (skyrl.compute(ofStep(step)) as { value: number }).value)));
    expect(series[1].value).toEqual(asAnswered([0, 1, 2, 3].map((step) => passAtK(ofStep(step), 3, { success }).value)));
    expect(series.slice(2).map(({ key }: { key: string }) => key)).toEqual(['pass@1', 'pass@2', 'pass@4']);
    const { rows: kept } = await server.database.pool.query(
      `SELECT figures->'lenses' AS lenses FROM step_rollups WHERE env_id = 0 AND run_seq IN ${OF_ORG} ORDER BY step`,
      [server.orgName],
    );
    expect(Object.keys(kept[0].lenses)).toEqual(expect.arrayContaining(['skyrl@2/effective', 'canonical/effective']));
  });

  it('are recomputed where an earlier revision of a lens stored them', async () => {
    const key = 'all/solved_none';
    await server.database.pool.query(
      `UPDATE step_rollups SET figures = figures || jsonb_build_object('lenses', COALESCE(figures->'lenses', '{}') || $2::jsonb)
       WHERE env_id = 0 AND run_seq IN ${OF_ORG}`,
      [server.orgName, JSON.stringify({ 'prime-rl/scored': { [key]: [7, 4, 4] } })],
    );
    const [series] = await curve(`m=${encodeURIComponent(key)}&lens=prime-rl`);
    const definition = metric('prime-rl', key)!;
    expect(series.value).toEqual(asAnswered([0, 1, 2, 3].map((step) => (definition.compute(ofStep(step)) as { value: number }).value)));
  });

  it('have points over time and rollouts, by environment, and by range of steps', async () => {
    expect((await curve('x=count'))[0].x).toEqual([12, 24, 36, 48]);
    expect((await curve('x=time'))[0].x.every((at: number) => Math.abs(at - Date.now()) < 300_000)).toBe(true);
    expect((await curve('by=env')).map(({ env }: { env: string }) => env)).toEqual(['acme/math']);
    expect((await curve('env=acme%2Fmath&steps=1..2'))[0].step).toEqual([1, 2]);
  });
});

describe('summary', () => {
  it('merges steps into the figures of all their rollouts', async () => {
    const { body } = await get(path('summary'));
    const kpi = (key: string) => body.kpis.find((one: { key: string }) => one.key === key);
    expect(body).toMatchObject({ rollouts: 48, groups: 12, steps: { from: 0, to: 3, count: 4 }, incomplete: false });
    expect(kpi('reward_mean').value).toBeCloseTo(rewardMean(columns, { success }).value!, 12);
    for (const k of [1, 2, 4]) expect(kpi(`pass@${k}`)).toMatchObject({ denominator: passAtK(columns, k, { success }).denominator });
    for (const k of [1, 2, 4]) expect(kpi(`pass@${k}`).value).toBeCloseTo(passAtK(columns, k, { success }).value!, 12);
    expect(kpi('zero_variance').value).toBeCloseTo(zeroVariance(columns, { success }).value!, 12);
    const { low, high } = avgInterval(columns, { success })!;
    expect(kpi('avg@n').low).toBeCloseTo(low, 9);
    expect(kpi('avg@n').high).toBeCloseTo(high, 9);
  });

  it('has advisories with the query for their rollouts', async () => {
    const { advisories } = (await get(path('summary'))).body;
    const errors = rollouts.filter(({ failed }) => failed).length;
    const found = advisories.find(({ rule }: { rule: string }) => rule === 'tool_error');
    expect(found).toMatchObject({ value: asAnswered(errors / 48), q: 'has:error' });
    expect((await get(path(`rollouts?q=${encodeURIComponent(found.q)}`))).body.total).toBe(errors);
  });

  it('has the figures of another lens, from what it prints at each step', async () => {
    const { body } = await get(path('summary?lens=trl&steps=2'));
    const expected = metric('trl', 'reward')!.compute(ofStep(2)) as { value: number };
    expect(body.kpis.find(({ key }: { key: string }) => key === 'reward')).toMatchObject({ value: asAnswered(expected.value), steps: 1 });
  });
});

describe('heatmap', () => {
  it.each(['reward', 'turns', 'tokens'])('of %s counts every rollout with a value', async (y) => {
    const { body } = await get(path(`heatmap?y=${y}&bins=25`));
    expect(body.from).toEqual([0, 1, 2, 3]);
    expect(body.edges).toHaveLength(26);
    const counted = (step: number) => body.counts[step].reduce((a: number, b: number) => a + b, 0);
    const scored = (step: number) => ofStep(step).reward.filter((reward) => reward !== null).length;
    expect([0, 1, 2, 3].map(counted)).toEqual([0, 1, 2, 3].map((step) => (y === 'reward' ? scored(step) : 12)));
  });
});

describe('groups and tasks', () => {
  it('contain the rollouts of one task at one step, with both advantages', async () => {
    const { groups } = (await get(path('groups?steps=2'))).body;
    expect(groups).toHaveLength(3);
    for (const group of groups) {
      const own = rollouts.filter(({ step, task }) => step === 2 && task === group.task.index);
      const known = asAnswered(advantages(own.map(({ reward }) => reward)));
      const { body } = await get(path(`groups/${group.key}`));
      expect(body).toMatchObject({ received: 4, expected: 4, complete: true, missing: 0, step: 2, environment: 'acme/math' });
      expect(body.rollouts.map(({ id }: { id: string }) => id)).toEqual(own.map(({ id }) => id));
      for (const [at, { advantage, advantage_centred }] of body.rollouts.entries())
        expect({ advantage, advantage_centred }).toEqual({
          advantage: known[at]?.normalised ?? null,
          advantage_centred: known[at]?.centred ?? null,
        });
    }
    expect(await get(path('groups/12345'))).toMatchObject({ status: 404, body: { code: 'group_not_found' } });
    expect(await get(path('groups/x'))).toMatchObject({ status: 404, body: { code: 'group_not_found' } });
  });

  it.each(['step', 'mean', 'std', 'n'])('sorted by %s have pages without duplicates or gaps', async (sort) => {
    const seen: string[] = [];
    let cursor = '';
    for (let page = 0; page < 10; page += 1) {
      const { body } = await get(path(`groups?sort=${sort}&limit=5${cursor && `&cursor=${cursor}`}`));
      seen.push(...body.groups.map(({ key }: { key: string }) => key));
      if (body.next === null) break;
      cursor = body.next;
    }
    expect(seen).toHaveLength(12);
    expect(new Set(seen).size).toBe(12);
    expect(await get(path(`groups?sort=${sort}&cursor=AAAA`))).toMatchObject({ status: 400, body: { code: 'invalid_cursor' } });
  });

  it('are found by a query for their rollouts, and reject an invalid query', async () => {
    const failed = new Set(rollouts.filter(({ failed: is }) => is).map(({ step, task }) => `${step}-${task}`));
    expect((await get(path('groups?q=has%3Aerror'))).body.groups).toHaveLength(failed.size);
    expect(await get(path('groups?q=rewrad%3A1'))).toMatchObject({
      status: 422,
      body: { code: 'invalid_query', detail: [{ suggestion: 'reward' }] },
    });
  });

  it('show the solve rates of each task', async () => {
    const { tasks, next } = (await get(path('tasks?limit=2'))).body;
    expect(tasks).toHaveLength(2);
    const rest = (await get(path(`tasks?limit=2&cursor=${next}`))).body;
    expect(
      [...tasks, ...rest.tasks].map(({ task }: { task: { index: number } }) => task.index).toSorted((a: number, b: number) => a - b),
    ).toEqual([0, 1, 2]);
    const [{ task, solve, step }] = tasks;
    expect(step).toEqual([0, 1, 2, 3]);
    const solved = (at: number) =>
      rollouts.filter((one) => one.step === at && one.task === task.index && one.reward !== null).map(({ reward }) => reward!);
    expect(solve).toEqual(asAnswered([0, 1, 2, 3].map((at) => solved(at).reduce((a, b) => a + b, 0) / solved(at).length)));
    expect((await get(path(`tasks/${task.id}`))).body.groups).toHaveLength(4);
    expect(await get(path('tasks/0'))).toMatchObject({ status: 404, body: { code: 'task_not_found' } });
  });
});

describe('tools, failures, facets and ingest', () => {
  const errors = rollouts.filter(({ failed }) => failed);

  it('count calls and failures', async () => {
    const { tools } = (await get(path('tools'))).body;
    expect(tools).toMatchObject([{ tool: 'add', rollouts: 48, calls: 48, errors: errors.length, latency: { timed: 0, coverage: 0 } }]);
    const { failures } = (await get(path('failures'))).body;
    const cluster = failures.find(({ error }: { error: string | null }) => error === 'ValueError: no number <n> at <address>');
    expect(cluster).toMatchObject({ tool: 'add', count: errors.length });
    expect(errors.map(({ id }) => id)).toContain(cluster.example.id);
  });

  it('never have more failed results than results', async () => {
    const id = randomUUID();
    const message = { eventType: 'message', rolloutEventId: id, timestamp: 1, metadata: { is_error: true } };
    // A client with one event per message sends only the first of two calls of a turn.
    const said = [
      { type: 'tool_call', name: 'add', callId: 'a', content: '{}', metadata: {} },
      { type: 'tool_result', callId: 'a', content: 'Error' },
      { type: 'tool_result', callId: 'b', content: 'Error' },
    ].map((one, index) => ({ ...message, eventId: randomUUID(), index, ...one }));
    const start = { eventType: 'rollout', eventId: id, timestamp: 1, runName: 'half told', environment: 'acme/math', step: 1 };
    expect(await server.request('POST', '/v1/rollouts', { body: { events: [start, ...said] } })).toMatchObject({ status: 200 });
    const { kpis } = (await get(path('summary', 'half told'))).body;
    expect(kpis.find(({ key }: { key: string }) => key === 'tool_error')).toMatchObject({ value: 1, denominator: 2, of: 2 });
    expect(kpis.find(({ key }: { key: string }) => key === 'calls')).toMatchObject({ value: 2, denominator: 1 });
    expect((await get(path('rollouts?q=calls:2', 'half told'))).body).toMatchObject({ total: 1, rollouts: [{ id }] });
  });

  it('count the values of a query’s rollouts', async () => {
    const all = (await get(path('facets'))).body;
    expect(all).toMatchObject({
      total: 48,
      total_is: 'exact',
      env: [{ value: 'acme/math', count: 48 }],
      tool: [{ value: 'add', count: 48 }],
      step: { min: 0, max: 3 },
    });
    const some = (await get(path('facets?q=step%3A1%20has%3Aerror'))).body;
    expect(some.total).toBe(errors.filter(({ step }) => step === 1).length);
    expect(all.tool_error).toEqual([{ value: 'add', count: errors.length }]);
    expect(all.provenance.step).toEqual({ unknown: 0, inferred: 0, parsed: 0, reported: 48 });
    expect(all.policy_step).toEqual({ min: null, max: null });
  });

  it('count phases under names that a query accepts, including the unknown one', async () => {
    const events = [...PHASES, 'unknown'].map((phase) => {
      const metadata = phase === 'unknown' ? {} : { phase };
      return { eventType: 'rollout', eventId: randomUUID(), timestamp: 1, runName: 'phases', environment: 'acme/math', step: 1, metadata };
    });
    expect(await server.request('POST', '/v1/rollouts', { body: { events } })).toMatchObject({ status: 200 });
    const { phase } = (await get(path('facets', 'phases'))).body;
    expect(phase).toHaveLength(PHASES.length);
    for (const { value, count } of phase) {
      expect(count).toBe(value === 'unknown' ? 2 : 1);
      expect((await get(path(`rollouts?q=phase:${value}`, 'phases'))).body).toMatchObject({ total: count });
      expect((await get(path(`rollouts?q=-phase:${value}`, 'phases'))).body).toMatchObject({ total: events.length - count });
    }
    expect(
      (await get(path(`rollouts?q=${encodeURIComponent('(phase:unknown name:null OR name:/x/)')}`, 'phases'))).body.rollouts,
    ).toHaveLength(2);
  });

  it('count rewards in bins whose edges a query accepts', async () => {
    const { reward } = (await get(path('facets'))).body;
    const known = rollouts.flatMap((row) => (row.reward === null ? [] : [row.reward]));
    expect(new Set(known).size).toBeGreaterThan(1);
    expect(reward.bins.length).toBeGreaterThan(1);
    for (const { from, below, count } of reward.bins) {
      expect(count).toBe(known.filter((value) => from <= value && value < below).length);
      const { total } = (await get(path(`rollouts?q=${encodeURIComponent(`reward:>=${from} reward:<${below}`)}&limit=1`))).body;
      expect(total).toBe(count);
    }
    expect(reward.bins.reduce((sum: number, { count }: { count: number }) => sum + count, reward.unscored)).toBe(48);
    const one = (await get(path(`facets?q=${encodeURIComponent(`reward:${known[0]}`)}`))).body;
    expect(one.reward).toMatchObject({ min: known[0], max: known[0], bins: [] });
  });

  it('report ingest and provenance', async () => {
    const { body } = await get(path('config'));
    expect(body).toMatchObject({
      rollouts: 48,
      messages: 192,
      gaps: 0,
      looked_at: 48,
      provenance: { step: { reported: 48 } },
      settings: {},
    });
    expect(body.success).toEqual([{ environment: 'acme/math', variant: null, threshold: 1, strict: false }]);
  });
});

describe('freshness', () => {
  it('is a weak ETag that is valid until an event arrives', async () => {
    const first = await get(path('summary'));
    const tag = first.headers.get('etag')!;
    expect(tag).toMatch(/^W\/"/);
    expect(Date.parse(first.headers.get('x-data-as-of')!)).toBeGreaterThan(Date.now() - 300_000);
    // The answer depends on ages of ten seconds; the second attempt cannot cross the limit again.
    const again = async () => {
      const { headers } = await get(path('summary'));
      return (await get(path('summary'), { 'if-none-match': headers.get('etag')! })).status;
    };
    expect([await again(), await again()]).toContain(304);
    const other = seeded('another');
    await upload(server, RUN, [{ ...other[0]!, step: 9 }]);
    const { headers } = await get(path('summary'));
    expect(headers.get('etag')).not.toBe(tag);
    expect(await get(path('summary'), { 'if-none-match': tag })).toMatchObject({ status: 200, body: { rollouts: 49 } });
  });
});
