import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { lockRun } from '../../../apps/api/src/store/figures/dirty-steps.sql.ts';
import { holdLanes } from '../../support/lanes.ts';
import { sharedServer, startServer, type TestServer } from '../../support/server.ts';

let server: TestServer;
let other: pg.Client;

beforeAll(async () => {
  server = await startServer({ readWaitMs: 50 });
  other = new pg.Client({ connectionString: server.config.databaseUrl! });
  await other.connect();
});
afterAll(async () => {
  await other.end();
  await server.close();
});

async function upload(rollouts: number, to = server): Promise<void> {
  const events = Array.from({ length: rollouts }, () => randomUUID()).flatMap((eventId) => [
    {
      eventType: 'rollout',
      eventId,
      timestamp: 1,
      runName: 'behind',
      environment: 'acme/behind',
      split: 'train',
      metadata: { step: 1 },
    },
    {
      eventType: 'message',
      eventId: randomUUID(),
      rolloutEventId: eventId,
      timestamp: 1,
      index: 0,
      type: 'tool_result',
      content: 'x',
      isFinished: true,
      reward: 1,
      metadata: {},
    },
  ]);
  expect((await to.request('POST', '/v1/rollouts', { body: { events } })).status).toBe(200);
}
const listed = async () => (await server.request('GET', '/v1/runs?limit=20')).body.runs[0];

test('a read answers in time with the figures that exist, and says how many rollouts are missing', async () => {
  await upload(3);
  await expect.poll(listed).toMatchObject({ num_rollouts: 3, avg_rollout_reward: 1, pending: null });

  await other.query('BEGIN');
  // Narrow rows cannot be written, and everything can be read.
  await other.query('LOCK TABLE dirty_steps IN EXCLUSIVE MODE');
  try {
    await upload(2);
    const started = performance.now();
    const list = await listed();
    const summary = await server.request('GET', '/v1/runs/behind/summary');
    const rollouts = await server.request('GET', '/v1/runs/behind/rollouts');
    expect(performance.now() - started).toBeLessThan(10_000);
    expect(list).toMatchObject({ num_rollouts: 3, pending: 2 });
    expect(summary.body.rollouts).toBe(3);
    expect(summary.headers.get('x-data-pending')).toBe('2');
    expect(summary.headers.get('x-data-as-of')).not.toBeNull();
    expect(summary.headers.get('etag')).toBeNull();
    expect(rollouts.status).toBe(200);
  } finally {
    await other.query('ROLLBACK');
  }

  await expect.poll(listed).toMatchObject({ num_rollouts: 5, pending: null });
  // A round that waited for the table, too, may have marked the step once more by then.
  const complete = async () => {
    const { body, headers } = await server.request('GET', '/v1/runs/behind/summary');
    return { rollouts: body.rollouts, pending: headers.get('x-data-pending') };
  };
  await expect.poll(complete).toEqual({ rollouts: 5, pending: null });
});

test('a read has the events that were acknowledged while another read derived', async () => {
  const patient = await sharedServer();
  const client = new pg.Client({ connectionString: patient.config.databaseUrl! });
  await client.connect();
  try {
    await holdLanes(client);
    await upload(1, patient);
    const { rows } = await client.query('SELECT seq FROM runs WHERE org_id = (SELECT id FROM organisations WHERE name = $1)', [
      patient.orgName,
    ]);
    const dirty = async () => (await client.query('SELECT FROM rollout_heads WHERE dirty AND run_seq = $1', [rows[0].seq])).rowCount;
    const read = async () => (await patient.request('GET', '/v1/runs/behind/summary')).body.rollouts as number;

    await client.query('BEGIN');
    await lockRun(client, rows[0].seq);
    const first = read();
    // Now it waits for the figures.
    await expect.poll(dirty).toBe(0);
    await upload(1, patient);
    const second = read();
    await new Promise((resolve) => setTimeout(resolve, 500));
    await client.query('COMMIT');
    expect(await second).toBe(2);
    await first;
  } finally {
    await client.end();
  }
});
