import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { type Artifact, type BuildRequest, type Capabilities, HostingError, type LogLine, packFolder } from '@palestra/hosting';
import { OutboundPolicy } from '@palestra/outbound';
import type { DeployView, HostingLogLine } from '@palestra/protocol';
import { expect } from 'vitest';
import { ChannelRepository } from '../../../apps/api/src/environments/hosting/channels/channel.repository.ts';
import { ChannelsService } from '../../../apps/api/src/environments/hosting/channels/channels.service.ts';
import { DeployRunner } from '../../../apps/api/src/environments/hosting/deploys/deploy-runner.ts';
import { DeploySources } from '../../../apps/api/src/environments/hosting/deploys/deploy-sources.ts';
import { DeployWork } from '../../../apps/api/src/environments/hosting/deploys/deploy-work.ts';
import { Verifier } from '../../../apps/api/src/environments/hosting/deploys/verifier.ts';
import { VersionRows } from '../../../apps/api/src/environments/hosting/deploys/version-rows.ts';
import { InstanceStarter } from '../../../apps/api/src/environments/hosting/instances/instance-starter.ts';
import { HostingLogs } from '../../../apps/api/src/environments/hosting/logs/hosting-logs.service.ts';
import { HostingEngines } from '../../../apps/api/src/environments/hosting/providers/hosting-engines.service.ts';
import { RemoteProvider } from '../../../apps/api/src/environments/hosting/providers/remote-provider.ts';
import { EnvironmentSecrets } from '../../../apps/api/src/environments/hosting/secrets/environment-secrets.ts';
import { EnvironmentAccess } from '../../../apps/api/src/environments/environment.access.ts';
import { EnvironmentRepository } from '../../../apps/api/src/environments/environment.repository.ts';
import { JobQueue } from '../../../apps/api/src/jobs/job-queue.service.ts';
import { SecretKeys } from '../../../apps/api/src/platform/secret-keys.ts';
import { openBlobStore } from '../../../apps/api/src/platform/storage.ts';
import { createLogger } from '../../../apps/api/src/platform/telemetry/logger.ts';
import { Metrics } from '../../../apps/api/src/platform/telemetry/metrics.ts';
import { ChildEngine } from './child-engine.ts';
import { type HostingWorld, startHosting } from './hosting.world.ts';

const KEY = 'k'.repeat(40);
export const WITHIN = { timeout: 60_000, interval: 50 };

/** What a folder of the tests says: variables of `counter-server.mjs`, and how its build behaves. */
export interface CounterSource {
  variables?: Record<string, string>;
  /** Lines of the build log. */
  log?: string[];
  /** The build fails at this line of its log, from 1. */
  failsAt?: number;
  /** The message of its failure. */
  failsWith?: string;
  /** The build ends only when the test lets it. */
  isHeld?: boolean;
  /** Makes the source another one. */
  note?: string;
}

/** An engine for tests that also builds: it copies the source, and runs it as a child process. */
export class BuildingEngine extends ChildEngine {
  readonly builds: BuildRequest[] = [];
  readonly aborted: string[] = [];
  /** Somebody has deleted what it built. */
  hasLost = false;
  readonly #folders: string[] = [];
  #release = () => {};
  #held = Promise.resolve();

  override async capabilities(): Promise<Capabilities> {
    return { ...(await super.capabilities()), builds: true };
  }

  async has(): Promise<boolean> {
    return !this.hasLost;
  }

  /** Builds of sources that say `isHeld` wait until `release`. */
  hold(): void {
    this.#held = new Promise((resolve) => (this.#release = resolve));
  }

  release(): void {
    this.#release();
  }

  override async build(request?: BuildRequest, onLine?: (line: LogLine) => void, signal?: AbortSignal): Promise<never> {
    return (await this.#build(request!, onLine!, signal!)) as never;
  }

  async #build(request: BuildRequest, onLine: (line: LogLine) => void, signal: AbortSignal): Promise<Artifact> {
    if (this.isAway) throw new HostingError('engine_unavailable', 'The engine of the test is away.');
    this.builds.push(request);
    const { source } = request;
    if (source.kind !== 'folder') throw new HostingError('build_failed', `There is no image ${source.image}.`);
    const counter = JSON.parse(await readFile(path.join(source.folder, 'counter.json'), 'utf8')) as CounterSource;
    for (const text of counter.log ?? []) onLine({ at: new Date(), stream: 'stdout', text });
    if (counter.isHeld) {
      const aborted = new Promise<never>((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)));
      await Promise.race([this.#held, aborted]).catch((error: unknown) => {
        this.aborted.push(request.deployId);
        throw error;
      });
    }
    if (counter.failsAt !== undefined)
      throw new HostingError('build_failed', counter.failsWith ?? 'The build failed: it was asked to.', { line: counter.failsAt });
    const folder = await mkdtemp(path.join(tmpdir(), 'palestra-built-'));
    this.#folders.push(folder);
    await cp(source.folder, folder, { recursive: true });
    return {
      kind: 'folder',
      digest: request.sourceDigest,
      folder: path.resolve(import.meta.dirname),
      server: { command: process.execPath, args: ['counter-server.mjs'], cwd: '.', variables: counter.variables ?? {} },
    };
  }

  override async end(): Promise<void> {
    await super.end();
    await Promise.all(this.#folders.map((folder) => rm(folder, { recursive: true })));
  }
}

/** A process that runs deploys. */
export interface DeployWorker {
  /** As `kill -9`: it does no more, and its locks end. */
  stop(): Promise<void>;
  runner: DeployRunner;
}

/** A service that runs no jobs itself, a reconciler, and processes that run deploys. */
export async function startDeploys(overrides: Parameters<typeof startHosting>[0] = {}) {
  const world = await startHosting({ secretKey: KEY, allowCommands: true, ...overrides });
  const engine = new BuildingEngine();
  const { server } = world;
  const { serviceDatabase: database, config } = server;
  const remote = new RemoteProvider(database.pool);
  world.start([engine, remote]);
  const workers = new Set<DeployWorker>();

  async function startWorker(): Promise<DeployWorker> {
    const logger = createLogger('silent');
    const settings = { ...config, jobs: 'here' as const };
    const jobs = new JobQueue(database, new Metrics(), settings, logger);
    const keys = new SecretKeys(KEY);
    const { blobs } = await openBlobStore(config, { url: '' }, keys, { alone: false });
    const logs = new HostingLogs(database, logger);
    const repository = new EnvironmentRepository(database);
    const access = new EnvironmentAccess(repository);
    const sources = new DeploySources(blobs);
    const versions = new VersionRows(database);
    const outbound = new OutboundPolicy('allowed');
    const providers = { get: (name: string) => [engine, remote].find((one) => one.name === name) ?? null };
    const channels = new ChannelsService(access, repository, new ChannelRepository(database), database);
    const work = new DeployWork(
      database,
      repository,
      sources,
      versions,
      new HostingEngines(database, config),
      providers as never,
      new InstanceStarter(database, config),
      new Verifier(outbound, config),
      channels,
      outbound,
    );
    const runner = new DeployRunner(
      jobs,
      database,
      logs,
      new EnvironmentSecrets(database, settings, keys),
      sources,
      versions,
      work,
      settings,
      logger,
    );
    runner.onModuleInit();
    jobs.onApplicationBootstrap();
    const worker = {
      runner,
      async stop() {
        workers.delete(worker);
        await jobs.beforeApplicationShutdown();
        await logs.onApplicationShutdown();
      },
    };
    workers.add(worker);
    return worker;
  }

  return {
    ...world,
    engine,
    startWorker,
    async close() {
      engine.release();
      await Promise.all([...workers].map((worker) => worker.stop()));
      await world.close();
      await engine.end();
    },
  };
}
export type DeploysWorld = Awaited<ReturnType<typeof startDeploys>>;

/** The bytes of a folder as `palestra env deploy` uploads it. */
export async function tarball(source: CounterSource): Promise<Buffer<ArrayBuffer>> {
  const folder = await mkdtemp(path.join(tmpdir(), 'palestra-source-'));
  try {
    await writeFile(path.join(folder, 'counter.json'), JSON.stringify(source));
    await writeFile(path.join(folder, 'environment.mjs'), 'export default {};\n');
    const { archive } = await packFolder(folder);
    const pieces: Buffer[] = [];
    for await (const piece of archive) pieces.push(piece as Buffer);
    return Buffer.concat(pieces);
  } finally {
    await rm(folder, { recursive: true });
  }
}

export const uploaded = (
  { server }: Pick<HostingWorld, 'server'>,
  environment: string,
  body: Buffer<ArrayBuffer> | string,
  query = 'create=true',
  headers: Record<string, string> = {},
) =>
  fetch(`${server.url}/v1/environments/${environment}/deploys?${query}`, {
    method: 'POST',
    headers: { 'x-api-key': server.apiKey, 'content-type': 'application/gzip', ...headers },
    body,
  });

/** Uploads a source and resolves with its deploy. */
export async function upload(world: DeploysWorld, environment: string, source: CounterSource, query?: string): Promise<DeployView> {
  const answer = await uploaded(world, environment, await tarball(source), query);
  const body = (await answer.json()) as DeployView;
  expect(answer.status, JSON.stringify(body)).toBe(202);
  return body;
}

export const deployOf = async ({ server }: Pick<HostingWorld, 'server'>, id: string): Promise<DeployView> =>
  (await server.request('GET', `/v1/deploys/${id}`)).body as DeployView;

/** Resolves with the deploy when it has ended. */
export async function ended(world: DeploysWorld, { id }: Pick<DeployView, 'id'>): Promise<DeployView> {
  await expect.poll(async () => (await deployOf(world, id)).ended_at, WITHIN).not.toBeNull();
  return deployOf(world, id);
}

export async function logOf({ server }: Pick<HostingWorld, 'server'>, id: string): Promise<HostingLogLine[]> {
  const answer = await fetch(`${server.url}/v1/deploys/${id}/logs?limit=10000`, { headers: { 'x-api-key': server.apiKey } });
  const text = await answer.text();
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as HostingLogLine);
}
export const textsOf = async (world: Pick<HostingWorld, 'server'>, id: string) => (await logOf(world, id)).map(({ text }) => text);
