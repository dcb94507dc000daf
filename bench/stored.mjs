// The cost of a call with 1 000 000 stored sessions, each with a call, and with 100. Runs last, because it leaves the sessions there.
import pg from 'pg';
import { databaseUrl } from './support/postgres.mjs';
import { apiKey, startPalestra } from './support/processes.mjs';
import { playRounds } from './support/rounds.mjs';

const MANY = Number(process.env.PALESTRA_BENCH_STORED ?? 1_000_000);
const FEW = 100;

const INSERT_SESSIONS = `
  INSERT INTO sessions (sid, org_id, user_id, version_id, env, environment, task, state, version, failure_class, heartbeat_timeout_ms,
                        idle_timeout_ms, created_at, last_seen_at, last_request_at, admitted_at, ended_at)
  SELECT 'stored-' || n, o.id::text, u.id::text, v.id::text, 'echo', 'palestra/echo', '{"split":"train","index":0}', 'closed', 3, 'ok', 900000,
         86400000, at, at, at, at, at
  FROM generate_series($1::int, $2::int) n, LATERAL (SELECT now() - n * interval '1 second' AS at) t,
       (SELECT id FROM organisations ORDER BY created_at LIMIT 1) o, (SELECT id FROM users LIMIT 1) u, (SELECT id FROM environment_versions LIMIT 1) v`;
const INSERT_CALLS = `
  INSERT INTO session_calls (task_id, sid, kind, tool, input, replica_id, state, result, ok, reward, failure_class, started_at, ended_at)
  SELECT 'stored-' || n, 'stored-' || n, 'call', 'echo', '{"text":"stored"}', 'gone', 'result', '{"ok":true}', true, 0.1, 'ok', now(), now()
  FROM generate_series($1::int, $2::int) n`;

async function store(palestra, from, to) {
  const client = new pg.Client({ connectionString: databaseUrl(palestra.dataDir) });
  await client.connect();
  try {
    await client.query(INSERT_SESSIONS, [from, to]);
    await client.query(INSERT_CALLS, [from, to]);
    // Vacuum and checkpoint, which PostgreSQL does later and the figures must not include.
    await client.query('VACUUM (ANALYZE) sessions, session_calls');
    await client.query('CHECKPOINT');
  } finally {
    await client.end();
  }
}

export async function benchStored(palestra) {
  const fresh = await startPalestra();
  try {
    await store(fresh, 1, FEW);
    await store(palestra, 1, MANY);
    const side = { headers: { 'X-API-Key': apiKey, 'X-Deployment': 'palestra/echo' }, sessions: 16 };
    const { many, few } = await playRounds({ many: { ...side, port: palestra.port }, few: { ...side, port: fresh.port } });
    const name = `p50 of a call with ${MANY} stored sessions and with ${FEW}`;
    return [{ name, ours: many.p50Ms, theirs: few.p50Ms, unit: 'ms', ratio: few.p50Ms / many.p50Ms, target: 0.9 }];
  } finally {
    await fresh.stop();
  }
}
