import type { Caller, EnvironmentDirectory, HostedEnvironment } from '@palestra/session';
import { isSandboxVersion, swapSandboxVersion } from './sandbox-version.ts';
import type { Sandboxes } from './sandboxes.service.ts';

/** Finds the sandboxes of stored sessions beside the versions of environments. */
export class SandboxDirectory implements EnvironmentDirectory {
  constructor(
    private readonly environments: EnvironmentDirectory,
    private readonly sandboxes: Sandboxes,
  ) {}

  resolve(deployment: string | null, caller: Caller): Promise<HostedEnvironment> {
    return this.environments.resolve(deployment, caller);
  }

  async version(versionId: string): Promise<HostedEnvironment> {
    if (!isSandboxVersion(versionId)) return this.environments.version(versionId);
    return this.sandboxes.open(await this.environments.version(swapSandboxVersion(versionId)));
  }
}
