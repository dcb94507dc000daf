import { Body, Controller, Get, HttpCode, Inject, Param, Post, Put } from '@nestjs/common';
import type { HostingSettings, HostingSettingsInput, InstanceList, InstanceView } from '@palestra/protocol';
import { hostingSettingsSchema, instanceListSchema, instanceSchema } from '@palestra/protocol/schemas';
import type { Caller } from '@palestra/session';
import { Audited } from '../../../accounts/audit/audited.decorator.ts';
import { CurrentCaller, RequireScope } from '../../../accounts/caller.decorator.ts';
import { Api } from '../../../platform/http/api.decorator.ts';
import { auditedEnvironment } from '../../environment.audit.ts';
import { RegistryDirectory } from '../../environment-directory.ts';
import { InstancesService } from './instances.service.ts';

/** The instances of an environment, and how many of them there are. */
@Controller('v1/environments/:owner/:name')
export class InstancesController {
  constructor(
    @Inject(InstancesService) private readonly instances: InstancesService,
    @Inject(RegistryDirectory) private readonly directory: RegistryDirectory,
  ) {}

  @RequireScope('environments')
  @Api({
    summary: 'Instances of an environment with their sessions and use, and how long sessions wait for one',
    response: instanceListSchema,
    errors: ['environment_not_found', 'forbidden'],
  })
  @Get('instances')
  list(@CurrentCaller() caller: Caller, @Param('owner') owner: string, @Param('name') name: string): Promise<InstanceList> {
    return this.instances.list(caller, owner, name);
  }

  @RequireScope('environments')
  @HttpCode(200)
  @Api({
    summary: 'Replace an instance by a new one; its sessions finish on it',
    response: instanceSchema,
    errors: ['environment_not_found', 'instance_not_found', 'forbidden'],
  })
  @Audited<unknown, InstanceView>('environment.restart', ({ params, result }) => ({
    ...auditedEnvironment({ owner: params['owner']!, name: params['name']! }),
    details: { instance: result.id },
  }))
  @Post('instances/:id/restart')
  restart(
    @CurrentCaller() caller: Caller,
    @Param('owner') owner: string,
    @Param('name') name: string,
    @Param('id') id: string,
  ): Promise<InstanceView> {
    return this.instances.restart(caller, owner, name, id);
  }

  @RequireScope('environments')
  @Api({
    summary: 'How many instances an environment has, and what they may use',
    response: hostingSettingsSchema,
    errors: ['environment_not_found', 'forbidden'],
  })
  @Get('hosting')
  settings(@CurrentCaller() caller: Caller, @Param('owner') owner: string, @Param('name') name: string): Promise<HostingSettings> {
    return this.instances.settings(caller, owner, name);
  }

  @RequireScope('environments')
  @Api({
    summary: 'Replace the hosting settings of an environment',
    body: hostingSettingsSchema,
    response: hostingSettingsSchema,
    errors: ['environment_not_found', 'forbidden', 'invalid_request', 'hosting_off', 'hosting_unsupported'],
  })
  @Audited<HostingSettingsInput, HostingSettings>('environment.hosting', ({ params, result: { min_warm, max, concurrency } }) => ({
    ...auditedEnvironment({ owner: params['owner']!, name: params['name']! }),
    details: { min_warm, max, concurrency },
  }))
  @Put('hosting')
  async setSettings(
    @CurrentCaller() caller: Caller,
    @Param('owner') owner: string,
    @Param('name') name: string,
    @Body({ schema: hostingSettingsSchema }) body: HostingSettings,
  ): Promise<HostingSettings> {
    const settings = await this.instances.setSettings(caller, owner, name, body);
    this.directory.invalidate();
    return settings;
  }
}
