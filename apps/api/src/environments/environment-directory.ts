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
import { CONFIG, type Config } from '../platform/config.ts';
import { CLOCK } from '../platform/tokens.ts';
import { BackendPool } from './backend.pool.ts';
import { EnvironmentAccess, maySee } from './environment.access.ts';
import type { EnvironmentRecord, VersionRecord } from './environment.record.ts';
import { EnvironmentRepository } from './environment.repository.ts';
import { readSessionPolicy } from './session-policy.ts';

/** Another replica's change is seen after this; our own at once. */
const MAX_AGE_MS = 5_000;
/** Distinct names that are remembered; past it the oldest goes, so that made-up names cannot fill the memory. */
const MAX_ENTRIES = 5_000;

interface Remembered {
  hosted: HostedEnvironment;
  readAt: number;
}

/** Deployments by name, without SQL on the hot path. */
@Injectable()
export class RegistryDirectory implements EnvironmentDirectory {
  readonly #resolved = new Map<string, Remembered>();
  readonly #versions = new Map<string, Remembered>();
  readonly #resolving = new SingleFlight<HostedEnvironment>();
  readonly #loading = new SingleFlight<HostedEnvironment>();

  constructor(
    @Inject(EnvironmentRepository) private readonly repository: EnvironmentRepository,
    @Inject(EnvironmentAccess) private readonly access: EnvironmentAccess,
    @Inject(BackendPool) private readonly backends: BackendPool,
    @Inject(CONFIG) private readonly config: Config,
    @Inject(CLOCK) private readonly clock: Clock,
  ) {}

  async resolve(deployment: string | null, caller: Caller): Promise<HostedEnvironment> {
    const key = JSON.stringify([deployment, caller.anonymous ? null : caller.orgId]);
    const known = this.#resolved.get(key);
    if (known && this.#isFresh(known)) return known.hosted;
    return this.#resolving.do(key, async () => {
      const hosted = await this.#resolve(deployment, caller);
      this.#resolved.delete(key);
      this.#resolved.set(key, { hosted, readAt: this.clock.now() });
      if (this.#resolved.size > MAX_ENTRIES) this.#resolved.delete(this.#resolved.keys().next().value!);
      return hosted;
    });
  }

  async version(versionId: string): Promise<HostedEnvironment> {
    const known = this.#versions.get(versionId);
    if (known && this.#isFresh(known)) return known.hosted;
    return this.#loading.do(versionId, async () => {
      const environment = await this.repository.findVersionById(versionId);
      if (environment === null) {
        this.#versions.delete(versionId);
        throw new PalestraError('session_lost', { detail: 'Session lost: the environment that it ran on was deleted.' });
      }
      return this.#host(environment);
    });
  }

  /** Something changed: names may mean something else now. */
  invalidate(goneVersionIds: string[] = []): void {
    this.#resolved.clear();
    for (const versionId of goneVersionIds) this.#versions.delete(versionId);
  }

  #isFresh({ readAt }: Remembered): boolean {
    return this.clock.now() - readAt < MAX_AGE_MS;
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
      detail: `Deployment not found. Several are called '${name}': ${names}. Name the owner too.`,
    });
  }

  /** The owner's settings over the author's declarations over the server's defaults. */
  #policy(environment: EnvironmentRecord, version: VersionRecord): SessionPolicy {
    const declared = version.sourceKind === 'bundled' ? this.backends.declared(version) : {};
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
      // All but ORS servers are reached over a connection or in a process of the API process that opened the session.
      owned: version.sourceKind !== 'remote',
      about: { description: environment.description, readme: environment.readmeContent, version: version.number },
    };
    this.#versions.set(version.id, { hosted, readAt: this.clock.now() });
    return hosted;
  }
}

/** `name`, `owner/name` or `owner/name@3`. */
export function parseDeployment(deployment: string): { owner: string | null; name: string; number: number | null } {
  const match = /^(?:([^/]*)\/)?(.*?)(?:@(\d{1,9}))?$/.exec(deployment.trim());
  return { owner: match?.[1] || null, name: match?.[2] ?? '', number: match?.[3] === undefined ? null : Number(match[3]) };
}
