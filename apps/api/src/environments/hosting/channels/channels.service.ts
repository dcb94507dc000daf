import { Injectable } from '@nestjs/common';
import { type ChannelView, PalestraError, type Promote } from '@palestra/protocol';
import type { Caller } from '@palestra/session';
import { Database } from '../../../platform/database/database.ts';
import { EnvironmentAccess, mayManage } from '../../environment.access.ts';
import type { EnvironmentRecord } from '../../environment.record.ts';
import { EnvironmentRepository } from '../../environment.repository.ts';
import { notifyHosting } from '../hosting-events.ts';
import { promoted, rolledBack } from './channel-changes.ts';
import { type ChannelRecord, ChannelRepository } from './channel.repository.ts';

/** Which version a promotion is about, and who asked for it. */
export interface Promotion {
  environmentId: string;
  versionId: string;
  channel: string;
  percent: number;
  /** Shown as the reason of the change. */
  reason: string;
}

/** Promotions and rollbacks. Other processes see a change within a few seconds (RegistryDirectory). */
@Injectable()
export class ChannelsService {
  constructor(
    private readonly access: EnvironmentAccess,
    private readonly environments: EnvironmentRepository,
    private readonly channels: ChannelRepository,
    private readonly database: Database,
  ) {}

  async list(caller: Caller | undefined, owner: string, name: string): Promise<{ channels: ChannelView[] }> {
    const environment = await this.access.visible(caller, owner, name);
    const channels = (await this.channels.list(environment.id)).map(presentChannel);
    // Reasons name members.
    return { channels: mayManage(environment, caller) ? channels : channels.map((channel) => ({ ...channel, reason: null })) };
  }

  async promote(caller: Caller, owner: string, name: string, { version: number, channel, percent }: Promote): Promise<ChannelView> {
    const environment = await this.access.managed(caller, owner, name);
    assertDeployed(environment);
    if (channel === 'latest')
      throw new PalestraError('invalid_request', { detail: 'channel: "latest" always selects the newest version. Choose another name.' });
    const found = await this.environments.findVersion(environment.owner, environment.name, number);
    const version = found?.versions[0];
    if (version === undefined) {
      throw new PalestraError('deployment_not_found', {
        detail: `Deployment not found. ${environment.owner}/${environment.name} has no version ${number}.`,
      });
    }
    const share = percent === 100 ? '' : `, for ${percent} % of the sessions`;
    const reason = `Promoted by ${await this.#author(caller)}${share}.`;
    return presentChannel(await this.promoteVersion({ environmentId: environment.id, versionId: version.id, channel, percent, reason }));
  }

  /** Without a check of permissions, for deploys. Throws `invalid_request`, and `environment_not_found` when it was deleted. */
  async promoteVersion({ environmentId, versionId, channel, percent, reason }: Promotion): Promise<ChannelRecord> {
    const changed = await this.channels.change(environmentId, channel, (stored) => promoted(stored, versionId, percent, reason));
    await notifyHosting(this.database.pool, environmentId);
    return changed!;
  }

  async rollback(caller: Caller, owner: string, name: string, channel: string): Promise<ChannelView> {
    const environment = await this.access.managed(caller, owner, name);
    const reason = `Rolled back by ${await this.#author(caller)}.`;
    const changed = await this.channels.change(environment.id, channel, (stored) => rolledBack(stored, reason));
    await notifyHosting(this.database.pool, environment.id);
    return presentChannel(changed!);
  }

  async #author(caller: Caller): Promise<string> {
    return (await this.environments.userName(caller.userId)) ?? 'a member of the organisation';
  }
}

function assertDeployed({ owner, name, hosting }: EnvironmentRecord): void {
  if (hosting !== null) return;
  throw new PalestraError('invalid_request', {
    detail: `${owner}/${name} was never deployed here, so its newest version serves. Deploy it with \`palestra env deploy\` to use channels.`,
  });
}

export const presentChannel = (channel: ChannelRecord): ChannelView => ({
  name: channel.name,
  version: channel.version.number,
  previous_version: channel.previousVersion?.number ?? null,
  canary_version: channel.canaryVersion?.number ?? null,
  canary_percent: channel.canaryPercent,
  reason: channel.reason,
  updated_at: channel.updatedAt.toISOString(),
});
