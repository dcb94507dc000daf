import { Controller, Delete, Get, Param } from '@nestjs/common';
import type { Caller } from '@palestra/session';
import { browserSessionListSchema, deletedSchema } from '@palestra/protocol/schemas';
import { Api } from '../platform/http/api.decorator.ts';
import { BrowserSessionService } from './browser-session.service.ts';
import { CurrentCaller, RequireScope } from './caller.decorator.ts';

@Controller('v1/browser-sessions')
@RequireScope('keys')
export class BrowserSessionController {
  constructor(private readonly sessions: BrowserSessionService) {}

  @Get()
  @Api({ summary: 'Signed-in browsers of the organisation', response: browserSessionListSchema })
  async list(@CurrentCaller() caller: Caller) {
    return { browser_sessions: await this.sessions.list(caller) };
  }

  @Delete(':id')
  @Api({ summary: 'Sign a browser out', response: deletedSchema, errors: ['browser_session_not_found'] })
  async end(@CurrentCaller() caller: Caller, @Param('id') id: string) {
    await this.sessions.end(caller, id);
    return { deleted: true };
  }
}
