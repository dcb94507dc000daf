import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startServer, type TestServer } from '../../support/server.ts';
import { AlertEvaluator } from '../../../apps/api/src/alerts/alert-evaluator.ts';
import { createLogger } from '../../../apps/api/src/platform/telemetry/logger.ts';
import { settled } from '../../support/derived-rows.ts';
import { strangerOf } from '../runs/run-reads.world.ts';
import { postpone } from '../store/sealing.world.ts';
import { judgeNow, stepEvents, toolErrors, uploadStep } from './alerts.world.ts';

let server: TestServer;
beforeAll(async () => {
  server = await startServer();
}, 60_000);
afterAll(() => server.close());

const made = async (method: string, url: string, body?: unknown) => {
  const answer = await server.request(method, url, body === undefined ? {} : { body });
  expect({ url, status: answer.status, body: answer.status === 200 ? null : answer.body }).toMatchObject({ status: 200 });
  return answer.body;
};
/** The changes of an alert, oldest first. */
const changes = async (alert: string): Promise<[string, number | null][]> =>
  (await made('GET', `/v1/alert-events?alert=${alert}`)).events
    .toReversed()
    .map(({ kind, evidence }: { kind: string; evidence: { step: number } }) => [kind, evidence.step]);
const WITHIN = { timeout: 60_000, interval: 250 };
/** What a read returns after a round of judgements that begins soon. */
const judged =
  <T>(read: () => Promise<T>) =>
  async (): Promise<T> => {
    await judgeNow(server);
    return read();
  };
async function eventually(alert: string, expected: [string, number | null][]): Promise<void> {
  await expect
    .poll(
      judged(() => changes(alert)),
      WITHIN,
    )
    .toEqual(expected);
}

describe('refusals', () => {
  it.each([
    ['a share above one', { condition: { kind: 'metric', metric: 'success', op: 'above', value: 3 } }, 422, 'invalid_body'],
    ['a stop share without a stop', { condition: { kind: 'metric', metric: 'stop_share', op: 'above', value: 0.1 } }, 422, 'invalid_body'],
    [
      'a tool of another metric',
      { condition: { kind: 'metric', metric: 'success', tool: 'x', op: 'above', value: 0.1 } },
      422,
      'invalid_body',
    ],
    ['a wrong query', { condition: { kind: 'count', q: 'stop:never', minutes: 5, value: 1 } }, 422, 'invalid_query'],
    ['a regex', { condition: { kind: 'count', q: 'tool:/b.*/', minutes: 5, value: 1 } }, 422, 'invalid_query'],
    ['words of messages', { condition: { kind: 'count', q: '"I give up"', minutes: 5, value: 1 } }, 422, 'invalid_query'],
    ['an unknown baseline', { condition: { kind: 'baseline', run: 'never was' } }, 404, 'run_not_found'],
    ['an unknown webhook', { webhook: '00000000-0000-4000-8000-000000000000' }, 404, 'webhook_not_found'],
  ])('%s', async (_name, change, status, code) => {
    expect(await server.request('POST', '/v1/alerts', { body: toolErrors(change) })).toMatchObject({ status, body: { code } });
  });

  it('another organisation sees and changes nothing', async () => {
    const { id } = await made('POST', '/v1/alerts', toolErrors({ name: 'ours', runs: 'nothing' }));
    const headers = await strangerOf(server);
    for (const [method, url, body] of [
      ['GET', `/v1/alerts/${id}`],
      ['DELETE', `/v1/alerts/${id}`],
      ['PUT', `/v1/alerts/${id}`, toolErrors()],
    ] as const)
      expect(await server.request(method, url, { headers, body })).toMatchObject({ status: 404, body: { code: 'alert_not_found' } });
    expect((await server.request('GET', '/v1/alerts', { headers })).body.alerts).toEqual([]);
    const webhook = await made('POST', '/v1/webhooks', { name: 'ours', url: 'http://127.0.0.1:1/' });
    const at = `/v1/webhooks/${webhook.id}`;
    for (const [method, url] of [
      ['GET', `${at}/deliveries`],
      ['POST', `${at}/test`],
      ['POST', `${at}/deliveries/${webhook.id}/redeliver`],
    ] as const)
      expect(await server.request(method, url, { headers })).toMatchObject({ status: 404, body: { code: 'webhook_not_found' } });
    const theirs = toolErrors({ webhook: webhook.id });
    expect(await server.request('POST', '/v1/alerts', { headers, body: theirs })).toMatchObject({ body: { code: 'webhook_not_found' } });
    await made('DELETE', at);
    await made('DELETE', `/v1/alerts/${id}`);
  });

  it('an organisation has a limit of alerts', async () => {
    const limited = await startServer({ limits: { ...server.config.limits, alerts: { key: Infinity, org: 1 } } });
    try {
      expect(await limited.request('POST', '/v1/alerts', { body: toolErrors() })).toMatchObject({ status: 200 });
      expect(await limited.request('POST', '/v1/alerts', { body: toolErrors() })).toMatchObject({ body: { code: 'limit_reached' } });
    } finally {
      await limited.close();
    }
  });
});

it('a step alert fires once, is resolved once, and its preview agrees', async () => {
  const run = 'grpo-1';
  const { id } = await made('POST', '/v1/alerts', toolErrors({ runs: 'grpo-*' }));
  await uploadStep(server, run, { step: 0 });
  await uploadStep(server, run, { step: 1, failed: 10 });
  await uploadStep(server, run, { step: 2, failed: 8 });
  // By the rounds of the service itself; later ones begin sooner.
  await expect.poll(() => changes(id), WITHIN).toEqual([['firing', 1]]);
  expect((await made('GET', `/v1/runs/${run}/alerts`)).firing).toMatchObject([
    { alert: { id }, evidence: { q: expect.stringContaining('tool.error:accuse') } },
  ]);
  // Too few results are not judged.
  await uploadStep(server, run, { step: 3, n: 3 });
  await uploadStep(server, run, { step: 4, failed: 1 });
  await eventually(id, [
    ['firing', 1],
    ['resolved', 4],
  ]);
  expect((await made('GET', `/v1/runs/${run}/alerts`)).firing).toEqual([]);
  const { condition } = await made('GET', `/v1/alerts/${id}`);
  const preview = await made('POST', '/v1/alerts/preview', { run, condition });
  expect(preview).toMatchObject({
    judged: 4,
    skipped: 1,
    fired: 1,
    firing_now: false,
    fires: [{ step: 1, evidence: { value: 0.5, n: 20 } }],
  });
  // The query of the evidence finds the rollouts.
  const { rollouts } = await made('GET', `/v1/runs/${run}/rollouts?q=${encodeURIComponent(preview.fires[0].evidence.q)}`);
  expect(rollouts).toHaveLength(10);
  const news = await made('GET', '/v1/alert-events');
  expect(news.unread).toBe(2);
  expect(await made('POST', '/v1/alert-events/read', { until: news.events[0].id })).toEqual({ unread: 0 });
}, 120_000);

it('an alert on an old run judges its newest step and not its history, and a muted one notifies nobody', async () => {
  const run = 'old';
  await uploadStep(server, run, { step: 0, failed: 20 });
  await uploadStep(server, run, { step: 1, failed: 20 });
  await uploadStep(server, run, { step: 2 });
  // The newest step whose rollouts are derived is judged.
  await settled(server.database.pool);
  const { unread } = await made('GET', '/v1/alert-events');
  const { id } = await made('POST', '/v1/alerts', toolErrors({ runs: run, muted: true }));
  await expect
    .poll(
      judged(async () => (await server.database.pool.query('SELECT step FROM alert_states WHERE alert_id = $1', [id])).rows),
      WITHIN,
    )
    .toEqual([{ step: 2 }]);
  expect(await changes(id)).toEqual([]);
  await uploadStep(server, run, { step: 3, failed: 20 });
  await eventually(id, [['firing', 3]]);
  expect((await made('GET', '/v1/alert-events')).unread).toBe(unread);
}, 120_000);

it('a changed condition begins again', async () => {
  const run = 'changed';
  const { id } = await made('POST', '/v1/alerts', toolErrors({ runs: run }));
  await uploadStep(server, run, { step: 0, failed: 20 });
  await eventually(id, [['firing', 0]]);
  const renamed = await made('PUT', `/v1/alerts/${id}`, toolErrors({ name: 'another name', runs: run }));
  expect(renamed.firing).toHaveLength(1);
  const { condition } = toolErrors();
  expect((await made('PUT', `/v1/alerts/${id}`, toolErrors({ runs: run, condition: { ...condition, value: 1 } }))).firing).toEqual([]);
}, 120_000);

it('a run below its baseline fires at the same step, and equal runs do not', async () => {
  for (const step of [0, 1]) await uploadStep(server, 'baseline', { step });
  const condition = { kind: 'baseline', run: 'baseline' };
  const { id } = await made('POST', '/v1/alerts', { name: 'below', runs: 'candidate-*', condition });
  await uploadStep(server, 'candidate-1', { step: 0 });
  await uploadStep(server, 'candidate-1', { step: 1, reward: 0.2 });
  await eventually(id, [['firing', 1]]);
  const [event] = (await made('GET', `/v1/alert-events?alert=${id}`)).events;
  expect(event.evidence).toMatchObject({ value: -0.8, threshold: 0, text: expect.stringContaining('.200 at step 1, 1.00 in baseline') });
  expect(await made('POST', '/v1/alerts/preview', { run: 'baseline', condition })).toMatchObject({ fired: 0, judged: 2 });
}, 120_000);

it('a step that the baseline reaches after the run fires too', async () => {
  await uploadStep(server, 'slow baseline', { step: 0 });
  const { id } = await made('POST', '/v1/alerts', {
    name: 'below a slow one',
    runs: 'fast',
    condition: { kind: 'baseline', run: 'slow baseline' },
  });
  for (const step of [0, 1]) await uploadStep(server, 'fast', { step, reward: 1 - step });
  // Judged without step 1, which the baseline has not reached.
  const states = 'SELECT step, version >= 0 AS complete FROM alert_states WHERE alert_id = $1';
  await expect
    .poll(
      judged(async () => (await server.database.pool.query(states, [id])).rows),
      WITHIN,
    )
    .toEqual([{ step: 0, complete: true }]);
  await uploadStep(server, 'slow baseline', { step: 1 });
  await eventually(id, [['firing', 1]]);
}, 120_000);

it('an alert on an environment judges its rollouts alone, all variants together', async () => {
  const run = 'mixed';
  const on = (environment: string, condition: object) =>
    made('POST', '/v1/alerts', { name: 'mixed', runs: 'mixed*', condition: { ...condition, environment } });
  const errors = { kind: 'metric', metric: 'tool_error', tool: 'accuse', op: 'above', value: 0.6 };
  const rewards = { kind: 'metric', metric: 'reward_mean', op: 'below', value: 0.3 };
  const counted = { kind: 'count', q: 'has:error', minutes: 60, value: 19 };
  const conditions = [errors, rewards, counted];
  const math = await Promise.all(conditions.map((condition) => on('acme/math', condition)));
  const whodunit = await Promise.all(conditions.map((condition) => on('acme/whodunit', condition)));
  expect(math.map(({ condition_text: text }) => text)).toEqual([
    'Tool errors of accuse in acme/math above 60 % at a step',
    'Mean reward in acme/math below .300 at a step',
    'More than 19 rollouts of has:error in acme/math within 60 min',
  ]);
  // Neither variant has enough rollouts alone, and both environments together are below the threshold.
  for (const variant of ['easy', 'hard'])
    await uploadStep(server, run, { step: 0, n: 10, failed: 10, reward: 0.2, environment: 'acme/math', variant });
  await uploadStep(server, run, { step: 0, n: 30 });
  for (const [at, step] of [0, 0, null].entries()) await eventually(math[at].id, [['firing', step]]);
  const [event] = (await made('GET', `/v1/alert-events?alert=${math[0].id}`)).events;
  expect(event.evidence).toMatchObject({ value: 1, n: 20, q: 'step:0 tool.error:accuse env:acme/math' });
  const { rollouts } = await made('GET', `/v1/runs/${run}/rollouts?q=${encodeURIComponent(event.evidence.q)}`);
  expect(rollouts).toHaveLength(20);
  for (const { id } of whodunit) expect(await changes(id)).toEqual([]);
  for (const [at, one] of [...math, ...whodunit].entries())
    expect({ at, ...(await made('POST', '/v1/alerts/preview', { run, condition: one.condition })) }).toMatchObject({
      at,
      fired: at < 3 ? 1 : 0,
    });
  const condition = { ...errors, environment: 'acme/maths' };
  expect(await server.request('POST', '/v1/alerts/preview', { body: { run, condition } })).toMatchObject({
    status: 422,
    body: { code: 'invalid_body', detail: 'The run has no environment acme/maths. It has acme/math, acme/whodunit.' },
  });
  // The tasks of math are below those of the other run, and so are all together. Those of whodunit are alike.
  await uploadStep(server, 'mixed baseline', { step: 0, n: 30 });
  for (const variant of ['easy', 'hard']) await uploadStep(server, 'mixed baseline', { step: 0, n: 10, environment: 'acme/math', variant });
  const baseline = { kind: 'baseline', run: 'mixed baseline' };
  for (const [environment, fired] of [
    [null, 1],
    ['acme/math', 1],
    ['acme/whodunit', 0],
  ] as const) {
    const preview = await made('POST', '/v1/alerts/preview', { run, condition: { ...baseline, environment } });
    expect({ environment, ...preview }).toMatchObject({ environment, judged: 1, fired });
  }
  // Another condition begins again, and so does another environment.
  const moved = await made('PUT', `/v1/alerts/${math[0].id}`, {
    name: 'mixed',
    runs: 'mixed*',
    condition: { ...errors, environment: 'acme/none' },
  });
  expect(moved).toMatchObject({ firing: [], condition: { environment: 'acme/none' } });
}, 120_000);

it('the silence of a finished run is no alert, that of a stalled one is, and a new rollout continues a finished run', async () => {
  const { id, condition } = await made('POST', '/v1/alerts', {
    name: 'stalled',
    runs: 'end-*',
    condition: { kind: 'silence', minutes: 10 },
  });
  const of = async (run: string) =>
    (await made('GET', `/v1/alert-events?alert=${id}&run=${run}`)).events
      .toReversed()
      .map(({ kind, evidence }: { kind: string; evidence: { text: string } }) => [kind, evidence.text]);
  /** Moves what is stored about the runs into the past. */
  const elevenMinutesPass = async (...runs: string[]) => {
    const earlier = (...columns: string[]) => columns.map((column) => `${column} = ${column} - interval '11 minutes'`).join(', ');
    // Of the heads too: a rollout that is derived again takes its times from there.
    for (const table of ['rollout_heads', 'rollouts'])
      await server.database.pool.query(
        `UPDATE ${table} SET ${earlier('received_at', 'last_at')} WHERE run_seq IN (SELECT seq FROM runs WHERE name = ANY($1))`,
        [runs],
      );
    await server.database.pool.query(`UPDATE runs SET ${earlier('updated_at', 'finished_at')} WHERE name = ANY($1)`, [runs]);
  };
  await server.database.pool.query(`UPDATE alerts SET since = since - interval '1 day' WHERE id = $1`, [id]);
  for (const run of ['end-finished', 'end-stalled']) await uploadStep(server, run, { step: 0, n: 2 });
  expect(await made('GET', '/v1/runs/end-finished')).toMatchObject({ finished: false });
  expect(await made('PATCH', '/v1/runs/end-finished', { finished: true })).toMatchObject({ finished: true });
  // The service notes the time of an upload up to a second later: that is no news.
  await expect
    .poll(
      async () =>
        (await server.database.pool.query(`SELECT FROM ingest_counters c JOIN runs r ON r.seq = c.run_seq WHERE r.name LIKE 'end-%'`))
          .rowCount,
      { timeout: 20_000 },
    )
    .toBe(2);
  expect(await made('GET', '/v1/runs/end-finished')).toMatchObject({ finished: true });
  await elevenMinutesPass('end-finished', 'end-stalled');
  await expect
    .poll(
      judged(() => of('end-stalled')),
      WITHIN,
    )
    .toEqual([['firing', expect.stringMatching(/^No rollout for 1\d min\.$/)]]);
  expect(await of('end-finished')).toEqual([]);
  expect(await made('POST', '/v1/alerts/preview', { run: 'end-stalled', condition })).toMatchObject({ fired: 1, firing_now: true });
  expect(await made('POST', '/v1/alerts/preview', { run: 'end-finished', condition })).toMatchObject({ fired: 0, firing_now: false });
  // Who learns by the alert that the run has ended marks it.
  await made('PATCH', '/v1/runs/end-stalled', { finished: true });
  await expect
    .poll(
      judged(async () => (await of('end-stalled')).at(-1)),
      WITHIN,
    )
    .toEqual(['resolved', 'The run is finished.']);
  await uploadStep(server, 'end-finished', { step: 1, n: 2 });
  await expect.poll(async () => (await made('GET', '/v1/runs/end-finished')).finished, { timeout: 20_000 }).toBe(false);
  await elevenMinutesPass('end-finished', 'end-stalled');
  await expect
    .poll(
      judged(async () => (await of('end-finished')).length),
      WITHIN,
    )
    .toBe(1);
  expect(await of('end-stalled')).toHaveLength(2);
}, 180_000);

it('an environment can be silent while its run goes on', async () => {
  const run = 'half silent';
  const silence = { kind: 'silence', minutes: 10 };
  const [whole, math] = await Promise.all(
    [null, 'acme/math'].map((environment) =>
      made('POST', '/v1/alerts', { name: 'silent', runs: run, condition: { ...silence, environment } }),
    ),
  );
  await server.database.pool.query(`UPDATE alerts SET since = since - interval '1 day' WHERE id = ANY($1)`, [[whole.id, math.id]]);
  await uploadStep(server, run, { step: 0, n: 2, environment: 'acme/math' });
  await expect.poll(async () => (await made('GET', `/v1/runs/${encodeURIComponent(run)}`)).pending, { timeout: 20_000 }).toBe(null);
  await server.database.pool.query(
    `UPDATE rollouts SET last_at = last_at - interval '11 minutes' WHERE run_seq = (SELECT seq FROM runs WHERE name = $1)`,
    [run],
  );
  await uploadStep(server, run, { step: 0, n: 2 });
  await eventually(math.id, [['firing', null]]);
  expect(await changes(whole.id)).toEqual([]);
}, 120_000);

it('counts rollouts of a query within a window, and silence', async () => {
  const run = 'timed';
  const counted = await made('POST', '/v1/alerts', {
    name: 'errors',
    runs: run,
    condition: { kind: 'count', q: 'has:error', minutes: 60, value: 4 },
  });
  const silent = await made('POST', '/v1/alerts', { name: 'silence', runs: run, condition: { kind: 'silence', minutes: 10 } });
  await uploadStep(server, run, { step: 0, failed: 5 });
  await eventually(counted.id, [['firing', null]]);
  expect(await changes(silent.id)).toEqual([]);
  const preview = await made('POST', '/v1/alerts/preview', { run, condition: counted.condition });
  expect(preview).toMatchObject({ fired: 1, judged: 5, firing_now: true });
  await server.database.pool.query(`UPDATE alerts SET since = now() - interval '1 hour' WHERE id = $1`, [silent.id]);
  const afterSilence = async () => {
    // Ten minutes pass. Again each time, because background work of the upload may still write its own time.
    await server.database.pool.query(`UPDATE runs SET updated_at = now() - interval '11 minutes' WHERE name = $1`, [run]);
    await judgeNow(server);
    return changes(silent.id);
  };
  await expect.poll(afterSilence, WITHIN).toEqual([['firing', null]]);
  await uploadStep(server, run, { step: 1 });
  await eventually(silent.id, [
    ['firing', null],
    ['resolved', null],
  ]);
}, 120_000);

it('alerts that cannot be judged in very many runs do not keep the others waiting', async () => {
  // As many as one round judges, and one that may come after them.
  const runs = Array.from({ length: 100 }, (_, at) => `unjudged-${at}`);
  const events = [...runs, 'unjudged-and-waiting'].flatMap((run) => stepEvents(run, { step: 0, n: 1 }));
  const { status } = await server.request('POST', '/v1/rollouts', { body: { events } });
  expect(status).toBe(200);
  const count = (more: object) => made('POST', '/v1/alerts', { condition: { kind: 'count', q: 'step:0', minutes: 60, value: 0 }, ...more });
  const broken = await count({ name: 'broken', runs: 'unjudged-*' });
  // The alert of the smallest id comes first.
  await server.database.pool.query(
    `UPDATE alerts SET id = '00000000-0000-4000-8000-000000000001', condition = jsonb_set(condition, '{q}', '"stop:never"') WHERE id = $1`,
    [broken.id],
  );
  const waiting = await count({ name: 'waiting', runs: 'unjudged-and-waiting' });
  await eventually(waiting.id, [['firing', null]]);
  await made('DELETE', '/v1/alerts/00000000-0000-4000-8000-000000000001');
}, 120_000);

it('a round that ends early is continued by the next one, in the runs that it did not reach', async () => {
  const { pool } = server.database;
  await postpone(server, 'evaluate-alerts');
  const running = `SELECT FROM palestra_jobs.jobs WHERE task_identifier = 'evaluate-alerts' AND locked_at IS NOT NULL`;
  await expect.poll(async () => (await pool.query(running)).rowCount, WITHIN).toBe(0);
  await pool.query('DELETE FROM alerts');
  for (const at of [1, 2, 3]) await uploadStep(server, `early-${at}`, { step: 0, n: 1 });
  await settled(pool);
  const { id } = await made('POST', '/v1/alerts', {
    name: 'early',
    runs: 'early-*',
    condition: { kind: 'count', q: 'step:0', minutes: 60, value: 0 },
  });
  let end = new AbortController();
  // The second connection of a round stores its first judgement.
  let connections = 0;
  const counting = new Proxy(pool, {
    get: (target, name: keyof typeof pool) => {
      if (name === 'connect' && (connections += 1) === 2) end.abort();
      const value = target[name] as unknown;
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
  const none = { handle: () => {}, addDefaults: async () => {}, judge: async () => {} } as never;
  const evaluator = new AlertEvaluator(none, { pool: counting } as never, none, none, none, createLogger('silent'));
  for (const judgements of [1, 2, 3]) {
    [end, connections] = [new AbortController(), 0];
    await evaluator.round(end.signal);
    expect((await pool.query('SELECT FROM alert_states WHERE alert_id = $1', [id])).rowCount).toBe(judgements);
  }
});
