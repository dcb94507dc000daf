import { createHash } from 'node:crypto';
import { Inject, Injectable } from '@nestjs/common';
import type { BlobStore } from '@palestra/blobs';
import type { SandboxProvider } from '@palestra/hosting';
import { PalestraError } from '@palestra/protocol';
import { type Caller, defaultSessionPolicy, type HostedEnvironment } from '@palestra/session';
import { type Config, CONFIG } from '../../../platform/config.ts';
import { Database } from '../../../platform/database/database.ts';
import { BLOB_STORE } from '../../../platform/tokens.ts';
import { EnvironmentAccess, mayManage } from '../../environment.access.ts';
import { HostingProviders } from '../providers/hosting-providers.ts';
import { copyBucket } from './sandbox-bucket.ts';
import { SandboxBackend, type SandboxOpening } from './sandbox-backend.ts';
import type { SandboxRequest } from './sandbox-settings.ts';
import { swapSandboxVersion } from './sandbox-version.ts';
import { deleteSandbox, insertSandbox } from './sandbox.sql.ts';

/** Begins the id of a sandbox of a session, on the engine. Others have others. */
export const SESSION_SANDBOX = 'session-';

/** Makes the environments on which sandboxes are opened. */
@Injectable()
export class Sandboxes {
  constructor(
    private readonly database: Database,
    private readonly providers: HostingProviders,
    private readonly access: EnvironmentAccess,
    @Inject(BLOB_STORE) private readonly blobs: BlobStore,
    @Inject(CONFIG) private readonly config: Config,
  ) {}

  /** Hosts that sandboxes reach only by plain HTTP. */
  get plainHosts(): readonly string[] {
    return this.config.hosting.sandboxHttpHosts;
  }

  /** The environment with its sandboxes in the place of its episodes, for those that are open. */
  open(environment: HostedEnvironment): HostedEnvironment {
    return this.#host(environment, null);
  }

  /** The same for a sandbox that is wanted. Throws `hosting_unsupported` when this server has no engine for it, `forbidden` for its bucket. */
  async wanted(environment: HostedEnvironment, caller: Caller, request: SandboxRequest): Promise<HostedEnvironment> {
    await this.#provider();
    const { environmentId } = environment;
    const { bucket, spec } = request;
    if (bucket !== null && !mayManage(await this.access.visibleById(caller, environmentId), caller))
      throw new PalestraError('forbidden', { detail: 'The bucket of an environment is for sandboxes of its owners.' });
    const count = 1 + spec.sidecars.length;
    const used = { orgId: caller.orgId, cpus: spec.resources.cpus * count, memoryMb: spec.resources.memoryMb * count };
    return this.#host(environment, {
      request,
      reserve: (sid, id) => insertSandbox(this.database.pool, { sid, id, ...used }, this.config.limits),
      fill: async (provider, id, signal) => {
        if (bucket !== null) await copyBucket(provider, id, { blobs: this.blobs, environmentId, ...bucket }, signal);
      },
    });
  }

  #host(environment: HostedEnvironment, opening: SandboxOpening | null): HostedEnvironment {
    const { environmentId, versionId, owner, name } = environment;
    return {
      environmentId,
      versionId: swapSandboxVersion(versionId),
      owner,
      name,
      backend: new SandboxBackend({
        provider: () => this.#provider(),
        idOf: (sid) => SESSION_SANDBOX + createHash('sha256').update(sid).digest('hex').slice(0, 40),
        forget: (id) => deleteSandbox(this.database.pool, id),
        environment: `${owner}/${name}`,
        opening,
      }),
      policy: { ...defaultSessionPolicy, heartbeatTimeoutMs: this.config.sessionIdleTimeoutMs },
      owned: false,
    };
  }

  async #provider(): Promise<SandboxProvider> {
    const found = (await this.providers.all()).find(({ sandboxes }) => sandboxes !== undefined)?.sandboxes;
    if (found !== undefined) return found;
    throw new PalestraError('hosting_unsupported', {
      detail: 'This server runs no sandboxes: they need Docker, Podman or Kubernetes. Its operator can allow them with PALESTRA_HOSTING.',
    });
  }
}
