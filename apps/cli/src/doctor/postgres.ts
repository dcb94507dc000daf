import { readFile } from 'node:fs/promises';
import path from 'node:path';
import pg from 'pg';
import { fail, type Finding, messageOf, ok, warn } from './check.ts';
import { judgeSkew } from './server.ts';

const DEADLINE_MS = 5_000;
/** The oldest major version that is tested. */
const MIN_MAJOR = 18;
const DEFAULT_POOL = 16;
/** Connections of a service and its worker besides their pools (docs/operations.md#environment-variables-of-the-service). */
const OTHER_CONNECTIONS = 31;

/** Where the database is: DATABASE_URL, or the embedded one with its data here. `url` null: the embedded one is not running. */
type Location = { kind: 'configured' | 'embedded'; url: string } | { kind: 'embedded'; url: null } | { kind: 'none' };

async function locate(env: NodeJS.ProcessEnv): Promise<Location> {
  if (env['DATABASE_URL']) return { kind: 'configured', url: env['DATABASE_URL'] };
  const folder = path.join(path.resolve(env['PALESTRA_DATA_DIR'] || '.palestra'), 'postgres');
  const read = (file: string) =>
    readFile(path.join(folder, file), 'utf8').catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return null;
      throw error;
    });
  const password = await read('password');
  if (password === null) return { kind: 'none' };
  const port = (await read('data/postmaster.pid'))?.split('\n')[3];
  if (port === undefined) return { kind: 'embedded', url: null };
  return { kind: 'embedded', url: `postgresql://postgres:${password.trim()}@127.0.0.1:${port}/palestra` };
}

/** The settings of PostgreSQL that matter to the service, as `SHOW` spells them. */
export interface Settings {
  server_version: string;
  server_encoding: string;
  fsync: string;
  autovacuum: string;
  transaction_read_only: string;
  max_connections: string;
  wal_compression: string;
}
const SETTINGS: readonly (keyof Settings)[] = [
  'server_version',
  'server_encoding',
  'fsync',
  'autovacuum',
  'transaction_read_only',
  'max_connections',
  'wal_compression',
];

export async function checkPostgres(env: NodeJS.ProcessEnv): Promise<Finding> {
  const location = await locate(env);
  if (location.kind === 'none') return ok('The first start creates an embedded PostgreSQL in the data directory.');
  if (location.url === null)
    return warn('The embedded PostgreSQL of the data directory does not run.', 'Start the service with "palestra up".');
  let settings: Settings;
  let skewMs: number;
  try {
    ({ settings, skewMs } = await ask(location.url));
  } catch (error) {
    const advice =
      location.kind === 'configured'
        ? 'Start PostgreSQL, and check host, port, user and password of DATABASE_URL.'
        : 'Restart the service, which restarts its PostgreSQL.';
    return fail(`PostgreSQL does not answer: ${messageOf(error)}`, advice);
  }
  const problem = judgeSettings(settings, Number(env['DATABASE_POOL_SIZE'] || DEFAULT_POOL));
  if (problem !== null) return problem;
  const clock = judgeSkew(skewMs, 'PostgreSQL');
  const what = location.kind === 'configured' ? 'DATABASE_URL' : 'the embedded one';
  return clock.status === 'ok' ? ok(`PostgreSQL ${settings.server_version} (${what}) answers; its settings are fine.`) : clock;
}

async function ask(connectionString: string): Promise<{ settings: Settings; skewMs: number }> {
  const client = new pg.Client({ connectionString, connectionTimeoutMillis: DEADLINE_MS, query_timeout: DEADLINE_MS });
  // A connection that breaks later is an error event, too.
  client.on('error', () => {});
  await client.connect();
  try {
    const sentAt = Date.now();
    const columns = SETTINGS.map((name) => `current_setting('${name}') AS ${name}`).join(', ');
    const { rows } = await client.query<Settings & { now_ms: string }>(
      `SELECT ${columns}, (extract(epoch FROM clock_timestamp()) * 1000)::bigint::text AS now_ms`,
    );
    const { now_ms, ...settings } = rows[0]!;
    return { settings, skewMs: Math.round((sentAt + Date.now()) / 2 - Number(now_ms)) };
  } finally {
    await client.end();
  }
}

/** The first setting that is wrong, the worst first; null if all are fine. */
export function judgeSettings(settings: Settings, poolSize: number): Finding | null {
  const { server_version: version, server_encoding: encoding, fsync, autovacuum, transaction_read_only: readOnly } = settings;
  if (encoding !== 'UTF8') return fail(`The database has the encoding ${encoding}.`, "Create the database again with ENCODING 'UTF8'.");
  if (readOnly === 'on') return fail('PostgreSQL is read-only.', 'Point DATABASE_URL to the primary, not to a replica.');
  if (fsync !== 'on')
    return fail('fsync is off: a crash of the machine loses acknowledged data.', 'Set fsync = on and restart PostgreSQL.');
  const needed = 2 * poolSize + OTHER_CONNECTIONS;
  if (Number(settings.max_connections) < needed)
    return warn(
      `max_connections is ${settings.max_connections}, and a service with its worker opens up to ${needed}.`,
      'Raise max_connections, or lower DATABASE_POOL_SIZE (docs/operations.md).',
    );
  if (autovacuum !== 'on') return warn('autovacuum is off: space of deleted rows is never used again.', 'Set autovacuum = on.');
  if (Number.parseInt(version, 10) < MIN_MAJOR)
    return warn(`PostgreSQL ${version} is older than ${MIN_MAJOR}, which is tested.`, `Upgrade PostgreSQL to version ${MIN_MAJOR}.`);
  if (settings.wal_compression === 'off')
    return warn('wal_compression is off: uploads write twice as much log.', 'Set wal_compression = pglz.');
  return null;
}
