// npm run db:migration [name]: writes the SQL between apps/api/prisma/migrations and apps/api/prisma/*.prisma as the next migration. `--init` rewrites
// 0001_init (only before the first release). Prisma's CLI would download an engine; this script uses the same engine as WebAssembly from
// a package.
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { PrismaPg } from '@prisma/adapter-pg';
import { bindMigrationAwareSqlAdapterFactory } from '@prisma/driver-adapter-utils';
import * as engineModule from '@prisma/schema-engine-wasm/schema_engine_bg';
import pg from 'pg';
import { freePort } from '@palestra/hosting';
// Of the last build.
import { PostgresServer } from '../apps/api/dist/platform/database/postgres-server.js';

const root = path.resolve(import.meta.dirname, '..');
const folder = path.join(root, 'apps/api/prisma/migrations');
const init = process.argv.includes('--init');
const name = init ? 'init' : (process.argv[2] ?? '').replaceAll(/[^a-z0-9]+/gi, '_').toLowerCase();
if (!name) {
  console.error('usage: npm run db:migration -- <name>   (or --init to rewrite the first one)');
  process.exit(2);
}

const wasmFile = path.join(path.dirname(createRequire(import.meta.url).resolve('@prisma/schema-engine-wasm')), 'schema_engine_bg.wasm');
const { instance } = await WebAssembly.instantiate(readFileSync(wasmFile), { './schema_engine_bg.js': engineModule });
engineModule.__wbg_set_wasm(instance.exports);
instance.exports.__wbindgen_start();

const datamodels = readdirSync(path.join(root, 'apps/api/prisma'))
  .filter((file) => file.endsWith('.prisma'))
  .toSorted()
  .map((file) => [path.join(root, 'apps/api/prisma', file), readFileSync(path.join(root, 'apps/api/prisma', file), 'utf8')]);
const existing = existsSync(folder)
  ? readdirSync(folder)
      .filter((entry) => /^\d{4}_/.test(entry))
      .toSorted()
  : [];

// The engine asks a real server for its version and replays earlier migrations in a scratch database.
const scratch = await mkdtemp(path.join(tmpdir(), 'palestra-migration-'));
const server = new PostgresServer({
  databaseDir: path.join(scratch, 'data'),
  choosePort: freePort,
  password: 'scratch',
  initdbFlags: ['--encoding=UTF8', '--locale=C', '--no-sync'],
  postgresFlags: ['-c', 'listen_addresses=127.0.0.1', '-c', 'unix_socket_directories='],
});
await server.initialise();
await server.start();
/**
 * The engine fails on NOT NULL constraints, which PostgreSQL 18 lists (contype 'n'), and on CHECK; its adapter does not know the type
 * "char" (18). The schema of Prisma has neither.
 */
class Client extends pg.Client {
  query(config, ...rest) {
    const text = config.text?.replace("contype NOT IN ('p', 'u', 'f')", "contype NOT IN ('p', 'u', 'f', 'n', 'c')");
    const callback = rest.pop();
    if (callback) rest.push((error, result) => callback(error, withoutChar(result)));
    const running = super.query(text ? { ...config, text } : config, ...rest);
    return callback ? running : running.then(withoutChar);
  }
}
const withoutChar = (result) => {
  for (const field of result?.fields ?? []) if (field.dataTypeID === 18) field.dataTypeID = 1042;
  return result;
};
const adapter = bindMigrationAwareSqlAdapterFactory(
  new PrismaPg({ connectionString: `postgresql://postgres:scratch@127.0.0.1:${server.port}/postgres`, Client }),
);
const engine = await engineModule.SchemaEngine.new({ datamodels }, () => {}, adapter);
// The engine splits statements at every semicolon, also in comments and function bodies, and runs them without a transaction: no lock lasts.
const inQuotes = (_, _tag, body) => `E'${body.replaceAll('\\', '\\\\').replaceAll("'", "''").replaceAll(';', '\\x3B')}'`;
const sqlOf = (entry) =>
  readFileSync(path.join(folder, entry, 'migration.sql'), 'utf8')
    .replaceAll(/^\s*--.*$/gm, '')
    .replaceAll(/^\s*LOCK TABLE [^;]*;/gm, '')
    .replaceAll(/\$(\w*)\$(.*?)\$\1\$/gs, inQuotes);
const migrationDirectories = existing.map((entry) => ({
  path: entry,
  migrationFile: { path: 'migration.sql', content: { tag: 'ok', value: sqlOf(entry) } },
}));
const { stdout } = await engine.diff({
  from: init
    ? { tag: 'empty' }
    : {
        tag: 'migrations',
        baseDir: folder,
        lockfile: { path: 'migration_lock.toml', content: 'provider = "postgresql"\n' },
        shadowDatabaseUrl: null,
        migrationDirectories,
        shadowDbInitScript: '',
      },
  to: { tag: 'schemaDatamodel', files: datamodels.map(([file, content]) => ({ path: file, content })), configDir: root },
  script: true,
  exitCode: null,
  filters: { externalTables: [], externalEnums: [] },
});
await server.stop();
rmSync(scratch, { recursive: true, force: true });
if (!stdout || stdout.includes('empty migration')) {
  console.log('nothing changed');
  process.exit(0);
}
if (init) for (const entry of existing.filter((entry) => entry.endsWith('_init'))) rmSync(path.join(folder, entry), { recursive: true });
const number = init ? '0001' : String(existing.length + 1).padStart(4, '0');
mkdirSync(path.join(folder, `${number}_${name}`), { recursive: true });
writeFileSync(path.join(folder, 'migration_lock.toml'), 'provider = "postgresql"\n');
writeFileSync(path.join(folder, `${number}_${name}`, 'migration.sql'), stdout);
console.log(`wrote apps/api/prisma/migrations/${number}_${name}/migration.sql (${stdout.split('\n').length} lines)`);
process.exit(0);
