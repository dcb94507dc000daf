// What a short rollout needs on disk: PostgreSQL by table and index, and objects, after everything is sealed and merged, and after half is
// deleted. Deletes rollouts, so it runs after the benches that read them. PALESTRA_BENCH_DISK_MINUTES: how long it waits for each.
import { readdirSync, statSync } from 'node:fs';
import path from 'node:path';
import pg from 'pg';
import { wait } from './support/client.mjs';
import { atMost, shown } from './support/figures.mjs';
import { databaseUrl } from './support/postgres.mjs';
import { RUNS } from './support/store.mjs';

const LIMIT_MS = Number(process.env.PALESTRA_BENCH_DISK_MINUTES ?? 20) * 60_000;
/** Rollouts are sealed a minute after their last event. Unchanged for so long means that no more is to come. */
const QUIET_MS = 90_000;
const CHECK_MS = 5_000;
const LARGEST = 16;

/** Relations of the service by size; partitions count as their parent, and TOAST as its table. */
const SIZES = `
SELECT COALESCE(parent.relname, c.relname) AS name, sum(pg_total_relation_size(c.oid) - pg_indexes_size(c.oid))::float8 AS heap,
  sum(pg_indexes_size(c.oid))::float8 AS indexes
FROM pg_class c LEFT JOIN pg_inherits i ON i.inhrelid = c.oid LEFT JOIN pg_class parent ON parent.oid = i.inhparent
WHERE c.relkind = 'r' AND c.relnamespace NOT IN ('pg_catalog'::regnamespace, 'information_schema'::regnamespace)
GROUP BY 1 ORDER BY sum(pg_total_relation_size(c.oid)) DESC`;

/** Files below a folder and the bytes that the file system uses for them. Files and folders may go while they are counted. */
function objectsBelow(folder) {
  const total = { count: 0, bytes: 0 };
  const unlessGone = (work) => {
    try {
      work();
    } catch (error) {
      if (error.code !== 'ENOENT') throw error;
    }
  };
  const visit = (at) => {
    for (const entry of readdirSync(at, { withFileTypes: true })) {
      const file = path.join(at, entry.name);
      unlessGone(() => {
        if (entry.isDirectory()) return visit(file);
        total.bytes += statSync(file).blocks * 512;
        total.count += 1;
      });
    }
  };
  unlessGone(() => visit(folder));
  return total;
}

const measure = async (pool, folder) => {
  const { rows } = await pool.query(SIZES);
  return { tables: rows, bytes: rows.reduce((sum, { heap, indexes }) => sum + heap + indexes, 0), objects: objectsBelow(folder) };
};

/** The sizes when objects do not change any more. */
async function quiet(pool, folder) {
  const started = performance.now();
  let changed = started;
  let last = objectsBelow(folder);
  while (performance.now() - changed < QUIET_MS) {
    if (performance.now() - started > LIMIT_MS) {
      console.error(`objects still change after ${LIMIT_MS / 60_000} minutes: the figures are those of this moment`);
      break;
    }
    await wait(CHECK_MS);
    const now = objectsBelow(folder);
    if (now.count !== last.count || now.bytes !== last.bytes) changed = performance.now();
    last = now;
  }
  return { ...(await measure(pool, folder)), seconds: (changed - started) / 1000 };
}

export async function benchDisk(store) {
  await store.fill();
  const { dataDir } = store.palestra();
  const folder = path.join(dataDir, 'blobs');
  const pool = new pg.Pool({ connectionString: databaseUrl(dataDir), max: 1 });
  pool.on('error', () => {});
  const client = store.client();
  const rolloutsNow = async () => {
    const { body } = await client.get('/v1/runs?limit=100');
    return body.runs.reduce((sum, { num_rollouts: count }) => sum + count, 0);
  };
  try {
    const rollouts = await rolloutsNow();
    const full = await quiet(pool, folder);
    await client.send(`/v1/runs/${RUNS[1]}`, undefined, 'DELETE');
    const left = await rolloutsNow();
    const half = await quiet(pool, folder);
    const kilobytes = (bytes) => bytes / rollouts / 1000;
    return [
      shown('rollouts of all runs', rollouts, ''),
      shown('the last object changed after', full.seconds, 's'),
      atMost(3, 'PostgreSQL a rollout, all tables and indexes', kilobytes(full.bytes), 'kB'),
      ...full.tables
        .slice(0, LARGEST)
        .map(({ name, heap, indexes }) =>
          shown(`of it ${name} (its indexes ${kilobytes(indexes).toFixed(2)})`, kilobytes(heap + indexes), 'kB'),
        ),
      atMost(1, 'objects a rollout, on disk', kilobytes(full.objects.bytes), 'kB'),
      atMost(0.01, 'files of objects a rollout', full.objects.count / rollouts, ''),
      shown('rollouts after a run is deleted', left, ''),
      shown('the last object changed after', half.seconds, 's'),
      shown('PostgreSQL after the deletion, of before', half.bytes / full.bytes, 'times'),
      shown('objects on disk after the deletion, of before', half.objects.bytes / full.objects.bytes, 'times'),
      shown('files of objects after the deletion, of before', half.objects.count / full.objects.count, 'times'),
    ];
  } finally {
    await pool.end();
  }
}
