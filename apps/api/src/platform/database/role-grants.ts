import pg from 'pg';
import { MigrationError } from './migrations.ts';

/** SQLSTATEs of a login with a wrong password, or by a role that does not exist. */
const REFUSED_LOGIN = new Set(['28P01', '28000']);
/** Another service on the same server created the role at the same time: roles belong to all databases, the migration lock to one. */
const EXISTS = new Set(['42710', '23505']);
/** A role that can change these tables can decide which migrations count as applied. */
const HISTORIES = ['public._prisma_migrations', 'palestra_jobs.migrations'];

/**
 * Grants the role of `runtimeUrl` the rights that the running service needs in this database: rows of all tables, sequences, functions. The
 * role can create only temporary tables, owns nothing and reads nothing outside of the two schemas. If the role cannot log in, creates it
 * or sets its password. Does nothing when `client` is that role. Throws `MigrationError` when the role still cannot log in. `client` holds
 * the migration lock.
 */
export async function grantToRuntimeRole(client: pg.Client, runtimeUrl: string): Promise<void> {
  const { user: name, password } = new pg.Client({ connectionString: runtimeUrl });
  const { rows } = await client.query<{ user: string; database: string }>('SELECT current_user AS "user", current_database() AS database');
  const { user, database } = rows[0]!;
  if (name === undefined || name === user) return;
  const role = client.escapeIdentifier(name);
  if (!(await canLogIn(runtimeUrl))) await provideRole(client, name, typeof password === 'string' ? password : null);
  const schemas = 'public, palestra_jobs';
  await client.query(`
    REVOKE CREATE ON SCHEMA public FROM PUBLIC;
    GRANT CONNECT, TEMPORARY ON DATABASE ${client.escapeIdentifier(database)} TO ${role};
    GRANT USAGE ON SCHEMA ${schemas} TO ${role};
    GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA ${schemas} TO ${role};
    REVOKE INSERT, UPDATE, DELETE ON ${HISTORIES.join(', ')} FROM ${role};
    GRANT USAGE, SELECT, UPDATE ON ALL SEQUENCES IN SCHEMA ${schemas} TO ${role};
    GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA ${schemas} TO ${role};`);
  await allowProtectedRows(client, name);
  for (const table of await appendOnlyTables(client)) await client.query(`REVOKE UPDATE, DELETE ON ${table} FROM ${role}`);
}

/** Tables whose comment begins with `append-only`: rows are written once. A function of the migrating role deletes old rows. */
async function appendOnlyTables(client: pg.Client): Promise<string[]> {
  const { rows } = await client.query<{ table: string }>(
    `SELECT c.oid::regclass::text AS table FROM pg_class c
     WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND obj_description(c.oid, 'pg_class') LIKE 'append-only%'`,
  );
  return rows.map(({ table }) => table);
}

async function provideRole(client: pg.Client, name: string, password: string | null): Promise<void> {
  const { rows } = await client.query<{ known: boolean; may: boolean }>(
    `SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = $1) AS known, rolsuper OR rolcreaterole AS may FROM pg_roles WHERE rolname = current_user`,
    [name],
  );
  const { known, may } = rows[0]!;
  if (!may || password === null)
    throw new MigrationError(
      `the role "${name}" of DATABASE_URL cannot log in: create it, or let the role of DATABASE_MIGRATION_URL create roles`,
    );
  const secret = `LOGIN PASSWORD ${client.escapeLiteral(password)}`;
  const role = client.escapeIdentifier(name);
  if (known) return void (await client.query(`ALTER ROLE ${role} ${secret}`));
  try {
    await client.query(`CREATE ROLE ${role} ${secret} NOSUPERUSER NOCREATEDB NOCREATEROLE NOINHERIT NOREPLICATION NOBYPASSRLS`);
  } catch (error) {
    if (!EXISTS.has((error as { code?: string }).code ?? '')) throw error;
  }
}

async function canLogIn(url: string): Promise<boolean> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 10_000 });
  client.on('error', () => {});
  try {
    await client.connect();
    return true;
  } catch (error) {
    if (REFUSED_LOGIN.has((error as { code?: string }).code ?? '')) return false;
    throw error;
  } finally {
    await client.end().catch(() => {});
  }
}

/** Tables of the job library have row-level security without a policy, which hides every row from all roles but the owner. */
async function allowProtectedRows(client: pg.Client, name: string): Promise<void> {
  const { rows } = await client.query<{ table: string }>(
    `SELECT c.oid::regclass::text AS table FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
     WHERE n.nspname = 'palestra_jobs' AND c.relkind = 'r' AND c.relrowsecurity
       AND NOT EXISTS (SELECT FROM pg_policy p WHERE p.polrelid = c.oid AND p.polname = $1)`,
    [name],
  );
  const role = client.escapeIdentifier(name);
  for (const { table } of rows) await client.query(`CREATE POLICY ${role} ON ${table} TO ${role} USING (true) WITH CHECK (true)`);
}
