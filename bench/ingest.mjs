// Rollout ingest over HTTP (authentication, tolerant parsing, resolution of names) against its bare SQL statement on the same
// PostgreSQL: what everything around the statement costs.
import { randomUUID } from 'node:crypto';
import path from 'node:path';
import { databaseUrl } from './support/postgres.mjs';
import { apiKey, root } from './support/processes.mjs';

const BATCHES = 200;
const BATCH_SIZE = 128;
const WORKERS = 8;

function makeBatches() {
  return Array.from({ length: BATCHES }, () => {
    const rolloutEventId = randomUUID();
    return Array.from({ length: BATCH_SIZE }, (_, index) => ({
      eventType: 'message',
      eventId: randomUUID(),
      timestamp: Date.now(),
      index,
      rolloutEventId,
      type: index % 2 ? 'tool_result' : 'assistant_message',
      content: `message ${index} `.padEnd(400, 'x'),
      reward: index % 2 ? 0.1 : undefined,
      isFinished: index === BATCH_SIZE - 1,
      metadata: { turn: index },
    }));
  });
}

/** Messages per second of WORKERS workers that take one batch after the other. */
async function measure(batches, store) {
  const queue = [...batches];
  const started = performance.now();
  const work = async () => {
    for (let batch = queue.pop(); batch !== undefined; batch = queue.pop()) await store(batch);
  };
  await Promise.all(Array.from({ length: WORKERS }, work));
  return (BATCHES * BATCH_SIZE) / ((performance.now() - started) / 1000);
}

export async function benchIngest(palestra) {
  const { default: pg } = await import('pg');
  const { storeBatch } = await import(path.join(root, 'apps/api/dist/rollouts/ingest/ingest.sql.js'));
  const { parseTolerant, readBatch } = await import('@palestra/rollouts');
  const pool = new pg.Pool({ connectionString: databaseUrl(palestra.dataDir), max: WORKERS });
  pool.on('error', () => {});
  const { rows } = await pool.query('SELECT id FROM organisations ORDER BY created_at LIMIT 1');
  const overHttp = async (events) => {
    const answer = await fetch(`${palestra.url}/v1/rollouts`, {
      method: 'POST',
      headers: { 'x-api-key': apiKey, 'content-type': 'application/json' },
      body: JSON.stringify({ events }),
    });
    if (!answer.ok) throw new Error(`POST /v1/rollouts: ${answer.status} ${await answer.text()}`);
    await answer.arrayBuffer();
  };
  const bare = (events) => storeBatch(pool, rows[0].id, [], events);
  const read = (batch) => readBatch(parseTolerant(JSON.stringify({ events: batch }))).events;
  try {
    await measure(makeBatches().slice(0, 20), overHttp);
    const http = await measure(makeBatches(), overHttp);
    const statement = await measure(makeBatches().map(read), bare);
    return [
      { name: 'rollout messages ingested per second', ours: http, theirs: statement, unit: '/s', ratio: http / statement, target: null },
    ];
  } finally {
    await pool.end();
  }
}
