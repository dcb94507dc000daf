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
import { BASE_IMAGES } from '../docker/build/dockerfiles.ts';
import { HostingError } from '../provider/hosting-error.ts';
import { Builder } from './build/builder.ts';
import type { FolderBuilds } from './build/folder-builder.ts';
import { Cluster, ClusterRefusal, type ClusterOptions, isRefusal } from './cluster/cluster.ts';
import { names } from './cluster/names.ts';
import { type Callers, Guards } from './instance/guards.ts';
import type { ImageSpec, Placement } from './instance/instance-pod.ts';
import { Instances } from './instance/instances.ts';
import { followLog } from './instance/pod-logs.ts';
import { quantity, readStats } from './instance/pod-stats.ts';

export interface KubernetesProviderOptions extends ClusterOptions {
  /** Names this service in the cluster. Keep it over restarts: what has another one is not ours. Letters, digits and hyphens. */
  installation: string;
  /** Who may connect to instances. */
  callers: Callers;
  /** The cluster's network plugin enforces NetworkPolicy. Without it instances are promised no limits of the network. */
  enforcesNetworkPolicy?: boolean;
  /** RuntimeClasses of stronger isolation. */
  runtimeClasses?: { sandbox?: string; vm?: string };
  placement?: Partial<Placement>;
  /** Where folders are built; without it they are refused. */
  builds?: KubernetesBuilds;
}

interface KubernetesBuilds extends Pick<FolderBuilds, 'registry' | 'registrySecret' | 'pythonPackage'> {
  /** Has BuildKit in rootless mode; null: that of its authors. */
  builderImage: string | null;
  /** Base images of folders without a Dockerfile; default: those of the other engines. */
  images: { python?: string; node?: string };
  /** Of the registry, where it has no public address (CIDRs). */
  registryNetworks: readonly string[];
}

const BUILDER_IMAGE = 'docker.io/moby/buildkit:v0.34.2-rootless';

interface Node {
  status?: { allocatable?: Record<string, string> };
}

/** Runs instances as pods of a Kubernetes cluster: docs/adr/0043-kubernetes.md. */
export class KubernetesProvider implements Provider {
  readonly name = 'kubernetes';
  readonly #cluster: Cluster;
  readonly #options: KubernetesProviderOptions;
  readonly #instances: Instances;
  readonly #builder: Builder;

  constructor(options: KubernetesProviderOptions) {
    const { installation, callers, builds } = options;
    const given = { nodeSelector: {}, pullSecrets: [], ...options.placement };
    const registrySecret = builds?.registrySecret ?? null;
    // Nodes pull what builds have pushed.
    const pullSecrets = registrySecret === null ? given.pullSecrets : [...new Set([...given.pullSecrets, registrySecret])];
    const placement = { ...given, pullSecrets };
    const registryNetworks = builds?.registryNetworks ?? [];
    const folders = builds
      ? { ...builds, builderImage: builds.builderImage ?? BUILDER_IMAGE, images: { ...BASE_IMAGES, ...builds.images } }
      : null;
    const cluster = new Cluster(options);
    const guards = new Guards({ cluster, installation, callers, registryNetworks });
    this.#options = options;
    this.#cluster = cluster;
    this.#instances = new Instances({ cluster, guards, installation, placement });
    this.#builder = new Builder({ cluster, guards, installation, placement, folders });
  }

  async capabilities(signal: AbortSignal): Promise<Capabilities> {
    const { runtimeClasses = {}, enforcesNetworkPolicy = false } = this.#options;
    const nodes = await this.#nodes(signal);
    const memory = nodes?.map(({ status }) => quantity(status?.allocatable?.['memory'] ?? '0')) ?? [];
    return {
      isolation: ['none', 'container', ...(['sandbox', 'vm'] as const).filter((level) => runtimeClasses[level] !== undefined)],
      // Network policies know addresses, not the names of hosts.
      egress: enforcesNetworkPolicy ? ['none', 'open'] : ['open'],
      gpus: nodes?.some(({ status }) => quantity(status?.allocatable?.['nvidia.com/gpu'] ?? '0') > 0) ?? false,
      limits: true,
      // A setting of each node (podPidsLimit), not of a pod.
      unlimited: ['pids'],
      maxMemoryMb: memory.length === 0 ? null : Math.floor(Math.max(...memory) / 2 ** 20),
      builds: this.#options.builds !== undefined,
    };
  }

  build(request: BuildRequest, onLine: (line: LogLine) => void, signal: AbortSignal): Promise<Artifact> {
    return this.#refused(() => this.#builder.build(request, onLine, signal));
  }

  ensure(spec: InstanceSpec, signal: AbortSignal): Promise<RunningInstance> {
    return this.#refused(async () => {
      const { artifact, egress, isolation } = spec;
      if (artifact.kind !== 'image') {
        throw new HostingError('hosting_unsupported', `A pod runs images, not an artifact of the kind "${artifact.kind}".`);
      }
      if (egress.kind === 'hosts') {
        throw new HostingError(
          'hosting_unsupported',
          'Network policies of Kubernetes know no names of hosts. Use egress "none" or "open".',
        );
      }
      return this.#instances.ensure({ ...spec, artifact, egress } as ImageSpec, this.#runtimeClass(isolation), signal);
    });
  }

  list(signal: AbortSignal): Promise<RunningInstance[]> {
    return this.#refused(() => this.#instances.list(signal));
  }

  remove(id: string, graceMs: number, signal: AbortSignal): Promise<void> {
    return this.#refused(() => this.#instances.remove(id, graceMs, signal));
  }

  logs(id: string, since: Date | null, signal: AbortSignal): AsyncIterable<LogLine> {
    return followLog({ cluster: this.#cluster, pod: names.server(id), container: 'server' }, since, signal);
  }

  stats(id: string, signal: AbortSignal): Promise<InstanceStats | null> {
    return this.#refused(() => readStats(this.#cluster, id, signal));
  }

  prune(_keep: ReadonlySet<string>, signal: AbortSignal): Promise<void> {
    return this.#refused(() => this.#builder.prune(signal));
  }

  async close(): Promise<void> {
    // Every request has its own connection, and instances outlive this service.
  }

  #runtimeClass(isolation: Isolation): string | null {
    if (isolation === 'none' || isolation === 'container') return null;
    const name = this.#options.runtimeClasses?.[isolation];
    if (name !== undefined) return name;
    const variable = `PALESTRA_KUBERNETES_RUNTIME_CLASS_${isolation.toUpperCase()}`;
    throw new HostingError(
      'hosting_unsupported',
      `The isolation "${isolation}" needs a RuntimeClass. The operator names it in ${variable}.`,
    );
  }

  /** Null if this service may not see nodes. */
  async #nodes(signal: AbortSignal): Promise<Node[] | null> {
    try {
      return await this.#cluster.list<Node>('/api/v1/nodes', '', signal);
    } catch (error) {
      if (error instanceof HostingError && isRefusal(error.cause, 403)) return null;
      throw error;
    }
  }

  /** What the cluster refuses without a better explanation. */
  async #refused<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof ClusterRefusal)) throw error;
      throw new HostingError('instance_failed', `The cluster refused (${error.status}): ${error.message}`, { cause: error });
    }
  }
}
