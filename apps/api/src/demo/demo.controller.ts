import { Controller, Delete } from '@nestjs/common';
import { deletedSchema } from '@palestra/protocol/schemas';
import type { Caller } from '@palestra/session';
import { Audited } from '../accounts/audit/audited.decorator.ts';
import { CurrentCaller, RequireScope } from '../accounts/caller.decorator.ts';
import { Api } from '../platform/http/api.decorator.ts';
import { DemoService } from './demo.service.ts';

@Controller('v1/demo')
@RequireScope('rollouts')
export class DemoController {
  constructor(private readonly demo: DemoService) {}

  @Audited('demo.delete', () => ({ targetId: null }))
  @Delete()
  @Api({ summary: 'Erase the demo: its runs with their sessions, and its environment', response: deletedSchema })
  async remove(@CurrentCaller() caller: Caller) {
    await this.demo.remove(caller);
    return { deleted: true };
  }
}
