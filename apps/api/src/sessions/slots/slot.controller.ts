import { Controller, Get, Inject, Query } from '@nestjs/common';
import type { SlotListQuery } from '@palestra/protocol';
import { slotListQuerySchema, slotListSchema } from '@palestra/protocol/schemas';
import type { Caller } from '@palestra/session';
import { CurrentCaller, RequireScope } from '../../accounts/caller.decorator.ts';
import { Api } from '../../platform/http/api.decorator.ts';
import { SlotService } from './slot.service.ts';

@Controller('v1/slots')
@RequireScope('sessions')
export class SlotController {
  constructor(@Inject(SlotService) private readonly slots: SlotService) {}

  @Get()
  @Api({
    summary: 'Who holds the slots of your environments, and of those that you use',
    query: slotListQuerySchema,
    response: slotListSchema,
    errors: ['environment_not_found'],
  })
  list(@CurrentCaller() caller: Caller, @Query({ schema: slotListQuerySchema }) query: SlotListQuery) {
    return this.slots.list(caller, query);
  }
}
