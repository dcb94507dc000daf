// `taskset -c 0 node hosting-scale-load.mjs INSTANCES`: PostgreSQL, the reconciler and a simulated cluster. Prints the figures as JSON.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { hostingSettingsSchema } from '@palestra/protocol/schemas';
import pg from 'pg';
import { median } from './support/figures.mjs';
import { freePort, root } from './support/processes.mjs';
import { SimulatedCluster } from './support/simulated-cluster.mjs';
import { familyOf } from './support/usage.mjs';

const INSTANCES = Number(process.argv[2]);
const VERSIONS = INSTANCES / 50;
const LIMIT_MS = 300_000;
const IDLE_MS = 20_000;
const TARGET = `SELECT count(*) FILTER (WHERE state = 'ready')::int AS ready, count(*)::int AS living FROM environment_instances WHERE stopped_at IS NULL`;

const load = (file) => import(path.join(root, 'apps/api/dist', file));
const { PostgresServer } = await load('platform/database/postgres-server.js');
const { migrate } = await load('server.js');
const { Database } = await load('platform/database/database.js');
const { createLogger } = await load('platform/telemetry/logger.js');
const { Reconciler } = await load('environments/hosting/instances/reconciler.js');
const { decide } = await load('environments/hosting/instances/decide.js');
const { InstanceLogs } = await load('environments/hosting/instances/instance-logs.js');
const { InstanceSpecs } = await load('environments/hosting/instances/instance-specs.js');
const { HostingLogs } = await load('environments/hosting/logs/hosting-logs.service.js');
const { InstanceLogStore } = await load('environments/hosting/logs/instance-log-store.js');

const folder = mkdtempSync(path.join(tmpdir(), 'palestra-bench-hosting-'));
const postgres = new PostgresServer({
  databaseDir: path.join(folder, 'data'),
  choosePort: freePort,
  password: 'bench',
  initdbFlags: ['--encoding=UTF8', '--locale=C'],
  postgresFlags: ['-c', 'listen_addresses=127.0.0.1', '-c', 'unix_socket_directories='],
});
await postgres.initialise();
await postgres.start();
const connectionString = `postgresql://postgres:bench@127.0.0.1:${postgres.port}/postgres`;
await migrate(connectionString);
const database = new Database(connectionString, 10);
await fill();

const cluster = new SimulatedCluster();
const logger = createLogger('silent');
const secrets = { open: async () => ({}), openAll: async () => ({}) };
const passes = [];
const reconciler = new Reconciler({
  pool: database.pool,
  connectionString,
  logger,
  providers: async () => [cluster],
  ceiling: Infinity,
  logs: new InstanceLogs(new InstanceLogStore(database, new HostingLogs(database, logger), secrets), (error) =>
    logger.warn({ err: error }),
  ),
  spec: (id) => specs.load(id),
  fetch: () => cluster.fetch,
  onPass: (seconds) => passes.push(seconds * 1000),
});
const specs = new InstanceSpecs(database, { get: async () => cluster }, secrets);

// A connection of its own, so that the measurement waits for nothing.
const observer = new pg.Client({ connectionString });
await observer.connect();
const phases = [];
try {
  phases.push(await measured('from nothing to all', () => reconciler.start()));
  const idle = await quiet();
  phases.push(await measured('all again after a third died', () => cluster.kill(1 / 3)));
  process.stdout.write(`${JSON.stringify({ phases, idle, decideMs: decideMs() })}\n`);
} finally {
  await reconciler.stop();
  await observer.end();
  await database.close();
  await postgres.stop();
  rmSync(folder, { recursive: true, force: true });
}

/** Environments of ten organisations, whose instances all run without sessions. */
async function fill() {
  const { prisma } = database;
  const hosting = hostingSettingsSchema.parse({ min_warm: INSTANCES / VERSIONS, max: INSTANCES / VERSIONS });
  const orgs = await Promise.all(Array.from({ length: 10 }, (_, at) => prisma.organisation.create({ data: { name: `org-${at}` } })));
  for (let at = 0; at < VERSIONS; at += 1) {
    const { id: orgId, name: owner } = orgs[at % orgs.length];
    const environment = await prisma.environment.create({ data: { orgId, owner, name: `environment-${at}`, description: '', hosting } });
    const artifact = { kind: 'image', digest: `sha256:${at}`, image: 'image', port: 8000 };
    const version = await prisma.environmentVersion.create({
      data: { environmentId: environment.id, number: 1, sourceKind: 'hosted', protocol: 'remote', provider: 'docker', artifact },
    });
    await prisma.environmentChannel.create({ data: { environmentId: environment.id, name: 'stable', versionId: version.id, reason: '' } });
  }
}

/** Until as many as wanted are ready and nothing else is left. */
async function measured(name, begin) {
  passes.length = 0;
  await begin();
  const [from, before] = [performance.now(), usage()];
  for (const deadline = from + LIMIT_MS; ; await sleep(200)) {
    const { ready, living } = (await observer.query(TARGET)).rows[0];
    const isDone = ready === INSTANCES && living === INSTANCES && cluster.size === INSTANCES && cluster.dead === 0;
    if (isDone) break;
    if (performance.now() > deadline)
      throw new Error(`${name}: ${ready} of ${INSTANCES} are ready after ${LIMIT_MS / 1000} s, ${living} live`);
  }
  const seconds = (performance.now() - from) / 1000;
  return { name, seconds, ...cores(before, usage(), seconds), passMs: median(passes) };
}

async function quiet() {
  const before = usage();
  await sleep(IDLE_MS);
  return cores(before, usage(), IDLE_MS / 1000);
}

function usage() {
  const { user, system } = process.cpuUsage();
  const all = familyOf(process.pid).filter(({ name }) => name === 'postgres');
  return { reconciler: (user + system) / 1e6, postgres: all.reduce((sum, one) => sum + one.cpuSeconds + one.endedCpuSeconds, 0) };
}

function cores(before, after, seconds) {
  return {
    reconcilerCores: (after.reconciler - before.reconciler) / seconds,
    postgresCores: (after.postgres - before.postgres) / seconds,
  };
}

/** Milliseconds of one decision. */
function decideMs() {
  const now = Date.now();
  const versions = Array.from({ length: VERSIONS }, (_, at) => ({
    id: `version-${at}`,
    orgId: `org-${at % 10}`,
    minWarm: INSTANCES / VERSIONS,
    max: INSTANCES / VERSIONS,
    concurrency: 64,
    idleMs: 300_000,
    drainMs: 3_600_000,
    startTimeoutMs: 120_000,
    waiting: 0,
    keep: false,
    crashes: { moments: 0, unready: 0, lastAt: null },
  }));
  const instances = Array.from({ length: INSTANCES }, (_, at) => ({
    id: `instance-${at}`,
    versionId: `version-${at % VERSIONS}`,
    orgId: `org-${at % 10}`,
    state: 'ready',
    sessions: at % 64,
    createdAt: now - at,
    startedAt: now - at,
    drainingAt: null,
    idleSince: null,
    restarts: 0,
    engine: at % 3 === 0 ? 'exited' : 'running',
    exit: at % 3 === 0 ? 'its node ended' : null,
    waiting: null,
    silent: false,
  }));
  const times = Array.from({ length: 50 }, () => {
    const from = performance.now();
    const { remove, start } = decide(versions, instances, Infinity, now);
    if (remove.length !== Math.ceil(INSTANCES / 3) || start.length !== remove.length) throw new Error('decide() decided something else');
    return performance.now() - from;
  });
  return median(times);
}
