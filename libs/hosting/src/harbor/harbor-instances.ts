import { existsSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { createRequire } from 'node:module';
import path from 'node:path';
import type { Engine } from '../docker/engine/engine.ts';
import type { EngineOptions } from '../docker/engine/engine-address.ts';
import { ProcessProvider } from '../process/process-provider.ts';
import { HostingError } from '../provider/hosting-error.ts';
import type { InstanceSpec, InstanceStats, LogLine, RunningInstance } from '../provider/provider.port.ts';
import { readManifest } from './harbor-files.ts';
import type { HarborRun } from './harbor-run.ts';
import type { ServeOrder } from './serve-harbor.ts';
import { removeTaskContainers } from './task-containers.ts';

export interface HarborInstancesOptions {
  /** Absolute; for builds and instances. */
  folder: string;
  engine: Engine;
  /** By which instances find the engine. */
  engineOptions: EngineOptions;
}

export type HarborSpec = InstanceSpec & { artifact: { kind: 'harbor' } };

/** Variables by which an engine is found, and its certificates. */
const ENGINE_VARIABLES = ['DOCKER_HOST', 'DOCKER_TLS_VERIFY', 'DOCKER_CERT_PATH', 'XDG_RUNTIME_DIR', 'HOME'];

const program = (): string => createRequire(import.meta.url).resolve('@palestra/hosting/serve-harbor');

/**
 * Instances of Harbor tasks: processes of this service, whose code is not the author's, with containers of the tasks' images. They outlive the
 * service, as other instances do.
 */
export class HarborInstances {
  readonly #options: HarborInstancesOptions;
  readonly #processes: ProcessProvider;

  constructor(options: HarborInstancesOptions) {
    this.#options = options;
    this.#processes = new ProcessProvider({ folder: options.folder });
  }

  /** `run`: of the containers of its tasks. */
  async ensure(spec: HarborSpec, run: HarborRun, signal: AbortSignal): Promise<RunningInstance> {
    const { digest, folder } = spec.artifact;
    if ((await readManifest(folder)) === null)
      throw new HostingError('instance_failed', `The build ${digest} is no longer there. Deploy the version again.`);
    const { host, environment = process.env } = this.#options.engineOptions;
    const engine: EngineOptions = {
      ...(host !== undefined && { host }),
      environment: Object.fromEntries(
        ENGINE_VARIABLES.flatMap((name) => (environment[name] === undefined ? [] : [[name, environment[name]]])),
      ),
    };
    const order: ServeOrder = { engine, run: { ...run, instance: spec.id }, variables: spec.variables };
    const args = [program(), folder, spec.environment.split('/').at(-1)!, '{host}', '{port}'];
    const server = { command: 'node', args, cwd: '.', variables: { PALESTRA_HARBOR: JSON.stringify(order) } };
    // The author's variables are for the tasks: in the process they could change what Node.js runs.
    const own = { variables: {}, egress: { kind: 'open' }, isolation: 'none' } as const;
    return this.#processes.ensure({ ...spec, ...own, artifact: { kind: 'folder', digest, folder, server } }, signal);
  }

  has(id: string): boolean {
    return existsSync(path.join(this.#options.folder, 'instances', id));
  }

  list(): Promise<RunningInstance[]> {
    return this.#processes.list();
  }

  /** Ends the process, then removes what it left in the engine. */
  async remove(id: string, graceMs: number, installation: string, signal: AbortSignal): Promise<void> {
    await this.#processes.remove(id, graceMs, signal);
    await removeTaskContainers(this.#options.engine, installation, id, signal);
  }

  logs(id: string, since: Date | null, signal: AbortSignal): AsyncIterable<LogLine> {
    return this.#processes.logs(id, since, signal);
  }

  stats(id: string): Promise<InstanceStats | null> {
    return this.#processes.stats(id);
  }

  /** Deletes builds that `keep` does not name. Returns the images of those that are left. */
  async prune(keep: ReadonlySet<string>, signal: AbortSignal): Promise<string[]> {
    await this.#processes.prune(keep, signal);
    const builds = path.join(this.#options.folder, 'builds');
    const manifests = await Promise.all((await readdir(builds).catch(() => [])).map((name) => readManifest(path.join(builds, name))));
    return manifests.flatMap((manifest) => manifest?.tasks.map(({ imageId }) => imageId) ?? []);
  }
}
