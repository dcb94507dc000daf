import { Controller, Get } from '@nestjs/common';
import type { HostingOffer } from '@palestra/protocol';
import { hostingOfferSchema } from '@palestra/protocol/schemas';
import type { Caller } from '@palestra/session';
import { CurrentCaller } from '../../../accounts/caller.decorator.ts';
import { Api } from '../../../platform/http/api.decorator.ts';
import { HostingEngines } from './hosting-engines.service.ts';

/** What this service can run. */
@Controller('v1/hosting')
export class HostingOfferController {
  constructor(private readonly engines: HostingEngines) {}

  @Api({ summary: 'Whether this service runs environments, and what its engine enforces', response: hostingOfferSchema })
  @Get()
  async get(@CurrentCaller() caller: Caller): Promise<HostingOffer> {
    return { ...(await this.engines.offer()), can_deploy: !caller.anonymous && caller.scopes.includes('environments') };
  }
}
