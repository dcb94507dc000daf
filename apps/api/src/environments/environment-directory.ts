import { Inject, Injectable } from '@nestjs/common';
import { type Clock, SingleFlight } from '@palestra/kit';
import { PalestraError } from '@palestra/protocol';
import {
  type Caller,
  defaultSessionPolicy,
  type EnvironmentDirectory,
  type HostedEnvironment,
  type SessionPolicy,
} from '@palestra/session';
import { LRUCache } from 'lru-cache';
import { CONFIG, type Config } from '../platform/config.ts';
import { retryDatabase } from '../platform/database/database-retry.ts';
import { atMost } from '../platform/limits.ts';
import { CLOCK } from '../platform/tokens.ts';
import { BackendPool } from './backend.pool.ts';
import { EnvironmentAccess, maySee } from './environment.access.ts';
import { type EnvironmentRecord, STABLE, type VersionRecord } from './environment.record.ts';
import { EnvironmentRepository } from './environment.repository.ts';
import { isOfCanary } from './hosting/channels/canary.ts';
import { ChannelRepository } from './hosting/channels/channel.repository.ts';
import { HostingEvents } from './hosting/hosting-events.ts';
import { hostingOf } from './hosting/hosting-settings.ts';
import { readSessionPolicy } from './session-policy.ts';

/** Changes by other replicas are visible after this time; own changes immediately. */
const MAX_AGE_MS = 5_000;
/** Bounds the memory for unknown names. */
const MAX_ENTRIES = 5_000;

/** Resolves deployments by name, without SQL on the hot path. */
@Injectable()
export class RegistryDirectory implements EnvironmentDirectory {
  readonly #resolved;
  readonly #versions;
  readonly #resolving = new SingleFlight<HostedEnvironment>();
  readonly #loading = new SingleFlight<HostedEnvironment>();

  constructor(
    @Inject(EnvironmentRepository) private readonly repository: EnvironmentRepository,
    @Inject(EnvironmentAccess) private readonly access: EnvironmentAccess,
    @Inject(BackendPool) private readonly backends: BackendPool,
    @Inject(ChannelRepository) private readonly channels: ChannelRepository,
    @Inject(HostingEvents) events: HostingEvents,
    @Inject(CONFIG) private readonly config: Config,
    // The seventh parameter: what another process promotes or rolls back counts here at once.
    @Inject(CLOCK) clock: Clock,
  ) {
    events.onChange(() => this.invalidate());
    const options = { max: MAX_ENTRIES, ttl: MAX_AGE_MS, ttlResolution: 0, perf: clock };
    this.#resolved = new LRUCache<string, HostedEnvironment>(options);
    this.#versions = new LRUCache<string, HostedEnvironment>(options);
  }

  async resolve(deployment: string | null, caller: Caller): Promise<HostedEnvironment> {
    const key = JSON.stringify([deployment, caller.anonymous ? null : caller.orgId]);
    const known = this.#resolved.get(key);
    if (known !== undefined) return known;
    return this.#resolving.do(key, async () => {
      const hosted = await this.#resolve(deployment, caller);
      this.#resolved.set(key, hosted);
      return hosted;
    });
  }

  async version(versionId: string): Promise<HostedEnvironment> {
    const known = this.#versions.get(versionId);
    if (known !== undefined) return known;
    return this.#loading.do(versionId, async () => {
      const environment = await retryDatabase(() => this.repository.findVersionById(versionId));
      if (environment === null) {
        this.#versions.delete(versionId);
        throw new PalestraError('session_lost', { detail: 'Session lost: the environment that it ran on was deleted.' });
      }
      return this.#host(environment);
    });
  }

  /** Clears cached names after a change, and deleted versions. */
  invalidate(deletedVersionIds: string[] = []): void {
    this.#resolved.clear();
    for (const versionId of deletedVersionIds) this.#versions.delete(versionId);
  }

  async #resolve(deployment: string | null, caller: Caller): Promise<HostedEnvironment> {
    const fallback = this.config.fallbackDeployment;
    if (deployment === null || deployment === '') {
      if (fallback === null)
        throw new PalestraError('deployment_not_found', { detail: 'Deployment not found. Name one in the X-Deployment header.' });
      return this.#find(fallback, caller);
    }
    try {
      return await this.#find(deployment, caller);
    } catch (error) {
      if (fallback === null || !(error instanceof PalestraError) || error.code !== 'deployment_not_found') throw error;
      return this.#find(fallback, caller);
    }
  }

  async #find(deployment: string, caller: Caller): Promise<HostedEnvironment> {
    const { owner, name, selector } = parseDeployment(deployment);
    const environment = owner === null ? await this.#byName(name, caller) : await this.repository.find(owner, name);
    if (environment === null || !maySee(environment, caller)) throw new PalestraError('deployment_not_found');
    const found = await this.#select(environment, selector);
    if (found === null) {
      const missing = selector === null || selector === NEWEST ? 'has no server yet' : `has no version or channel ${selector}`;
      throw new PalestraError('deployment_not_found', {
        detail: `Deployment not found. ${environment.owner}/${environment.name} ${missing}.`,
      });
    }
    return found;
  }

  /** `selector`: a number, `latest` (the newest version) or a channel; null = `stable`, or the newest version where nothing was deployed. */
  async #select(environment: EnvironmentRecord, selector: string | null): Promise<HostedEnvironment | null> {
    const { owner, name } = environment;
    if (selector === NEWEST) return this.#hostOrNull(await this.repository.findNewest(owner, name));
    if (selector !== null && /^\d/.test(selector))
      return this.#hostOrNull(await this.repository.findVersion(owner, name, Number(selector)));
    const isDeployed = environment.hosting !== null;
    const channel = isDeployed ? await this.channels.find(environment.id, selector ?? STABLE) : null;
    if (channel === null) return selector === null ? this.#hostOrNull(environment) : null;
    const current = this.#host({ ...environment, versions: [channel.version] });
    const { canaryVersion: canary, canaryPercent: percent } = channel;
    if (canary === null || percent === 0) return current;
    const other = this.#host({ ...environment, versions: [canary] });
    // A client speaks one protocol with both: messages of OpenEnv clients pass through only to OpenEnv servers.
    const isAlike = (current.backend.native === undefined) === (other.backend.native === undefined);
    return isAlike ? { ...current, forSession: (sid) => (isOfCanary(sid, percent) ? other : current) } : current;
  }

  #hostOrNull(environment: EnvironmentRecord | null): HostedEnvironment | null {
    return environment === null || environment.versions.length === 0 ? null : this.#host(environment);
  }

  async #byName(name: string, caller: Caller): Promise<EnvironmentRecord | null> {
    const { found, candidates } = await this.access.byName(caller, name);
    if (found !== null || candidates.length === 0) return found;
    const names = candidates.map((environment) => `${environment.owner}/${environment.name}`).join(', ');
    throw new PalestraError('deployment_not_found', {
      detail: `Deployment not found. Several environments have the name '${name}': ${names}. Add the owner.`,
    });
  }

  /** Settings of the owner override the author's declarations, which override the server's defaults. */
  #policy(environment: EnvironmentRecord, version: VersionRecord): SessionPolicy {
    const declared = version.sourceKind === 'bundled' ? this.backends.declaredPolicy(version) : {};
    const defaults = { ...defaultSessionPolicy, heartbeatTimeoutMs: this.config.sessionIdleTimeoutMs };
    const policy = { ...defaults, ...declared, ...readSessionPolicy(environment.sessionPolicy) };
    if (version.sourceKind !== 'hosted') return policy;
    const { concurrency, max } = hostingOf(environment, version);
    return { ...policy, capacity: atMost(concurrency * max, policy.capacity) };
  }

  #host(environment: EnvironmentRecord): HostedEnvironment {
    const version = environment.versions[0]!;
    const hosted: HostedEnvironment = {
      environmentId: environment.id,
      versionId: version.id,
      owner: environment.owner,
      name: environment.name,
      backend: this.backends.of(environment, version),
      policy: this.#policy(environment, version),
      // Except for ORS servers, the API process that opened the session holds the connection or the process.
      owned: (version.sourceKind === 'hosted' ? version.protocol : version.sourceKind) !== 'remote',
      sharedCapacity: version.sourceKind === 'hosted',
      about: {
        description: environment.description,
        readme: environment.readmeContent,
        version: version.number,
        githubUrl: environment.externalGithubUrl,
      },
    };
    this.#versions.set(version.id, hosted);
    return hosted;
  }
}

/** Selects the newest version. No channel has this name. */
const NEWEST = 'latest';

/** `name`, `owner/name`, `owner/name@3`, `owner/name@latest` or `owner/name@channel`. `selector`: what follows the `@`. */
export function parseDeployment(deployment: string): { owner: string | null; name: string; selector: string | null } {
  const match = /^(?:([^/]*)\/)?(.*?)(?:@(\d{1,9}|[a-z][a-z0-9-]{0,31}))?$/.exec(deployment.trim());
  return { owner: match?.[1] || null, name: match?.[2] ?? '', selector: match?.[3] ?? null };
}
