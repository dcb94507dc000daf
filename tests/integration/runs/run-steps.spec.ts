import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { sharedServer, type TestServer } from '../../support/server.ts';

const stops = ['finished', 'max_turns', 'infra_error', 'finished', 'finished'];
let server: TestServer;

/** One rollout per stop, at step `i % 3`. */
async function upload(runName: string): Promise<void> {
  const events = stops.flatMap((stop, i) => {
    const id = randomUUID();
    const metadata = { stop_reason: stop, step: i % 3, group_id: `g${i % 3}`, n_samples: 2, phase: 'train' };
    const start = {
      eventType: 'rollout',
      eventId: id,
      timestamp: 1,
      runName,
      rolloutName: `lone-${i}`,
      environment: 'acme/math',
      split: 'train',
    };
    const message = { type: 'tool_result', content: 'x', isFinished: stop === 'finished', metadata: {}, ...(i !== 1 && { reward: 1 }) };
    return [
      { ...start, metadata },
      { eventType: 'message', eventId: randomUUID(), rolloutEventId: id, timestamp: 1, index: 0, ...message },
    ];
  });
  const answer = await server.request('POST', '/v1/rollouts', { body: { events } });
  expect(answer.status).toBe(200);
}

beforeAll(async () => {
  server = await sharedServer();
  await upload('with steps');
});
afterAll(() => server.close());

const steps = (run: string, query = '') => server.request('GET', `/v1/runs/${encodeURIComponent(run)}/steps${query}`);

describe('counts by step', () => {
  it('reject an invalid range and an unknown run', async () => {
    expect(await steps('with steps', '?steps=many')).toMatchObject({ status: 422 });
    expect(await steps('nobody’s')).toMatchObject({ status: 404, body: { code: 'run_not_found' } });
  });

  it('equal those of the rollouts, with stop reasons, most frequent first', async () => {
    expect((await steps('with steps')).body).toEqual({
      phase: 'train',
      from: [0, 1, 2],
      to: [0, 1, 2],
      rollouts: [2, 2, 1],
      // The rollout of step 2 was interrupted.
      scored: [2, 1, 0],
      errors: [0, 0, 1],
      finished: [2, 1, 0],
      groups: [1, 1, 1],
      incomplete_groups: [0, 0, 1],
      gaps: [0, 0, 0],
      stops: [
        { stop: 'finished', counts: [2, 1, 0] },
        { stop: 'infra_error', counts: [0, 0, 1] },
        { stop: 'max_turns', counts: [0, 1, 0] },
      ],
    });
  });

  it('add up where there are more steps than columns, within a range', async () => {
    expect((await steps('with steps', '?max=2')).body).toMatchObject({ from: [0, 2], to: [1, 2], rollouts: [4, 1] });
    expect((await steps('with steps', '?steps=1..')).body).toMatchObject({ from: [1, 2], rollouts: [2, 1] });
  });
});
