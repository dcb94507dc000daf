import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { Inject, Injectable, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import { LinkClient } from '@palestra/environment-kit';
import { LocalBackend, type ReadyMessage, SupervisedProcess } from '@palestra/hosting';
import { PalestraError } from '@palestra/protocol';
import type { Backend, SessionPolicy } from '@palestra/session';
import type { Logger } from 'pino';
import { z } from 'zod';
import { CONFIG, type Config } from '../../platform/config.ts';
import { LOGGER } from '../../platform/tokens.ts';
import { DiscoveryService } from '../discovery.service.ts';
import type { EnvironmentStatus } from '../environment.presenter.ts';
import { EnvironmentRepository } from '../environment.repository.ts';
import { SwitchedBackend } from './switched-backend.ts';

/** The namespace of what comes with the product. */
const BUNDLED_OWNER = 'palestra';
const START_DEADLINE_MS = 30_000;
const NOT_HOSTED = 'This server runs without that bundled environment.';

const manifestSchema = z.object({
  environments: z.array(
    z.object({
      name: z.string(),
      description: z.string().default(''),
      readme: z.string().default(''),
      deterministic: z.boolean().default(false),
      idempotent_tools: z.array(z.string()).default([]),
    }),
  ),
});
type Manifest = z.infer<typeof manifestSchema>;

interface Hosted {
  process: SupervisedProcess;
  backend: SwitchedBackend;
}

/**
 * The environments that come with Palestra, each in its own child process, so that a crash or a busy loop in one does not affect the others.
 * At the start they are registered as public environments of the namespace `palestra`.
 */
@Injectable()
export class BundledEnvironments implements OnApplicationBootstrap, OnApplicationShutdown {
  readonly #hosted = new Map<string, Hosted>();
  readonly #declared = new Map<string, Partial<SessionPolicy>>();
  #socketFolder: string | null = null;
  #sockets = 0;

  constructor(
    @Inject(CONFIG) private readonly config: Config,
    @Inject(EnvironmentRepository) private readonly repository: EnvironmentRepository,
    @Inject(DiscoveryService) private readonly discovery: DiscoveryService,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {}

  /** Spawns and registers; answers when every process is ready, or is known to need longer. */
  async onApplicationBootstrap(): Promise<void> {
    if (!this.config.bundledEnvironments) return;
    const main = findMain();
    // A folder that only we can enter: whoever opens a link may act as us.
    this.#socketFolder = await mkdtemp(path.join(tmpdir(), 'palestra-env-'));
    const { environments } = await readManifest(main);
    for (const { name, deterministic, idempotent_tools: idempotentTools } of environments) {
      this.#declared.set(name, { deterministic, idempotentTools });
    }
    for (const { name } of environments) this.#start(name, main);
    for (const environment of environments) await this.#register(environment);
    const deadline = AbortSignal.timeout(START_DEADLINE_MS);
    const late = (error: unknown) => this.logger.error({ err: error }, 'a bundled environment is not ready yet');
    const introduced = environments.map(({ name }) => this.#introduce(name, deadline).catch(late));
    await Promise.all(introduced);
  }

  async onApplicationShutdown(): Promise<void> {
    await Promise.all([...this.#hosted.values()].map(({ process }) => process.stop()));
    await Promise.all([...this.#hosted.values()].map(({ backend }) => backend.close()));
    if (this.#socketFolder) await rm(this.#socketFolder, { recursive: true, force: true });
  }

  /** Answers `environment_starting` while the process does not run, `backend_unreachable` for a name that is bundled no more. */
  backend(name: string): Backend {
    return this.#hosted.get(name)?.backend ?? new SwitchedBackend(() => new PalestraError('backend_unreachable', { detail: NOT_HOSTED }));
  }

  declared(name: string): Partial<SessionPolicy> {
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
    const backend = new SwitchedBackend();
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

  /** Once it runs: what it offers, so that lists show its splits before anybody asked for them. */
  async #introduce(name: string, deadline: AbortSignal): Promise<void> {
    const { process, backend } = this.#hosted.get(name)!;
    await process.whenReady(deadline);
    const version = (await this.repository.find(BUNDLED_OWNER, name))?.versions[0];
    if (version) await this.discovery.refresh(version.id, backend);
  }

  async #register({ name, description, readme }: Manifest['environments'][number]): Promise<void> {
    const known = await this.repository.find(BUNDLED_OWNER, name);
    if (known !== null) {
      if (known.description !== description || known.readmeContent !== readme)
        await this.repository.update(known, { description, readmeContent: readme });
      return;
    }
    const environment = { orgId: null, owner: BUNDLED_OWNER, name, description, isPrivate: false, isHarbor: false, readmeContent: readme };
    await this.repository.createIfMissing(environment, { kind: 'bundled', name });
  }
}

/** What a process says about itself in its ready line. */
function statusOf(ready: ReadyMessage | null): string | null {
  const status = ready?.['status'];
  return typeof status === 'string' ? status : null;
}

/** apps/environments beside apps/api, whether this file runs from `src` or from `dist`. */
function findMain(): string {
  const main = fileURLToPath(new URL('../../../../environments/dist/main.js', import.meta.url));
  if (!existsSync(main)) throw new Error(`The bundled environments are not built: ${main} is missing. Run "npm run build".`);
  return main;
}

async function readManifest(main: string): Promise<Manifest> {
  const { stdout } = await promisify(execFile)(process.execPath, [main, '--manifest'], {
    timeout: START_DEADLINE_MS,
    env: childEnvironment(),
  });
  return manifestSchema.parse(JSON.parse(stdout));
}

/** What a child needs to run, and none of our secrets: no database address, no keys. */
function childEnvironment(): NodeJS.ProcessEnv {
  return pick(['PATH', 'HOME', 'LANG', 'TZ', 'TMPDIR', 'NODE_ENV']);
}

/** coding_env decides by these how it runs what a model wrote. The client of a container engine finds its engine by the variables of the service. */
function isolationEnvironment({ host, isolation: { level, image, engine, allowWeak } }: Config): NodeJS.ProcessEnv {
  const ofEngine = [
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
    ...(image === null ? {} : { ...pick(ofEngine), PALESTRA_SANDBOX_IMAGE: image, PALESTRA_CONTAINER_ENGINE: engine ?? '' }),
  };
}

const pick = (names: string[]): NodeJS.ProcessEnv =>
  Object.fromEntries(names.flatMap((name) => (process.env[name] === undefined ? [] : [[name, process.env[name]]])));
