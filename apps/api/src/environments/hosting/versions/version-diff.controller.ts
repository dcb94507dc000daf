import { Controller, Get, Param } from '@nestjs/common';
import { PalestraError, type VersionDiff } from '@palestra/protocol';
import { versionDiffSchema } from '@palestra/protocol/schemas';
import type { Caller } from '@palestra/session';
import { CurrentCaller, RequireScope } from '../../../accounts/caller.decorator.ts';
import { Api } from '../../../platform/http/api.decorator.ts';
import { EnvironmentAccess } from '../../environment.access.ts';
import { type EnvironmentRecord, storedDiscovery } from '../../environment.record.ts';
import { EnvironmentRepository } from '../../environment.repository.ts';
import type { Probe } from '../probe/probe.ts';
import { type ComparedVersion, diffVersions } from './version-diff.ts';

const MAX_NUMBER = 2 ** 31 - 1;

/** Comparison of versions. */
@Controller('v1/environments/:owner/:name/versions')
@RequireScope('environments')
export class VersionDiffController {
  constructor(
    private readonly access: EnvironmentAccess,
    private readonly environments: EnvironmentRepository,
  ) {}

  @Api({
    summary: 'What version `b` changes for clients of version `a`: tools, tasks, and the prompt and rewards of a fixed probe',
    response: versionDiffSchema,
    errors: ['environment_not_found', 'deployment_not_found'],
  })
  @Get(':a/diff/:b')
  async diff(
    @CurrentCaller() caller: Caller,
    @Param('owner') owner: string,
    @Param('name') name: string,
    @Param('a') a: string,
    @Param('b') b: string,
  ): Promise<VersionDiff> {
    const environment = await this.access.visible(caller, owner, name);
    const [from, to] = await Promise.all([this.#version(environment, a), this.#version(environment, b)]);
    return diffVersions(from, to);
  }

  /** Throws `deployment_not_found`, and `invalid_request` when the offer of its server is not known. */
  async #version({ owner, name }: EnvironmentRecord, text: string): Promise<ComparedVersion> {
    const number = /^\d{1,10}$/.test(text) ? Number(text) : 0;
    const found = number >= 1 && number <= MAX_NUMBER ? await this.environments.findVersion(owner, name, number) : null;
    const version = found?.versions[0];
    if (version === undefined)
      throw new PalestraError('deployment_not_found', {
        detail: `Deployment not found. ${owner}/${name} has no version ${text.slice(0, 20)}.`,
      });
    const discovery = storedDiscovery(version);
    if (discovery === null)
      throw new PalestraError('invalid_request', {
        detail: `The server of version ${number} was never reached, so it cannot be compared.`,
      });
    return { number, discovery, probe: version.probe as unknown as Probe | null };
  }
}
