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
  WarmPools,
} from '../provider/provider.port.ts';
import { BASE_IMAGES } from '../docker/build/dockerfiles.ts';
import { HostingError } from '../provider/hosting-error.ts';
import { Builder } from './build/builder.ts';
import type { FolderBuilds } from './build/folder-builder.ts';
import { Cluster, ClusterRefusal, type ClusterOptions, isRefusal } from './cluster/cluster.ts';
import { names } from './cluster/names.ts';
import { type Callers, Guards } from './instance/guards.ts';
import { imageSpec, type Placement } from './instance/instance-pod.ts';
import { Instances } from './instance/instances.ts';
import { followLog } from './instance/pod-logs.ts';
import { quantity, readStats } from './instance/pod-stats.ts';
import { AgentSandbox } from './warm/agent-sandbox.ts';
import { Claims } from './warm/claims.ts';
import { VersionPools } from './warm/warm-pools.ts';
import { KubernetesSandboxes } from './sandbox/sandboxes.ts';

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
  /** False: agent-sandbox is not used, although the cluster serves it. */
  agentSandbox?: boolean;
  /** Of sandboxes. */
  sandboxes?: {
    /** Has Node.js; default: the base image of folders. */
    gatewayImage?: string;
    /** Hosts that sandboxes reach at any address, but only by plain HTTP; default: none. */
    plainHosts?: readonly string[];
  };
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
  readonly sandboxes: KubernetesSandboxes;
  readonly #cluster: Cluster;
  readonly #options: KubernetesProviderOptions;
  readonly #instances: Instances;
  readonly #builder: Builder;
  readonly #agentSandbox: AgentSandbox;
  readonly #claims: Claims;
  readonly #pools: VersionPools;

  constructor(options: KubernetesProviderOptions) {
    const { installation, callers, builds, enforcesNetworkPolicy = false } = options;
    const { gatewayImage = BASE_IMAGES.node, plainHosts: plain = [] } = options.sandboxes ?? {};
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
    const guards = new Guards({ cluster, installation, callers, registryNetworks, gatewaysReachAll: plain.length > 0 });
    this.#options = options;
    this.#cluster = cluster;
    this.#instances = new Instances({ cluster, guards, installation, placement });
    const agentSandbox = new AgentSandbox(cluster, options.agentSandbox ?? true);
    this.#agentSandbox = agentSandbox;
    this.#claims = new Claims({ cluster, agentSandbox, installation });
    this.#pools = new VersionPools({ cluster, guards, agentSandbox, installation, placement });
    this.#builder = new Builder({ cluster, guards, installation, placement, folders });
    this.sandboxes = new KubernetesSandboxes({
      cluster,
      guards,
      installation,
      // Without the secret of the registry, whose images are those of environments.
      placement: given,
      runtimeClass: options.runtimeClasses?.sandbox ?? null,
      enforcesNetworkPolicy,
      gatewayImage,
      plain,
      registry: builds?.registry ?? null,
    });
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
      perSession: await this.#agentSandbox.isServed(signal),
    };
  }

  build(request: BuildRequest, onLine: (line: LogLine) => void, signal: AbortSignal): Promise<Artifact> {
    return this.#refused(() => this.#builder.build(request, onLine, signal));
  }

  ensure(spec: InstanceSpec, signal: AbortSignal): Promise<RunningInstance> {
    return this.#refused(async () => {
      const image = imageSpec(spec);
      const runtimeClass = this.#runtimeClass(spec.isolation);
      const bare = () => this.#instances.ensure(image, runtimeClass, signal);
      if (spec.single !== true) return bare();
      const claimed = async () => {
        await this.#pools.provide(image, runtimeClass, signal);
        return this.#claims.ensure(spec.id, spec.versionId, signal);
      };
      return this.#agentSandbox.use(claimed, bare, signal);
    });
  }

  list(signal: AbortSignal): Promise<RunningInstance[]> {
    return this.#refused(async () => {
      const bare = await this.#instances.list(signal);
      const none = () => Promise.resolve([]);
      return [...bare, ...(await this.#agentSandbox.use(() => this.#claims.list(signal), none, signal))];
    });
  }

  remove(id: string, graceMs: number, signal: AbortSignal): Promise<void> {
    return this.#refused(async () => {
      await this.#agentSandbox.use(() => this.#claims.remove(id, signal), nothing, signal);
      await this.#instances.remove(id, graceMs, signal);
    });
  }

  async *logs(id: string, since: Date | null, signal: AbortSignal): AsyncIterable<LogLine> {
    const pod = await this.#podName(id, signal);
    yield* followLog({ cluster: this.#cluster, pod, container: 'server' }, since, signal);
  }

  stats(id: string, signal: AbortSignal): Promise<InstanceStats | null> {
    return this.#refused(async () => readStats(this.#cluster, await this.#podName(id, signal), signal));
  }

  get warmPools(): WarmPools {
    return {
      list: (signal) =>
        this.#refused(() =>
          this.#agentSandbox.use(
            () => this.#pools.list(signal),
            () => Promise.resolve([]),
            signal,
          ),
        ),
      keep: (spec, replicas, signal) =>
        this.#refused(() => {
          const runtimeClass = this.#runtimeClass(spec.isolation);
          return this.#agentSandbox.use(() => this.#pools.keep(imageSpec(spec), runtimeClass, replicas, signal), nothing, signal);
        }),
      remove: (versionId, signal) =>
        this.#refused(() => this.#agentSandbox.use(() => this.#pools.remove(versionId, signal), nothing, signal)),
    };
  }

  prune(_keep: ReadonlySet<string>, signal: AbortSignal): Promise<void> {
    return this.#refused(() => this.#builder.prune(signal));
  }

  async close(): Promise<void> {
    // Every request has its own connection, and instances outlive this service.
  }

  async #podName(id: string, signal: AbortSignal): Promise<string> {
    const none = () => Promise.resolve(null);
    const claimed = await this.#agentSandbox.use(() => this.#claims.podName(id, signal), none, signal);
    return claimed ?? names.server(id);
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

const nothing = (): Promise<void> => Promise.resolve();
