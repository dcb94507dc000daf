import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { Inject, Injectable, type OnApplicationBootstrap, type OnModuleInit, type OnApplicationShutdown } from '@nestjs/common';
import { LinkClient } from '@palestra/environment-kit';
import { LocalBackend, type ReadyMessage, SupervisedProcess } from '@palestra/hosting';
import { PalestraError } from '@palestra/protocol';
import { environmentReportSchema } from '@palestra/protocol/schemas';
import type { Backend, SessionPolicy } from '@palestra/session';
import type { Logger } from 'pino';
import { z } from 'zod';
import { CONFIG, type Config } from '../../platform/config.ts';
import { LOGGER } from '../../platform/tokens.ts';
import { DiscoveryService } from '../discovery.service.ts';
import type { EnvironmentStatus } from '../environment.presenter.ts';
import { EnvironmentRepository } from '../environment.repository.ts';
import { RestartableBackend } from './restartable-backend.ts';

/** The namespace of bundled environments. */
const BUNDLED_OWNER = 'palestra';
const START_DEADLINE_MS = 30_000;
const NOT_HOSTED = 'This server does not run the bundled environment. Set PALESTRA_BUNDLED_ENVIRONMENTS=1 to start it.';

const manifestSchema = z.object({
  environments: z.array(
    z.object({
      name: z.string(),
      version: z.int().default(1),
      description: z.string().default(''),
      readme: z.string().default(''),
      deterministic: z.boolean().default(false),
      idempotent_tools: z.array(z.string()).default([]),
      report: environmentReportSchema.nullable().default(null),
    }),
  ),
});
type Manifest = z.infer<typeof manifestSchema>;

interface Hosted {
  process: SupervisedProcess;
  backend: RestartableBackend;
}

/**
 * The environments that come with Palestra, each in its own child process, so that a crash or a busy loop in one does not affect the
 * others. At the start they are registered as public environments of the namespace `palestra`.
 */
@Injectable()
export class BundledEnvironments implements OnModuleInit, OnApplicationBootstrap, OnApplicationShutdown {
  readonly #hosted = new Map<string, Hosted>();
  readonly #declared = new Map<string, Partial<SessionPolicy>>();
  #manifest: Manifest['environments'] = [];
  #socketFolder: string | null = null;
  #sockets = 0;

  constructor(
    @Inject(CONFIG) private readonly config: Config,
    @Inject(EnvironmentRepository) private readonly repository: EnvironmentRepository,
    @Inject(DiscoveryService) private readonly discovery: DiscoveryService,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {}

  /**
   * Reads what they declare, before the sessions of an earlier process are looked at: those of a deterministic environment are restored,
   * the others are lost.
   */
  async onModuleInit(): Promise<void> {
    if (!this.config.bundledEnvironments) return;
    const { environments } = await readManifest(findMain());
    this.#manifest = environments;
    for (const { name, deterministic, idempotent_tools: idempotentTools } of environments) {
      this.#declared.set(name, { deterministic, idempotentTools });
    }
  }

  /** Starts and registers them. Resolves when every process is ready or the deadline has passed. */
  async onApplicationBootstrap(): Promise<void> {
    if (!this.config.bundledEnvironments) return;
    const main = findMain();
    // Only this user can enter the folder: a process that opens a link has our rights.
    this.#socketFolder = await mkdtemp(path.join(tmpdir(), 'palestra-env-'));
    const environments = this.#manifest;
    for (const { name } of environments) this.#start(name, main);
    for (const environment of environments) await this.#register(environment);
    const deadline = AbortSignal.timeout(START_DEADLINE_MS);
    const late = (error: unknown) => this.logger.error({ err: error }, 'a bundled environment is not ready yet');
    const discoveries = environments.map(({ name }) => this.#discover(name, deadline).catch(late));
    await Promise.all(discoveries);
  }

  async onApplicationShutdown(): Promise<void> {
    await Promise.all([...this.#hosted.values()].map(({ process }) => process.stop()));
    await Promise.all([...this.#hosted.values()].map(({ backend }) => backend.close()));
    if (this.#socketFolder) await rm(this.#socketFolder, { recursive: true, force: true });
  }

  /**
   * Its requests fail with `environment_starting` while the process does not run, and with `backend_unreachable` if no such environment is
   * bundled.
   */
  backend(name: string): Backend {
    return (
      this.#hosted.get(name)?.backend ?? new RestartableBackend(() => new PalestraError('backend_unreachable', { detail: NOT_HOSTED }))
    );
  }

  isHosted(name: string): boolean {
    return this.#hosted.has(name);
  }

  declaredPolicy(name: string): Partial<SessionPolicy> {
    return this.#declared.get(name) ?? {};
  }

  pid(name: string): number | null {
    return this.#hosted.get(name)?.process.pid ?? null;
  }

  status(name: string): EnvironmentStatus {
    const process = this.#hosted.get(name)?.process;
    if (process === undefined) return { status: 'unreachable', detail: NOT_HOSTED };
    if (process.state === 'ready') return { status: 'ready', detail: statusOf(process.ready) };
    return { status: 'starting', detail: process.lastExit === null ? null : `The process ${process.lastExit}.` };
  }

  #start(name: string, main: string): void {
    const backend = new RestartableBackend();
    const process = new SupervisedProcess({
      name: `${BUNDLED_OWNER}/${name}`,
      command: globalThis.process.execPath,
      args: () => [main, name, '--link', path.join(this.#socketFolder!, `${name}-${(this.#sockets += 1)}.sock`), '--exit-with-parent'],
      env: { ...childEnvironment(), ...isolationEnvironment(this.config) },
      onReady: (message) => {
        backend.attach(new LocalBackend(new LinkClient(String(message['link']))));
        this.logger.info({ environment: name, pid: process.pid }, 'bundled environment ready');
      },
      onLost: () => {
        backend.detach();
        this.logger.warn({ environment: name, exit: process.lastExit, log: process.logs().slice(-20) }, 'bundled environment died');
      },
    });
    this.#hosted.set(name, { process, backend });
    process.start();
  }

  /** Reads its splits and tools when it runs, so that lists show them before the first request. */
  async #discover(name: string, deadline: AbortSignal): Promise<void> {
    const { process, backend } = this.#hosted.get(name)!;
    await process.whenReady(deadline);
    const version = (await this.repository.find(BUNDLED_OWNER, name))?.versions[0];
    if (version) await this.discovery.refresh(version.id, backend);
  }

  async #register({ name, version, description, readme, report }: Manifest['environments'][number]): Promise<void> {
    const source = { kind: 'bundled', name } as const;
    const known = await this.repository.find(BUNDLED_OWNER, name);
    if (known === null) {
      const environment = {
        orgId: null,
        owner: BUNDLED_OWNER,
        name,
        description,
        isPrivate: false,
        isHarbor: false,
        readmeContent: readme,
      };
      await this.repository.createIfMissing(environment, source, version);
    } else {
      if (known.description !== description || known.readmeContent !== readme)
        await this.repository.update(known, { description, readmeContent: readme });
      if ((known.versions[0]?.number ?? 0) < version) await this.repository.ensureVersion(known.id, version, source);
    }
    if (report === null) return;
    const registered = await this.repository.findVersion(BUNDLED_OWNER, name, version);
    if (registered?.versions[0]) await this.repository.saveReport(registered, registered.versions[0].id, report);
  }
}

/** The status text of a process's ready line. */
function statusOf(ready: ReadyMessage | null): string | null {
  const status = ready?.['status'];
  return typeof status === 'string' ? status : null;
}

function findMain(): string {
  try {
    return createRequire(import.meta.url).resolve('@palestra/environments/main');
  } catch (error) {
    throw new Error('The package @palestra/environments is not installed, or not built.', { cause: error });
  }
}

async function readManifest(main: string): Promise<Manifest> {
  const { stdout } = await promisify(execFile)(process.execPath, [main, '--manifest'], {
    timeout: START_DEADLINE_MS,
    env: childEnvironment(),
  });
  return manifestSchema.parse(JSON.parse(stdout));
}

/** The variables that a child needs, without secrets such as database addresses and keys. */
function childEnvironment(): NodeJS.ProcessEnv {
  return pick(['PATH', 'HOME', 'LANG', 'TZ', 'TMPDIR', 'NODE_ENV']);
}

/**
 * Variables that tell coding_env how to isolate programs of models. A container client finds its engine by the variables of the service.
 */
function isolationEnvironment({ host, isolation: { level, image, engine, allowWeak } }: Config): NodeJS.ProcessEnv {
  const engineVariables = [
    'XDG_RUNTIME_DIR',
    'DOCKER_HOST',
    'DOCKER_CONTEXT',
    'DOCKER_CONFIG',
    'DOCKER_CERT_PATH',
    'DOCKER_TLS_VERIFY',
    'CONTAINER_HOST',
    'CONTAINERS_CONF',
  ];
  return {
    HOST: host,
    PALESTRA_WEAK_ISOLATION: allowWeak ? '1' : '0',
    ...(level === null ? {} : { PALESTRA_ISOLATION: level }),
    ...(image === null ? {} : { ...pick(engineVariables), PALESTRA_SANDBOX_IMAGE: image, PALESTRA_CONTAINER_ENGINE: engine ?? '' }),
  };
}

const pick = (names: string[]): NodeJS.ProcessEnv =>
  Object.fromEntries(names.flatMap((name) => (process.env[name] === undefined ? [] : [[name, process.env[name]]])));
