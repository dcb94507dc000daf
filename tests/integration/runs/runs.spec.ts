import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { settled } from '../../support/derived-rows.ts';
import { sharedServer, type TestServer } from '../../support/server.ts';
import { eventually } from '../observed.world.ts';

let server: TestServer;
beforeAll(async () => {
  server = await sharedServer();
  let posted = 0;
  for (const [runName, rewards] of Object.entries({ alpha: [1, 0, null], 'beta/with slash': [null] })) {
    const events = rewards.flatMap((reward, sample) => {
      const id = randomUUID();
      return [
        {
          eventType: 'rollout',
          eventId: id,
          timestamp: 1,
          runName,
          rolloutName: `acme-math-train-${sample}`,
          environment: 'acme/math',
          split: 'train',
        },
        {
          eventType: 'message',
          eventId: randomUUID(),
          rolloutEventId: id,
          timestamp: 1,
          index: 0,
          type: 'tool_result',
          content: 'x',
          isFinished: reward !== null,
          metadata: {},
          ...(reward === null ? {} : { reward }),
        },
      ];
    });
    await server.request('POST', '/v1/rollouts', { body: { events } });
    // Activity is stored a moment later, for all runs at once: two runs of one moment have the same time.
    posted += 1;
    const noted = async () =>
      (
        await server.database.pool.query(
          `SELECT count(*)::int AS runs FROM ingest_counters c JOIN runs u ON u.seq = c.run_seq JOIN organisations o ON o.id = u.org_id WHERE o.name = $1`,
          [server.orgName],
        )
      ).rows[0].runs as number;
    await eventually(async () => (await noted()) === posted || null);
  }
  // Reads wait for acknowledged events, but not as long as a busy machine may take.
  await settled(server.database.pool, server.orgName);
});
afterAll(() => server.close());

describe('runs', () => {
  it('rejects bad pages, unknown ids and ids of the wrong form', async () => {
    expect(await server.request('GET', '/v1/runs?limit=0')).toMatchObject({ status: 422, body: { code: 'invalid_body' } });
    expect(await server.request('GET', `/v1/runs/${randomUUID()}`)).toMatchObject({ status: 404, body: { code: 'run_not_found' } });
    expect(await server.request('GET', '/v1/runs/not-an-id/rollouts')).toMatchObject({ status: 404 });
  });

  it('lists them newest first with means over the scored rollouts only', async () => {
    const { body } = await server.request('GET', '/v1/runs');
    expect(body).toMatchObject({
      total: 2,
      runs: [
        { name: 'beta/with slash', num_rollouts: 1, avg_rollout_reward: null, num_scored: 0 },
        {
          name: 'alpha',
          num_rollouts: 3,
          avg_rollout_reward: 0.5,
          num_scored: 2,
          num_finished: 2,
          avg_rollout_length: 1,
          environments: ['acme/math'],
          org: server.orgName,
        },
      ],
    });
    expect((await server.request('GET', '/v1/runs?search=with%20SLASH')).body).toMatchObject({
      total: 1,
      runs: [{ name: 'beta/with slash' }],
    });
    expect((await server.request('GET', '/v1/runs?name=alpha')).body).toMatchObject({ total: 1, runs: [{ name: 'alpha' }] });
    expect((await server.request('GET', '/v1/runs?offset=10')).body).toEqual({ runs: [], total: 2, next: null });
  });

  it('has figures of each run’s newest steps, from rollups', async () => {
    const rewardOf = (step: number, sample: number) => (step < 4 ? 0 : sample === 0 ? 1 : step % 2);
    const events = Array.from({ length: 14 }, (_, step) => step).flatMap((step) =>
      [0, 1].flatMap((sample) => {
        const rollout = randomUUID();
        const metadata = {
          step,
          group_id: `g${step}`,
          sample_idx: sample,
          stop_reason: step === 13 && sample === 1 ? 'infra_error' : 'finished',
        };
        const message = { type: 'tool_result', content: 'x', isFinished: true, metadata: {}, reward: rewardOf(step, sample) };
        return [
          {
            eventType: 'rollout',
            eventId: rollout,
            timestamp: 1,
            runName: 'gamma',
            rolloutName: 'r',
            environment: 'acme/math',
            split: 'train',
            run_info: { model_name: step === 13 ? 'acme/new-7b' : 'acme/old-7b', framework: 'verl' },
            metadata,
          },
          { eventType: 'message', eventId: randomUUID(), rolloutEventId: rollout, timestamp: 1, index: 0, ...message },
        ];
      }),
    );
    for (const batch of [events.slice(0, -4), events.slice(-4)]) await server.request('POST', '/v1/rollouts', { body: { events: batch } });
    const { runs } = (await server.request('GET', '/v1/runs?name=gamma')).body;
    // Steps 4 to 13; only four of the ten steps before them exist, too few for a comparison.
    expect(runs[0].recent).toMatchObject({
      steps: 10,
      rollouts: 20,
      // One rollout was interrupted: it has no reward, and its group has one sample less.
      scored: 19,
      reward: expect.closeTo(14 / 19, 11),
      reward_delta: null,
      pass_k: 2,
      pass: 1,
      pass_groups: 9,
      groups: 10,
      zero_variance: expect.closeTo(4 / 9, 11),
    });
    expect(runs[0].recent.broken_off).toBeCloseTo(1 / 20, 12);
    expect(runs[0].origin).toEqual({ source: 'verl', model: 'acme/new-7b', agent: null, user: null, key: null });
    expect(runs[0].phases).toEqual(['train']);
  });

  it('has the same figures as the Overview for a run without steps', async () => {
    const events = ['finished', 'infra_error', 'timeout', 'finished'].flatMap((stop_reason, sample) => {
      const rollout = randomUUID();
      const message = { type: 'assistant_message', content: 'x'.repeat(40), isFinished: false, metadata: {} };
      return [
        { eventType: 'rollout', eventId: rollout, timestamp: 1, runName: 'stepless', rolloutName: `r${sample}`, metadata: { stop_reason } },
        { eventType: 'message', eventId: randomUUID(), rolloutEventId: rollout, timestamp: 1, index: 0, ...message },
      ];
    });
    await server.request('POST', '/v1/rollouts', { body: { events } });
    const [{ last_step: last, recent, num_errors: failed }] = (await server.request('GET', '/v1/runs?name=stepless')).body.runs;
    const summary = (await server.request('GET', '/v1/runs/stepless/summary')).body;
    const figure = (key: string) => summary.kpis.find((kpi: { key: string }) => kpi.key === key)?.value ?? 0;
    expect([last, summary.rollouts, summary.stops]).toMatchObject([null, 4, { infra_error: 1, timeout: 1 }]);
    expect([failed, summary.errors]).toEqual([1, 1]);
    expect(recent).toMatchObject({ steps: 0, rollouts: 4, reward: null, reward_delta: null, broken_off: 0.5 });
    expect(recent.tokens).toBeGreaterThan(0);
    expect(recent.tokens).toBeCloseTo(figure('tokens_out') + figure('tokens_tool'), 9);
  });

  it('pages and sorts the rollouts of a run, unscored ones last', async () => {
    const { runs } = (await server.request('GET', '/v1/runs?name=alpha')).body;
    const { body } = await server.request('GET', `/v1/runs/${runs[0].id}/rollouts?sort=reward&order=desc`);
    expect(body.total).toBe(3);
    expect(body.rollouts.map(({ reward, max_reward }: any) => [reward, max_reward])).toEqual([
      [1, 1],
      [0, 0],
      [null, null],
    ]);
    expect(body.rollouts.map(({ task_index }: any) => task_index).toSorted()).toEqual([0, 1, 2]);
    const page = await server.request('GET', `/v1/runs/${runs[0].id}/rollouts?sort=reward&limit=1&offset=1`);
    expect(page.body.rollouts).toMatchObject([{ reward: 0 }]);
  });

  it('streams a change of a run after an upload', async () => {
    const controller = new AbortController();
    const answer = await fetch(`${server.url}/v1/stream`, { headers: { 'x-api-key': server.apiKey }, signal: controller.signal });
    const { runs } = (await server.request('GET', '/v1/runs?name=alpha')).body;
    const news = (async () => {
      let text = '';
      for await (const chunk of answer.body!) {
        text += Buffer.from(chunk).toString();
        if (text.includes(runs[0].id)) return text;
      }
      return text;
    })();
    await server.request('POST', '/v1/rollouts', {
      body: { events: [{ eventType: 'rollout', eventId: randomUUID(), timestamp: 1, runName: 'alpha' }] },
    });
    expect(await news).toContain('event: run');
    // For ten seconds.
    expect((await server.request('GET', '/v1/runs?name=alpha')).body.runs).toMatchObject([{ live: true }]);
    controller.abort();
  });
});
