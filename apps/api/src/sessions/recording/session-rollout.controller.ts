import { Body, Controller, HttpCode, Inject, Param, Post } from '@nestjs/common';
import type { KeepSession } from '@palestra/protocol';
import { keepSessionSchema, keptSessionSchema } from '@palestra/protocol/schemas';
import type { Caller } from '@palestra/session';
import { CurrentCaller, RequireScope } from '../../accounts/caller.decorator.ts';
import { Api } from '../../platform/http/api.decorator.ts';
import { SessionRolloutService } from './session-rollout.service.ts';

@Controller('v1/sessions')
@RequireScope('sessions')
export class SessionRolloutController {
  constructor(@Inject(SessionRolloutService) private readonly rollouts: SessionRolloutService) {}

  @Post(':sid/rollout')
  @HttpCode(200)
  @Api({
    summary: 'Keep a session as a rollout of a run, written from its call ledger; one that is recorded already stays as it is',
    body: keepSessionSchema,
    response: keptSessionSchema,
    errors: ['session_not_found', 'invalid_request'],
  })
  keep(@CurrentCaller() caller: Caller, @Param('sid') sid: string, @Body({ schema: keepSessionSchema }) body: KeepSession) {
    return this.rollouts.keep(caller, sid, body);
  }
}
