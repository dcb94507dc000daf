import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { studentInterval } from '../../../libs/metrics/src/index.ts';
import { sharedServer, type TestServer } from '../../support/server.ts';
import { asAnswered, eventsOf, type Seeded, seeded, strangerOf, upload } from './run-reads.world.ts';

const [A, B, C] = ['compare/a', 'compare, b', 'compare/c'] as const;
const runs: Record<string, Seeded[]> = {
  [A]: seeded(A, { tasks: 7 }),
  [B]: seeded(B, { tasks: 5 }),
  [C]: seeded(C, { steps: 2, tasks: 6 }),
};
const ARGUMENTS = {
  type: 'object',
  properties: { a: { type: 'integer', maximum: 2 }, b: { type: 'integer' } },
  required: ['a', 'b'],
};

let server: TestServer;
let stranger: Record<string, string>;
const get = (url: string, headers = {}) => server.request('GET', url, { headers });
const list = (names: readonly string[]) => names.map((name) => `runs=${encodeURIComponent(name)}`).join('&');
const tasksOf = async (query: string) => (await get(`/v1/compare/tasks?${query}`)).body;

/** The mean reward of the scored rollouts of each task, computed directly. */
function meansOf(
  name: string,
  keep: (one: Seeded) => boolean = () => true,
): Map<number, { mean: number; scored: number; successes: number }> {
  const means = new Map<number, { mean: number; scored: number; successes: number }>();
  for (const task of new Set(runs[name]!.map((one) => one.task))) {
    const rewards = runs[name]!.filter((one) => one.task === task && keep(one)).flatMap(({ reward }) => reward ?? []);
    if (rewards.length > 0)
      means.set(task, {
        mean: rewards.reduce((a, b) => a + b, 0) / rewards.length,
        scored: rewards.length,
        successes: rewards.filter((reward) => reward >= 1).length,
      });
  }
  return means;
}

beforeAll(async () => {
  server = await sharedServer();
  stranger = await strangerOf(server);
  const discovery = {
    variants: [
      { name: 'math', is_default: true, splits: [], tools: { tools: [{ name: 'add', description: '', input_schema: ARGUMENTS }] } },
    ],
    discovered_at: new Date().toISOString(),
  };
  await server.database.pool.query(
    `WITH e AS (INSERT INTO environments (owner, name, updated_at) VALUES ('acme', 'math', now()) RETURNING id)
     INSERT INTO environment_versions (environment_id, number, source_kind, source_url, discovery) SELECT id, 1, 'remote', 'http://127.0.0.1:9', $1 FROM e`,
    [JSON.stringify(discovery)],
  );
  for (const [name, rollouts] of Object.entries(runs)) await upload(server, name, rollouts);
});
afterAll(async () => {
  // The name is public: other files upload rollouts of it.
  await server.database.pool.query(`DELETE FROM environments WHERE owner = 'acme' AND name = 'math'`);
  await server.close();
});

describe('comparing runs by task', () => {
  it('rejects a missing key, runs of others, one run, five runs, and an `against` without a run', async () => {
    const url = `/v1/compare/tasks?${list([A, B])}`;
    expect(await get(url, { 'x-api-key': '' })).toMatchObject({ status: 401, body: { code: 'unauthorized' } });
    expect(await get(url, stranger)).toMatchObject({ status: 404, body: { code: 'run_not_found' } });
    expect(await get(`/v1/compare/tasks?${list([A, 'nobody'])}`)).toMatchObject({ status: 404, body: { code: 'run_not_found' } });
    for (const bad of [list([A]), list([A, B, C, A, B]), `${list([A, B])}&sort=name`])
      expect(await get(`/v1/compare/tasks?${bad}`)).toMatchObject({ status: 422, body: { code: 'invalid_body' } });
    expect(await get(`${url}&against=2`)).toMatchObject({ status: 400, body: { code: 'invalid_request' } });
    expect(await get(`${url}&cursor=x`)).toMatchObject({ status: 400, body: { code: 'invalid_cursor' } });
  });

  it('returns the tasks that all runs scored, with paired differences and their interval', async () => {
    const names = [A, B, C];
    const answer = await tasksOf(list(names));
    // Run C has two steps; others are compared on these.
    const means = names.map((name) => meansOf(name, ({ step }) => step < 2));
    const common = [...means[0]!.keys()].filter((task) => means.every((own) => own.has(task)));
    expect(answer).toMatchObject({
      phase: 'train',
      den: 'effective',
      common: common.length,
      steps: { common: true, from: 0, to: 1 },
      next: null,
    });
    const all = await tasksOf(`${list(names)}&steps=all`);
    expect(all.tasks[0].runs[0]).toEqual(asAnswered(meansOf(A).get(all.tasks[0].task.index)));
    expect(answer.runs.map(({ name, tasks }: { name: string; tasks: number }) => [name, tasks])).toEqual(
      names.map((name, i) => [name, means[i]!.size]),
    );
    expect(answer.tasks.map(({ task }: { task: { index: number } }) => task.index).toSorted((a: number, b: number) => a - b)).toEqual(
      common.toSorted((a: number, b: number) => a - b),
    );
    for (const { task, runs: cells } of answer.tasks) expect(cells).toEqual(asAnswered(means.map((own) => own.get(task.index))));
    for (const [i, pair] of answer.pairs.entries()) {
      const deltas = common.map((task) => means[i + 1]!.get(task)!.mean - means[0]!.get(task)!.mean);
      const interval = studentInterval(deltas)!;
      expect(pair.mean).toBeCloseTo(deltas.reduce((a, b) => a + b, 0) / deltas.length, 12);
      expect([pair.low, pair.high]).toEqual([expect.closeTo(interval.low, 12), expect.closeTo(interval.high, 12)]);
      expect(pair).toMatchObject({
        run: answer.runs[i + 1].id,
        better: deltas.filter((delta) => delta > 0).length,
        worse: deltas.filter((delta) => delta < 0).length,
      });
      expect(pair.better + pair.worse + pair.equal).toBe(common.length);
    }
  });

  it('filters by steps and by phase', async () => {
    const { tasks } = await tasksOf(`${list([A, B])}&steps=2..3`);
    const late = meansOf(A, ({ step }) => step >= 2);
    expect(tasks.length).toBeGreaterThan(0);
    for (const { task, runs: cells } of tasks) expect(cells[0]).toEqual(asAnswered(late.get(task.index)));
    expect(await tasksOf(`${list([A, B])}&phase=eval`)).toMatchObject({
      phase: 'eval',
      common: 0,
      tasks: [],
      pairs: [{ mean: null, low: null }],
    });
  });

  it('counts by denominator, and filters by environment', async () => {
    const other = 'acme/other';
    const one = (task: number, more: object, reward: number | null) => {
      const rollout = randomUUID();
      const [start, ...rest] = eventsOf('broken', { id: rollout, step: 0, task, sample: 0, reward, failed: false }) as Record<
        string,
        object
      >[];
      return [{ ...start, ...more, metadata: { ...start!['metadata'], ...(more as { metadata?: object }).metadata } }, ...rest];
    };
    const aborted = { metadata: { stop_reason: 'aborted' } };
    const events = [one(0, {}, 1), one(0, aborted, 0), one(0, {}, null), one(1, aborted, 1), one(2, { environment: other }, 1)].flat();
    events.push(...[one(3, aborted, 1), one(3, {}, 0)].flat());
    await server.request('POST', '/v1/rollouts', { body: { events } });
    const cells = async (query: string) =>
      Object.fromEntries(
        (await tasksOf(`${list(['broken', 'broken'])}&${query}`)).tasks.map((row: any) => [
          row.task.index,
          [row.runs[0].mean, row.runs[0].scored, row.runs[0].successes],
        ]),
      );
    expect(await cells('den=scored')).toEqual({ 0: [0.5, 2, 1], 1: [1, 1, 1], 2: [1, 1, 1], 3: [0.5, 2, 1] });
    expect(await cells('den=all')).toEqual({ 0: [expect.closeTo(1 / 3, 11), 3, 1], 1: [1, 1, 1], 2: [1, 1, 1], 3: [0.5, 2, 1] });
    for (const by of ['', 'den=effective']) expect(await cells(by)).toEqual({ 0: [1, 1, 1], 2: [1, 1, 1], 3: [0, 1, 0] });
    expect(await cells(`env=${other}`)).toEqual({ 2: [1, 1, 1] });
    expect(await cells('env=acme/math&den=effective')).toEqual({ 0: [1, 1, 1], 3: [0, 1, 0] });
    // With another threshold all rollouts succeed, or none.
    for (const [successThreshold, all] of [
      [0, true],
      [2, false],
    ] as const) {
      await server.request('PATCH', '/v1/runs/broken', { body: { settings: { successThreshold } } });
      const of = all ? 1 : 0;
      expect(await cells('den=effective')).toEqual({ 0: [1, 1, of], 2: [1, 1, of], 3: [0, 1, of] });
    }
    expect(await cells('env=acme/nothing')).toEqual({});
    expect(await get(`/v1/compare/tasks?${list([A, B])}&den=some`)).toMatchObject({ status: 422 });
  });

  it.each(['size', 'delta', 'first', 'other'])('sorts by %s over pages without repeats', async (sort) => {
    const of = (cells: { mean: number }[]) =>
      ({
        size: Math.abs(cells[2]!.mean - cells[0]!.mean),
        delta: cells[2]!.mean - cells[0]!.mean,
        first: cells[0]!.mean,
        other: cells[2]!.mean,
      })[sort]!;
    for (const order of ['asc', 'desc']) {
      const seen: { task: { id: string }; runs: { mean: number }[] }[] = [];
      let cursor = '';
      do {
        const page = await tasksOf(`${list([A, B, C])}&against=2&sort=${sort}&order=${order}&limit=2${cursor && `&cursor=${cursor}`}`);
        seen.push(...page.tasks);
        cursor = page.next ?? '';
      } while (cursor !== '');
      expect(new Set(seen.map(({ task }) => task.id)).size).toBe(5);
      const values = seen.map(({ runs: cells }) => of(cells));
      for (const [i, value] of values.entries())
        if (i > 0) expect((order === 'asc' ? 1 : -1) * (value - values[i - 1]!)).toBeGreaterThanOrEqual(-1e-9);
    }
  });
});

describe('one tool of a run', () => {
  const path = (rest: string, run: string = A) => `/v1/runs/${encodeURIComponent(run)}/tools${rest}`;

  it('rejects a missing key, a run of others and a missing name', async () => {
    for (const route of ['/steps', '/check']) {
      expect(await get(path(`${route}?tool=add`), { 'x-api-key': '' })).toMatchObject({ status: 401 });
      expect(await get(path(`${route}?tool=add`), stranger)).toMatchObject({ status: 404, body: { code: 'run_not_found' } });
      expect(await get(path(route))).toMatchObject({ status: 422, body: { code: 'invalid_body' } });
    }
  });

  it('has counts by step', async () => {
    const { body } = await get(path('/steps?tool=add'));
    const at = (step: number) => runs[A]!.filter((one) => one.step === step);
    expect(body).toMatchObject({ tool: 'add', step: [0, 1, 2, 3], unknown_step: 0, timed: [0, 0, 0, 0], p50_ms: [null, null, null, null] });
    expect(body.calls).toEqual([0, 1, 2, 3].map((step) => at(step).length));
    expect(body.rollouts).toEqual(body.calls);
    expect(body.errors).toEqual([0, 1, 2, 3].map((step) => at(step).filter(({ failed }) => failed).length));
    expect((await get(path('/steps?tool=add&steps=1..2'))).body.step).toEqual([1, 2]);
    expect((await get(path('/steps?tool=nobody'))).body).toMatchObject({ step: [], calls: [] });
  });

  it('checks the newest calls against the schema that the environment publishes', async () => {
    let body: any;
    // A read that takes longer than two seconds says that it is incomplete.
    await expect.poll(async () => (body = (await get(path('/check?tool=add'))).body).incomplete).toBe(false);
    const broken = runs[A]!.filter(({ task }) => task > 2);
    expect(body).toMatchObject({
      calls: runs[A]!.length,
      rollouts: runs[A]!.length,
      checked: runs[A]!.length,
      invalid: broken.length,
      valid: runs[A]!.length - broken.length,
      unparsable: 0,
      without_schema: 0,
      violations: [{ path: '/a', rule: 'maximum', message: 'must be <= 2', count: broken.length }],
      schemas: [{ environment: 'acme/math', schema: ARGUMENTS }],
      incomplete: false,
    });
    expect(body.violations[0].examples).toHaveLength(5);
    expect(broken.map(({ id }) => id)).toContain(body.violations[0].examples[0].rollout);
    expect((await get(path('/check?tool=add&calls=10'))).body).toMatchObject({ calls: 10, checked: 10 });
  });

  it('marks a tool that the environment does not publish, and does not check it', async () => {
    const id = randomUUID();
    const message = (index: number, more: object) => ({
      eventType: 'message',
      eventId: randomUUID(),
      rolloutEventId: id,
      timestamp: 1,
      index,
      content: '',
      isFinished: false,
      metadata: {},
      ...more,
    });
    const start = {
      eventType: 'rollout',
      eventId: id,
      timestamp: 1,
      runName: C,
      step: 0,
      environment: 'acme/math',
      split: 'train',
      rolloutName: 'x',
    };
    const events = [
      { ...start, rollout_info: { task_index: 0 }, metadata: {} },
      message(0, { type: 'tool_call', name: 'divide/by', callId: '1', content: 'not json' }),
      message(1, { type: 'tool_call', name: 'add', callId: '2', content: '{"a":' }),
    ];
    expect(await server.request('POST', '/v1/rollouts', { body: { events } })).toMatchObject({ status: 200 });
    const { tools } = (await get(path('', C))).body;
    const named = (name: string) => tools.find(({ tool }: { tool: string }) => tool === name);
    expect(named('divide/by')).toMatchObject({ published: false, unpublished_in: ['acme/math'] });
    expect(named('add')).toMatchObject({ published: true, unpublished_in: [] });
    expect((await get(path('/check?tool=divide%2Fby', C))).body).toMatchObject({ calls: 1, checked: 0, without_schema: 1, violations: [] });
    const { violations, unparsable } = (await get(path('/check?tool=add', C))).body;
    expect(unparsable).toBe(1);
    expect(violations).toContainEqual({ path: '', rule: 'json', message: 'is not JSON', count: 1, examples: [{ rollout: id, index: 1 }] });
  });
});
