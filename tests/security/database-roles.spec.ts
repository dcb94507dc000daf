import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { afterEach, expect, test, vi } from 'vitest';
import { startEmbeddedPostgres } from '../../apps/api/src/platform/database/embedded-postgres.ts';
import { migrate } from '../../apps/api/src/server.ts';
import { PartitionService } from '../../apps/api/src/store/storage/partition.service.ts';
import { Database } from '../../apps/api/src/platform/database/database.ts';
import { createLogger } from '../../apps/api/src/platform/telemetry/logger.ts';
import { runtimeRole } from '../support/runtime-role.ts';
import { createDatabase, startServer } from '../support/server.ts';

// initdb takes seconds.
vi.setConfig({ testTimeout: 240_000 });

const ends: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).toReversed()) await end();
});

/** What an attacker would do who runs SQL of their own as the service, e.g. by an injection. Answers what succeeded. */
async function attack(url: string): Promise<string[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const attacks = [
    'CREATE TABLE loot (id int)',
    'CREATE TABLE palestra_jobs.loot (id int)',
    'CREATE SCHEMA loot',
    'CREATE DATABASE loot',
    'CREATE ROLE loot SUPERUSER',
    'ALTER ROLE CURRENT_USER SUPERUSER',
    'ALTER ROLE CURRENT_USER BYPASSRLS',
    'SET ROLE postgres',
    'SET SESSION AUTHORIZATION postgres',
    'SELECT * FROM pg_authid',
    'SELECT * FROM pg_shadow',
    `SELECT pg_read_file('postgresql.conf')`,
    `SELECT pg_ls_dir('.')`,
    `SELECT lo_import('/etc/passwd')`,
    `COPY (SELECT 1) TO PROGRAM 'id'`,
    `COPY (SELECT 1) TO '/tmp/palestra-loot'`,
    `CREATE TEMPORARY TABLE lines (line text); COPY lines FROM '/etc/passwd'`,
    `CREATE TEMPORARY TABLE answers (line text); COPY answers FROM PROGRAM 'id'`,
    'CREATE FUNCTION loot() RETURNS int LANGUAGE sql AS $$ SELECT 1 $$',
    `CREATE FUNCTION loot() RETURNS int LANGUAGE c AS '/lib/x86_64-linux-gnu/libc.so.6', 'system'`,
    'CREATE EXTENSION pg_trgm',
    'CREATE EXTENSION dblink',
    'CREATE EXTENSION plpython3u',
    'CREATE TRIGGER loot BEFORE INSERT ON runs FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger()',
    'CREATE RULE loot AS ON INSERT TO runs DO INSTEAD NOTHING',
    'ALTER TABLE runs ADD COLUMN loot text',
    'ALTER TABLE palestra_jobs._private_jobs DISABLE ROW LEVEL SECURITY',
    'DROP TABLE runs',
    'TRUNCATE runs CASCADE',
    'DROP SCHEMA public CASCADE',
    'ALTER SYSTEM SET log_statement = all',
    `SET log_statement = 'all'`,
    'DELETE FROM _prisma_migrations',
    `UPDATE _prisma_migrations SET checksum = ''`,
    'DELETE FROM palestra_jobs.migrations',
    `SELECT create_message_partition('2001-01-01')`,
    `LOAD '/tmp/loot.so'`,
    'CHECKPOINT',
    'SELECT pg_reload_conf()',
  ];
  const succeeded: string[] = [];
  try {
    for (const sql of attacks) {
      await client.query('BEGIN');
      await client.query(sql).then(
        () => succeeded.push(sql),
        () => {},
      );
      await client.query('ROLLBACK');
    }
  } finally {
    await client.end();
  }
  return succeeded;
}

async function embedded() {
  const folder = await mkdtemp(path.join(tmpdir(), 'palestra-roles-'));
  await chmod(folder, 0o755);
  ends.push(() => rm(folder, { recursive: true, force: true }));
  const postgres = await startEmbeddedPostgres(path.join(folder, 'postgres'));
  ends.push(() => postgres.stop());
  return postgres;
}

test('M11: the role of the embedded service has only rights on rows, also on data of an older version', async () => {
  const postgres = await embedded();
  expect(new URL(postgres.url).password).not.toBe(new URL(postgres.migrationUrl).password);
  // As versions before did: everything as the superuser.
  await migrate(postgres.migrationUrl);
  const before = new pg.Client({ connectionString: postgres.migrationUrl });
  await before.connect();
  ends.push(() => before.end());
  await before.query(`INSERT INTO organisations (id, name) VALUES (gen_random_uuid(), 'older')`);

  await migrate(postgres.url, postgres.migrationUrl);
  // A second start changes nothing.
  await migrate(postgres.url, postgres.migrationUrl);
  expect(await attack(postgres.url)).toEqual([]);
  const client = new pg.Client({ connectionString: postgres.url });
  await client.connect();
  ends.push(() => client.end());
  const { rows } = await client.query(
    `SELECT rolsuper, rolcreatedb, rolcreaterole, rolreplication, rolbypassrls, (SELECT count(*)::int FROM pg_auth_members WHERE member = r.oid) AS memberships,
       (SELECT count(*)::int FROM pg_class WHERE relowner = r.oid) AS tables FROM pg_roles r WHERE rolname = current_user`,
  );
  const none = { rolsuper: false, rolcreatedb: false, rolcreaterole: false, rolreplication: false, rolbypassrls: false };
  expect(rows).toEqual([{ ...none, memberships: 0, tables: 0 }]);
  expect((await client.query(`SELECT name FROM organisations WHERE name = 'older'`)).rowCount).toBe(1);
});

test('M11: the role may use partitions, jobs, LISTEN, COPY and advisory locks', async () => {
  const database = await createDatabase();
  ends.push(() => database.drop());
  const { runtime, migration } = runtimeRole(database.url);
  await migrate(runtime, migration);
  expect(await attack(runtime)).toEqual([]);
  // Without a role that may migrate nothing is pending, so that the service starts.
  await migrate(runtime);
  const ours = new Database(runtime, 2);
  ends.push(() => ours.close());
  const partitions = new PartitionService(ours, createLogger('silent'));
  expect((await partitions.maintain()).created).toHaveLength(3);
  const owner = new pg.Client({ connectionString: database.url });
  await owner.connect();
  ends.push(() => owner.end());
  await owner.query(
    `CREATE TABLE rollout_messages_20200101 PARTITION OF rollout_messages FOR VALUES FROM ('2020-01-01') TO ('2020-01-02')`,
  );
  expect((await partitions.maintain()).dropped).toEqual(['2020-01-01']);

  const server = await startServer();
  ends.push(() => server.close());
  const events = [{ eventType: 'rollout', eventId: '6a9a7c2e-52a5-4b55-9d8a-0a3c8f1d7b11', timestamp: 1, runName: 'roles' }];
  expect((await server.request('POST', '/v1/rollouts', { body: { events } })).status).toBe(200);
  const jobs = async () => {
    const { body } = await server.request('GET', '/metrics');
    return /palestra_jobs_total\{job="[^"]+",outcome="done"\} [1-9]/.test(body);
  };
  await expect.poll(jobs).toBe(true);
});

test('M11: a service whose role may not migrate reports the missing variable', async () => {
  const database = await createDatabase();
  ends.push(() => database.drop());
  const { runtime, migration } = runtimeRole(database.url);
  await migrate(runtime, migration);
  const owner = new pg.Client({ connectionString: database.url });
  await owner.connect();
  ends.push(() => owner.end());
  await owner.query(`DELETE FROM _prisma_migrations WHERE migration_name = (SELECT max(migration_name) FROM _prisma_migrations)`);
  await expect(migrate(runtime)).rejects.toThrow(/DATABASE_MIGRATION_URL/);
});
