import { Body, Controller, Get, HttpCode, Inject, Param, Post } from '@nestjs/common';
import type { ChannelView, Promote, Rollback } from '@palestra/protocol';
import { channelListSchema, channelSchema, promoteSchema, rollbackSchema } from '@palestra/protocol/schemas';
import type { Caller } from '@palestra/session';
import { Audited } from '../../../accounts/audit/audited.decorator.ts';
import { CurrentCaller, RequireScope } from '../../../accounts/caller.decorator.ts';
import { Api } from '../../../platform/http/api.decorator.ts';
import { Public } from '../../../platform/http/public.decorator.ts';
import { auditedEnvironment } from '../../environment.audit.ts';
import { RegistryDirectory } from '../../environment-directory.ts';
import { ChannelsService } from './channels.service.ts';

/** Which versions of an environment serve. */
@Controller('v1/environments/:owner/:name')
export class ChannelsController {
  constructor(
    @Inject(ChannelsService) private readonly channels: ChannelsService,
    @Inject(RegistryDirectory) private readonly directory: RegistryDirectory,
  ) {}

  @Public()
  @Api({
    summary: 'Channels of an environment, and the versions that they follow',
    response: channelListSchema,
    errors: ['environment_not_found'],
  })
  @Get('channels')
  list(@CurrentCaller() caller: Caller | undefined, @Param('owner') owner: string, @Param('name') name: string) {
    return this.channels.list(caller, owner, name);
  }

  @RequireScope('environments')
  @HttpCode(200)
  @Api({
    summary: 'Make a channel follow a version, or give the version a share of its new sessions',
    body: promoteSchema,
    response: channelSchema,
    errors: ['environment_not_found', 'deployment_not_found', 'forbidden', 'invalid_request'],
  })
  @Audited<Promote, ChannelView>('environment.promote', ({ params, body, result }) => ({
    ...auditedEnvironment({ owner: params['owner']!, name: params['name']! }),
    details: { version: body.version, channel: result.name, percent: body.percent ?? 100 },
  }))
  @Post('promote')
  async promote(
    @CurrentCaller() caller: Caller,
    @Param('owner') owner: string,
    @Param('name') name: string,
    @Body({ schema: promoteSchema }) body: Promote,
  ): Promise<ChannelView> {
    const channel = await this.channels.promote(caller, owner, name, body);
    this.directory.invalidate();
    return channel;
  }

  @RequireScope('environments')
  @HttpCode(200)
  @Api({
    summary: 'End the canary of a channel, or return to the version before. Running sessions finish on theirs',
    body: rollbackSchema,
    response: channelSchema,
    errors: ['environment_not_found', 'channel_not_found', 'forbidden', 'invalid_request'],
  })
  @Audited<Rollback, ChannelView>('environment.rollback', ({ params, result }) => ({
    ...auditedEnvironment({ owner: params['owner']!, name: params['name']! }),
    details: { channel: result.name, version: result.version },
  }))
  @Post('rollback')
  async rollback(
    @CurrentCaller() caller: Caller,
    @Param('owner') owner: string,
    @Param('name') name: string,
    @Body({ schema: rollbackSchema }) { channel }: Rollback,
  ): Promise<ChannelView> {
    const rolledBack = await this.channels.rollback(caller, owner, name, channel);
    this.directory.invalidate();
    return rolledBack;
  }
}
