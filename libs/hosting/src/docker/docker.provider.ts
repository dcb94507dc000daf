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
} from '../provider/provider.port.ts';
import { HostingError } from '../provider/hosting-error.ts';
import { ImageBuilder } from './build/image-builder.ts';
import { ensureImage } from './build/image-pull.ts';
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
}

const PYTHON = 'docker.io/library/python:3.12-slim';
const NODE = 'docker.io/library/node:22-slim';
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

  constructor(options: DockerProviderOptions) {
    const { installation, network = null, reachable = [] } = options;
    const images = { python: options.baseImages?.python ?? PYTHON, node: options.baseImages?.node ?? NODE };
    const engine = new Engine(options);
    const gatewayImage = (signal: AbortSignal) => ensureImage(engine, images.node, PULL_MS, signal);
    this.#engine = engine;
    this.#network = network;
    this.#logs = new LogReaders(engine);
    this.#instances = new Instances({ engine, installation, network, reachable, gatewayImage, logs: this.#logs });
    this.#builder = new ImageBuilder({ engine, installation, images, reachable, pythonPackage: options.pythonPackage ?? null });
    this.#stats = new StatsReader(engine);
    this.sandboxes = new DockerSandboxes({ engine, installation, gatewayImage, network, reachable, plain: options.plainHosts ?? [] });
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
    return this.#refused(() => this.#builder.build(request, onLine, signal));
  }

  async ensure(spec: InstanceSpec, signal: AbortSignal): Promise<RunningInstance> {
    return this.#refused(async () => {
      const info = await this.#engine.info(signal);
      const runtime = runtimeOf(info, spec.isolation);
      if (runtime === null) {
        throw new HostingError('hosting_unsupported', `The engine has no runtime for the isolation "${spec.isolation}" (gVisor or Kata).`);
      }
      if (spec.resources.gpus > 0) throw new HostingError('hosting_unsupported', 'Instances in Docker or Podman have no GPUs.');
      if (spec.artifact.kind !== 'image') {
        throw new HostingError('hosting_unsupported', `A container runs images, not an artifact of the kind "${spec.artifact.kind}".`);
      }
      return this.#instances.ensure(spec as ImageSpec, runtime || null, signal);
    });
  }

  list(signal: AbortSignal): Promise<RunningInstance[]> {
    return this.#refused(() => this.#instances.list(signal));
  }

  remove(id: string, graceMs: number, signal: AbortSignal): Promise<void> {
    this.#stats.forget(id);
    return this.#refused(() => this.#instances.remove(id, graceMs, signal));
  }

  logs(id: string, since: Date | null, signal: AbortSignal): AsyncIterable<LogLine> {
    return this.#logs.follow(id, since, signal);
  }

  stats(id: string, signal: AbortSignal): Promise<InstanceStats | null> {
    return this.#refused(() => this.#stats.read(id, signal));
  }

  prune(keep: ReadonlySet<string>, signal: AbortSignal): Promise<void> {
    return this.#refused(() => this.#builder.prune(keep, signal));
  }

  async close(): Promise<void> {
    // Every request has its own connection, and instances outlive this service.
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
