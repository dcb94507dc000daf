import path from 'node:path';
import type { Artifact, Provider } from '@palestra/hosting';
import { hostingSettingsSchema } from '@palestra/protocol/schemas';
import type { HostingSettingsInput } from '@palestra/protocol';
import type pg from 'pg';
import { Reconciler } from '../../../apps/api/src/environments/hosting/instances/reconciler.ts';
import { InstanceLogs } from '../../../apps/api/src/environments/hosting/instances/instance-logs.ts';
import { InstanceSpecs } from '../../../apps/api/src/environments/hosting/instances/instance-specs.ts';
import { HostingLogs } from '../../../apps/api/src/environments/hosting/logs/hosting-logs.service.ts';
import { InstanceLogStore } from '../../../apps/api/src/environments/hosting/logs/instance-log-store.ts';
import { RemoteProvider } from '../../../apps/api/src/environments/hosting/providers/remote-provider.ts';
import { EnvironmentSecrets } from '../../../apps/api/src/environments/hosting/secrets/environment-secrets.ts';
import { SecretKeys } from '../../../apps/api/src/platform/secret-keys.ts';
import { createLogger } from '../../../apps/api/src/platform/telemetry/logger.ts';
import type { Prisma } from '../../../apps/api/src/platform/generated/prisma/client.ts';
import { startServer, type TestServer } from '../../support/server.ts';
import { ask } from '../sessions/session-requests.ts';
import { ChildEngine } from './child-engine.ts';

export interface InstanceRow {
  id: string;
  version_id: string;
  state: string;
  endpoint: string | null;
  detail: string | null;
  restarts: number;
  stopped_at: Date | null;
  ready_at: Date | null;
  created_at: Date;
}

/** A deployed environment of the server's organisation. */
export interface Deployed {
  environmentId: string;
  versionId: string;
  /** `owner/name` */
  name: string;
}

/** A service whose instances run on an engine of the test, and the reconciler, which can be killed and started again. */
export async function startHosting(overrides: Parameters<typeof startServer>[0] = {}) {
  const server = await startServer({ jobs: 'off', silenceTimeoutMs: 20_000, ...overrides });
  const engine = new ChildEngine();
  const reconcilers = new Set<Reconciler>();

  const start = (
    providers: readonly Provider[] = [engine, new RemoteProvider(server.serviceDatabase.pool)],
    pool = server.serviceDatabase.pool,
  ): Reconciler => {
    const { serviceDatabase: database, config } = server;
    const logger = createLogger('silent');
    const secrets = new EnvironmentSecrets(database, config, new SecretKeys('k'.repeat(40)));
    const find = (name: string) => providers.find((provider) => provider.name === name) ?? null;
    const specs = new InstanceSpecs(database, { get: async (name) => find(name) }, secrets);
    const reconciler = new Reconciler({
      pool,
      connectionString: database.connectionString,
      logger,
      providers: async () => providers,
      ceiling: config.limits.instances.org,
      logs: new InstanceLogs(new InstanceLogStore(database, new HostingLogs(database, logger), secrets), () => {}),
      spec: (id) => specs.load(id),
      poolSpec: (versionId) => specs.loadVersion(versionId),
      fetch: () => globalThis.fetch,
    });
    reconciler.start();
    reconcilers.add(reconciler);
    return reconciler;
  };

  return {
    server,
    engine,
    start,
    /** Another process takes over. */
    async restart() {
      const before = [...reconcilers];
      start();
      for (const reconciler of before) {
        await reconciler.stop();
        reconcilers.delete(reconciler);
      }
    },
    async close() {
      await Promise.all([...reconcilers].map((reconciler) => reconciler.stop()));
      await engine.end();
      await server.close();
    },
  };
}
export type HostingWorld = Awaited<ReturnType<typeof startHosting>>;
/** What `deploy` needs of a world. */
export interface Deployable {
  server: Pick<TestServer, 'database' | 'request'>;
}

export const query = async <Row extends pg.QueryResultRow>({ server }: Deployable, text: string, values: unknown[] = []): Promise<Row[]> =>
  (await server.database.pool.query<Row>(text, values)).rows;

export const instancesOf = (world: Deployable, { environmentId }: Deployed): Promise<InstanceRow[]> =>
  query<InstanceRow>(world, 'SELECT * FROM environment_instances WHERE environment_id = $1 ORDER BY created_at, id', [environmentId]);

export const livingOf = async (world: Deployable, deployed: Deployed): Promise<InstanceRow[]> =>
  (await instancesOf(world, deployed)).filter(({ stopped_at: stoppedAt }) => stoppedAt === null);

/** The program of an instance. */
export const counterArtifact = (variables: Record<string, string> = {}): Artifact => ({
  kind: 'folder',
  digest: `sha256:${JSON.stringify(variables)}`,
  folder: path.resolve(import.meta.dirname),
  server: { command: process.execPath, args: ['counter-server.mjs'], cwd: '.', variables },
});

const DISCOVERY = {
  variants: [
    {
      name: 'counter',
      is_default: true,
      splits: [{ name: 'train', type: 'train', num_tasks: 10 }],
      tools: { tools: [{ name: 'add', description: 'Adds one and returns the count.', input_schema: { type: 'object' } }] },
    },
  ],
  discovered_at: new Date().toISOString(),
};

/** As a finished deploy leaves it: an environment with settings, a version, and the channel `stable`. */
export async function deploy(
  world: Deployable,
  name: string,
  settings: HostingSettingsInput = {},
  artifact: Artifact = counterArtifact(),
  version: { channel?: string | null; protocol?: string; sessions?: object } = {},
): Promise<Deployed> {
  const { prisma } = world.server.database;
  const { body } = await world.server.request('POST', '/v1/environments', { body: { name, description: '', isPrivate: true } });
  const hosting = hostingSettingsSchema.parse({ egress: 'open', ...settings });
  const sessionPolicy = version.sessions === undefined ? {} : { sessionPolicy: version.sessions };
  await prisma.environment.update({ where: { id: body.id }, data: { hosting, ...sessionPolicy } });
  const deployed = { environmentId: body.id as string, versionId: '', name: `${body.owner}/${name}` };
  deployed.versionId = await addVersion(world, deployed, artifact, version.protocol);
  const channel = version.channel === undefined ? 'stable' : version.channel;
  if (channel !== null)
    await prisma.environmentChannel.create({
      data: { environmentId: body.id, name: channel, versionId: deployed.versionId, reason: 'Deployed.' },
    });
  return deployed;
}

export async function addVersion(
  world: Deployable,
  { environmentId }: Pick<Deployed, 'environmentId'>,
  artifact: Artifact,
  protocol = 'remote',
): Promise<string> {
  const { prisma } = world.server.database;
  const number = (await prisma.environmentVersion.count({ where: { environmentId } })) + 1;
  const { id } = await prisma.environmentVersion.create({
    data: {
      environmentId,
      number,
      sourceKind: 'hosted',
      protocol,
      provider: { urls: 'remote', image: 'docker', harbor: 'docker', folder: 'process' }[artifact.kind],
      artifact: artifact as unknown as Prisma.InputJsonValue,
      artifactDigest: artifact.digest,
      discovery: DISCOVERY,
      discoveredAt: new Date(),
    },
  });
  return id;
}

/** A client of the world's server, or of another replica. */
export const clientOf = ({ server }: Pick<HostingWorld, 'server'>, at: Pick<TestServer, 'url'> = server) => ({
  /** Opens a session; its SID. */
  async open(name: string, index = 0): Promise<string> {
    const headers = { 'x-deployment': name };
    const key = server.apiKey;
    const created = await ask(at, 'POST', '/create_session', { body: {}, headers, key });
    const refuse = ({ status, text }: { status: number; text: string }) =>
      Object.assign(new Error(`${status}: ${text}`), JSON.parse(text) as { code: string });
    if (created.status !== 200) throw refuse(created);
    const sid = /data: ?(\S+)/.exec(created.text)![1]!;
    const answer = await ask(at, 'POST', '/create', { sid, headers, key, body: { split: 'train', index } });
    if (answer.status !== 200) throw refuse(answer);
    return sid;
  },
  /** Calls `add`; `version:pid:count`, or the error code. */
  async add(sid: string, input: object = {}): Promise<string> {
    const answer = await ask(at, 'POST', '/call', { sid, key: server.apiKey, body: { name: 'add', input } });
    if (answer.status !== 200) return (JSON.parse(answer.text) as { code: string }).code;
    if (answer.text.includes('data: Session lost')) return 'session_lost';
    return /\d+:\d+:\d+[^"\\]*/.exec(answer.text)?.[0] ?? answer.text;
  },
  async end(sid: string): Promise<void> {
    await ask(at, 'POST', '/delete', { sid, key: server.apiKey });
  },
});
