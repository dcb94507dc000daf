import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { holdLanes, releaseLanes } from '../../support/lanes.ts';
import { startServer, type TestServer } from '../../support/server.ts';

let server: TestServer;
let other: pg.Client;

beforeAll(async () => {
  server = await startServer({ maxBacklog: 5 });
  other = new pg.Client({ connectionString: server.config.databaseUrl! });
  await other.connect();
});
afterAll(async () => {
  await other.end();
  await server.close();
});

const upload = (rollouts: number) =>
  server.request('POST', '/v1/rollouts', {
    body: {
      events: Array.from({ length: rollouts }, () => ({
        eventType: 'rollout',
        eventId: randomUUID(),
        timestamp: 1,
        runName: 'backlog',
        environment: 'acme/backlog',
        split: 'train',
        metadata: {},
      })),
    },
  });
const stored = async () => Number((await other.query('SELECT count(*) AS n FROM rollout_heads')).rows[0].n);

test('uploads wait while too many rollouts are not derived, then are refused whole, and go on afterwards', async () => {
  await holdLanes(other);
  expect((await upload(6)).status).toBe(200);

  // The count before that upload is used for half a second.
  await new Promise((resolve) => setTimeout(resolve, 600));
  const started = performance.now();
  const refused = await upload(1);
  expect(refused).toMatchObject({ status: 503, body: { code: 'ingest_overloaded' } });
  expect(refused.headers.get('retry-after')).toBe('2');
  expect(performance.now() - started).toBeGreaterThan(4_000);
  const before = await stored();

  const waiting = upload(1);
  await releaseLanes(other);
  expect((await waiting).status).toBe(200);
  expect(await stored()).toBe(before + 1);
});
