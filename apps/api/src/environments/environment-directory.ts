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
import { CLOCK } from '../platform/tokens.ts';
import { BackendPool } from './backend.pool.ts';
import { EnvironmentAccess, maySee } from './environment.access.ts';
import type { EnvironmentRecord, VersionRecord } from './environment.record.ts';
import { EnvironmentRepository } from './environment.repository.ts';
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
    @Inject(CONFIG) private readonly config: Config,
    @Inject(CLOCK) clock: Clock,
  ) {
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
      const environment = await this.repository.findVersionById(versionId);
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
    const { owner, name, number } = parseDeployment(deployment);
    const environment = owner === null ? await this.#byName(name, caller) : await this.repository.find(owner, name);
    if (environment === null || !maySee(environment, caller)) throw new PalestraError('deployment_not_found');
    const pinned = number === null ? environment : await this.repository.findVersion(environment.owner, environment.name, number);
    if (pinned === null || pinned.versions.length === 0) {
      const missing = number === null ? 'has no server yet' : `has no version ${number}`;
      throw new PalestraError('deployment_not_found', {
        detail: `Deployment not found. ${environment.owner}/${environment.name} ${missing}.`,
      });
    }
    return this.#host(pinned);
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
    return { ...defaults, ...declared, ...readSessionPolicy(environment.sessionPolicy) };
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
      owned: version.sourceKind !== 'remote',
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

/** `name`, `owner/name` or `owner/name@3`. */
export function parseDeployment(deployment: string): { owner: string | null; name: string; number: number | null } {
  const match = /^(?:([^/]*)\/)?(.*?)(?:@(\d{1,9}))?$/.exec(deployment.trim());
  return { owner: match?.[1] || null, name: match?.[2] ?? '', number: match?.[3] === undefined ? null : Number(match[3]) };
}
