import type {
  Artifact,
  BuildRequest,
  Capabilities,
  InstanceSpec,
  InstanceStats,
  Isolation,
  LogLine,
  Provider,
  RunningInstance,
  RunSettings,
} from '../provider/provider.port.ts';
import { HostingError } from '../provider/hosting-error.ts';
import { HarborBuilder, type HarborRequest } from '../harbor/harbor-builder.ts';
import { HarborInstances, type HarborSpec } from '../harbor/harbor-instances.ts';
import type { HarborRun } from '../harbor/harbor-run.ts';
import { BASE_IMAGES } from './build/dockerfiles.ts';
import { ImageBuilder, type ImageRequest } from './build/image-builder.ts';
import { ensureImage, inspectImage } from './build/image-pull.ts';
import { Engine, EngineError, type EngineInfo } from './engine/engine.ts';
import type { EngineOptions } from './engine/engine-address.ts';
import { LogReaders } from './instance/instance-logs.ts';
import { StatsReader } from './instance/instance-stats.ts';
import { Instances } from './instance/instances.ts';
import { hasNetwork } from './instance/networks.ts';
import type { ImageSpec } from './instance/server-container.ts';
import { DockerSandboxes } from './sandbox/sandboxes.ts';

export interface DockerProviderOptions extends EngineOptions {
  /** Names this service in the engine. Keep it over restarts: what has another one is not ours. Letters, digits and hyphens. */
  installation: string;
  /** Images from which folders are built, and for gateways; defaults: python:3.12-slim and node:22-slim. */
  baseImages?: { python?: string; node?: string };
  /** Path of the Python package `palestra`, its folder or wheel; default: the source beside this service. */
  pythonPackage?: string;
  /** A network of which this service is a member, when it runs in a container; default: ports are published on the engine's machine. */
  network?: string;
  /** CIDRs of private addresses that instances may reach beside public ones, for example of a model server; default: none. */
  reachable?: readonly string[];
  /** Hosts that sandboxes reach at any address, but only by plain HTTP, for example a mirror of packages; default: none. */
  plainHosts?: readonly string[];
  /** For tasks of Harbor: their tests and the processes that serve them; absolute. Without it they are refused. */
  harborFolder?: string;
}

const PULL_MS = 600_000;
/** OCI runtimes of stronger isolation, by the names under which they are installed. */
const RUNTIMES: Record<string, readonly string[]> = {
  sandbox: ['runsc', 'gvisor'],
  vm: ['kata', 'kata-runtime', 'io.containerd.kata.v2'],
};

/** Runs instances as containers of a Docker or Podman engine, also of one that runs without root. */
export class DockerProvider implements Provider {
  readonly name = 'docker';
  readonly sandboxes: DockerSandboxes;
  readonly #engine: Engine;
  readonly #network: string | null;
  readonly #instances: Instances;
  readonly #builder: ImageBuilder;
  readonly #stats: StatsReader;
  readonly #logs: LogReaders;
  readonly #options: DockerProviderOptions;
  readonly #nodeImage: string;
  readonly #harbor: { builder: HarborBuilder; instances: HarborInstances } | null;

  constructor(options: DockerProviderOptions) {
    const { installation, network = null, reachable = [] } = options;
    const images = { ...BASE_IMAGES, ...options.baseImages };
    const engine = new Engine(options);
    const gatewayImage = (signal: AbortSignal) => ensureImage(engine, images.node, PULL_MS, signal);
    this.#engine = engine;
    this.#network = network;
    this.#logs = new LogReaders(engine);
    this.#instances = new Instances({ engine, installation, network, reachable, gatewayImage, logs: this.#logs });
    this.#builder = new ImageBuilder({ engine, installation, images, reachable, pythonPackage: options.pythonPackage ?? null });
    this.#stats = new StatsReader(engine);
    // What environments may reach is not for commands that a model writes: `plainHosts` is.
    const open = { reachable: [], plain: options.plainHosts ?? [] };
    this.sandboxes = new DockerSandboxes({ engine, installation, gatewayImage, network, ...open });
    this.#options = options;
    this.#nodeImage = images.node;
    this.#harbor = options.harborFolder === undefined ? null : this.#withHarbor(options.harborFolder);
  }

  #withHarbor(folder: string) {
    const engine = this.#engine;
    const buildImage = this.#builder.build.bind(this.#builder);
    const runOf = this.#harborRun.bind(this);
    return {
      builder: new HarborBuilder({ engine, folder, buildImage, runOf }),
      instances: new HarborInstances({ folder, engine, engineOptions: this.#options }),
    };
  }

  async capabilities(signal: AbortSignal): Promise<Capabilities> {
    const info = await this.#refused(() => this.#engine.info(signal));
    const network = this.#network;
    if (network !== null && !(await this.#refused(() => hasNetwork(this.#engine, network, signal)))) {
      throw new HostingError('engine_unavailable', `The engine has no network "${network}". Create it, or change PALESTRA_DOCKER_NETWORK.`);
    }
    return {
      isolation: ['none', 'container', ...(['sandbox', 'vm'] as const).filter((level) => runtimeOf(info, level) !== null)],
      // Every instance has a network of its own, whose only way out is the gateway's proxy.
      egress: ['none', 'hosts', 'open'],
      gpus: false,
      limits: info.limits,
      maxMemoryMb: info.memoryMb,
      builds: true,
    };
  }

  build(request: BuildRequest, onLine: (line: LogLine) => void, signal: AbortSignal): Promise<Artifact> {
    return this.#refused(async () => {
      if (!isHarbor(request)) return this.#builder.build(request as ImageRequest, onLine, signal);
      if (this.#harbor === null) throw new HostingError('hosting_unsupported', 'This engine does not run tasks of Harbor.');
      return this.#harbor.builder.build(request, onLine, signal);
    });
  }

  has(artifact: Artifact, signal: AbortSignal): Promise<boolean> {
    return this.#refused(async () => {
      if (artifact.kind === 'harbor') return this.#harbor === null || this.#harbor.builder.has(artifact, signal);
      return artifact.kind !== 'image' || (await inspectImage(this.#engine, artifact.image, signal)) !== null;
    });
  }

  async ensure(spec: InstanceSpec, signal: AbortSignal): Promise<RunningInstance> {
    return this.#refused(async () => {
      const runtime = await this.#runtime(spec.isolation, signal);
      if (spec.resources.gpus > 0) throw new HostingError('hosting_unsupported', 'Instances in Docker or Podman have no GPUs.');
      if (spec.artifact.kind === 'harbor' && this.#harbor !== null)
        return this.#harbor.instances.ensure(spec as HarborSpec, await this.#harborRun(spec, signal), signal);
      if (spec.artifact.kind !== 'image') {
        throw new HostingError('hosting_unsupported', `A container runs images, not an artifact of the kind "${spec.artifact.kind}".`);
      }
      return this.#instances.ensure(spec as ImageSpec, runtime, signal);
    });
  }

  list(signal: AbortSignal): Promise<RunningInstance[]> {
    return this.#refused(async () => {
      const harbor = (await this.#harbor?.instances.list()) ?? [];
      const ids = new Set(harbor.map(({ id }) => id));
      // Containers of tasks have the id of their instance too.
      return [...harbor, ...(await this.#instances.list(signal)).filter(({ id }) => !ids.has(id))];
    });
  }

  remove(id: string, graceMs: number, signal: AbortSignal): Promise<void> {
    this.#stats.forget(id);
    return this.#refused(async () => {
      await this.#harbor?.instances.remove(id, graceMs, this.#options.installation, signal);
      await this.#instances.remove(id, graceMs, signal);
    });
  }

  logs(id: string, since: Date | null, signal: AbortSignal): AsyncIterable<LogLine> {
    if (this.#harbor?.instances.has(id)) return this.#harbor.instances.logs(id, since, signal);
    return this.#logs.follow(id, since, signal);
  }

  stats(id: string, signal: AbortSignal): Promise<InstanceStats | null> {
    if (this.#harbor?.instances.has(id)) return this.#harbor.instances.stats(id);
    return this.#refused(() => this.#stats.read(id, signal));
  }

  prune(keep: ReadonlySet<string>, signal: AbortSignal): Promise<void> {
    return this.#refused(async () => {
      const images = (await this.#harbor?.instances.prune(keep, signal)) ?? [];
      await this.#builder.prune(new Set([...keep, ...images]), signal);
    });
  }

  async close(): Promise<void> {
    // Every request has its own connection, and instances outlive this service.
  }

  /** The OCI runtime of an isolation; null: the engine's default. */
  async #runtime(isolation: Isolation, signal: AbortSignal): Promise<string | null> {
    const runtime = runtimeOf(await this.#engine.info(signal), isolation);
    if (runtime !== null) return runtime || null;
    throw new HostingError('hosting_unsupported', `The engine has no runtime for the isolation "${isolation}" (gVisor or Kata).`);
  }

  async #harborRun({ resources, egress, isolation }: RunSettings, signal: AbortSignal): Promise<HarborRun> {
    const { installation, reachable = [] } = this.#options;
    const runtime = await this.#runtime(isolation, signal);
    return { installation, instance: null, resources, egress, runtime, nodeImage: this.#nodeImage, reachable };
  }

  /** What the engine refuses without a better explanation. */
  async #refused<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof EngineError)) throw error;
      throw new HostingError('instance_failed', `The engine refused (${error.status}): ${error.message}`, { cause: error });
    }
  }
}

/** The OCI runtime of an isolation; an empty text for the engine's default; null if there is none. */
function runtimeOf(info: EngineInfo, isolation: Isolation): string | null {
  const wanted = RUNTIMES[isolation];
  if (wanted === undefined) return '';
  return wanted.find((name) => info.runtimes.includes(name)) ?? null;
}

const isHarbor = (request: BuildRequest): request is HarborRequest =>
  request.source.kind === 'folder' && request.source.plan.kind === 'harbor';
