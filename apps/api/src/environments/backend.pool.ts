import { Inject, Injectable, type OnApplicationShutdown } from '@nestjs/common';
import { McpBackend } from '@palestra/mcp/client';
import { OpenEnvBackend } from '@palestra/openenv/client';
import { OrsBackend } from '@palestra/ors/client';
import { outboundAgent, outboundFetch, OutboundPolicy } from '@palestra/outbound';
import { TaskSetBackend, type Backend, type SessionPolicy } from '@palestra/session';
import { HealthCheck } from '@palestra/hosting';
import { CONFIG, type Config } from '../platform/config.ts';
import { BundledEnvironments } from './bundled/bundled-environments.ts';
import type { EnvironmentStatus } from './environment.presenter.ts';
import {
  type EnvironmentRecord,
  type EnvironmentSource,
  type HostedSource,
  type ServerSource,
  sourceOf,
  storedDiscovery,
  type VersionRecord,
} from './environment.record.ts';
import { HostedBackends } from './hosting/instances/hosted-backends.ts';
import type { HostedVersion } from './hosting/instances/hosted-backend.ts';
import { hostingOf } from './hosting/hosting-settings.ts';
import { readSilenceTimeoutMs } from './session-policy.ts';
import { TaskSetRepository } from './task-sets/task-set.repository.ts';

interface Pooled {
  backend: Backend;
  health: HealthCheck | null;
  /** Whether the pool must close it. */
  closable: boolean;
  settings: Settings;
}

/** Settings that an owner may change while the backend is in use. */
interface Settings {
  silenceMs: number;
  /** Of a version that runs here. */
  hosted: HostedVersion['settings'] | null;
}

/** Within this time every process notices that a version was deleted, and ends its sessions. */
const RETIRE_MS = 60_000;

const HEALTH_CONNECT_MS = 2_000;

interface BackendContext {
  outbound: OutboundPolicy;
  allowCommands: boolean;
}

function createBackend(
  source: ServerSource,
  { outbound, allowCommands }: BackendContext,
  settings: Settings,
  deployment?: string,
): Backend {
  switch (source.kind) {
    case 'openenv':
      return new OpenEnvBackend({ url: source.url, outbound });
    case 'mcp':
      return new McpBackend(
        source.url === undefined
          ? { command: source.command[0]!, args: source.command.slice(1), allowCommands }
          : { url: source.url, outbound },
      );
    default:
      return new OrsBackend({
        url: source.url,
        outbound,
        silenceMs: () => settings.silenceMs,
        ...(deployment !== undefined && { deployment }),
      });
  }
}

/** One backend per environment version, created on first use. */
@Injectable()
export class BackendPool implements OnApplicationShutdown {
  readonly #pooled = new Map<string, Pooled>();
  readonly #retired = new Map<Pooled, NodeJS.Timeout>();
  readonly #context: BackendContext;
  readonly #healthAgent: ReturnType<typeof outboundAgent>;

  constructor(
    @Inject(BundledEnvironments) private readonly bundled: BundledEnvironments,
    @Inject(TaskSetRepository) private readonly taskSets: TaskSetRepository,
    @Inject(CONFIG) private readonly config: Config,
    @Inject(OutboundPolicy) private readonly outbound: OutboundPolicy,
    @Inject(HostedBackends) private readonly hosted: HostedBackends,
  ) {
    this.#context = { outbound, allowCommands: config.allowCommands };
    this.#healthAgent = outboundAgent(outbound, HEALTH_CONNECT_MS, {});
  }

  of(environment: EnvironmentRecord, version: VersionRecord): Backend {
    return this.#get(environment, version).backend;
  }

  /** Session settings that the author of a bundled environment declares. */
  declaredPolicy(version: VersionRecord): Partial<SessionPolicy> {
    const source = sourceOf(version);
    return source.kind === 'bundled' ? this.bundled.declaredPolicy(source.name) : {};
  }

  /** Null if this server does not run it. */
  bundledBackend(name: string): Backend | null {
    return this.bundled.isHosted(name) ? this.bundled.backend(name) : null;
  }

  /** A backend for the check of a server that is not registered. The caller closes it. */
  probe(source: ServerSource): Backend {
    return createBackend(source, this.#context, { silenceMs: this.config.silenceTimeoutMs, hosted: null });
  }

  async status(environment: EnvironmentRecord): Promise<EnvironmentStatus> {
    const version = environment.versions[0];
    if (version === undefined) return { status: 'unlinked', detail: 'No server runs this environment yet. Add one by URL.' };
    const source = sourceOf(version);
    if (source.kind === 'bundled') return this.bundled.status(source.name);
    if (source.kind === 'hosted') return this.hosted.status(version.id);
    const { health } = this.#get(environment, version);
    // An MCP server has no health route; the first session shows its state.
    if (health === null) return { status: 'ready', detail: null };
    const report = await health.report();
    return report.healthy ? { status: 'ready', detail: null } : { status: 'unreachable', detail: report.detail };
  }

  /** Stops new sessions of a deleted version, and closes its backend after its sessions had time to end. */
  retire(versionId: string): void {
    const pooled = this.#pooled.get(versionId);
    this.#pooled.delete(versionId);
    if (!pooled?.closable) return;
    const timer = setTimeout(() => {
      this.#retired.delete(pooled);
      pooled.backend.close().catch(() => {});
    }, RETIRE_MS);
    this.#retired.set(pooled, timer.unref());
  }

  async onApplicationShutdown(): Promise<void> {
    for (const timer of this.#retired.values()) clearTimeout(timer);
    const all = [...this.#pooled.values(), ...this.#retired.keys()].filter(({ closable }) => closable);
    this.#pooled.clear();
    this.#retired.clear();
    await Promise.allSettled([this.#healthAgent.destroy(), ...all.map(({ backend }) => backend.close())]);
  }

  #get(environment: EnvironmentRecord, version: VersionRecord): Pooled {
    const source = sourceOf(version);
    const silenceMs = readSilenceTimeoutMs(environment.sessionPolicy) ?? this.config.silenceTimeoutMs;
    const hosted = source.kind === 'hosted' ? placementOf(environment, version) : null;
    const known = this.#pooled.get(version.id);
    if (known) {
      known.settings.silenceMs = silenceMs;
      if (hosted !== null && known.settings.hosted !== null) Object.assign(known.settings.hosted, hosted);
      return known;
    }
    const pooled = this.#open(environment, version, source, { silenceMs, hosted });
    if (version.taskSetId !== null) pooled.backend = new TaskSetBackend(pooled.backend, this.taskSets.source(version.taskSetId));
    this.#pooled.set(version.id, pooled);
    return pooled;
  }

  #open(environment: EnvironmentRecord, version: VersionRecord, source: EnvironmentSource, settings: Settings): Pooled {
    const name = `${environment.owner}/${environment.name}`;
    if (source.kind === 'bundled') return { backend: this.bundled.backend(source.name), health: null, closable: false, settings };
    if (source.kind === 'hosted')
      return { backend: this.#openHosted(version, source, name, settings), health: null, closable: true, settings };
    return {
      backend: createBackend(source, this.#context, settings, name),
      health: source.kind === 'mcp' ? null : new HealthCheck(source.url, { fetch: outboundFetch(this.#healthAgent) }),
      closable: true,
      settings,
    };
  }

  #openHosted(version: VersionRecord, { protocol, provider }: HostedSource, deployment: string, settings: Settings): Backend {
    const remote = provider === 'remote' ? this.outbound : null;
    return this.hosted.create(
      { id: version.id, protocol: protocol ?? 'remote', settings: settings.hosted! },
      { deployment, silenceMs: () => settings.silenceMs, remote },
    );
  }
}

function placementOf(environment: EnvironmentRecord, version: VersionRecord): HostedVersion['settings'] {
  const { concurrency, minWarm } = hostingOf(environment, version);
  return { concurrency, minWarm, isPrivate: environment.isPrivate, discovery: storedDiscovery(version) };
}
