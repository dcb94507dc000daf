import { Controller, Delete, Get, Param } from '@nestjs/common';
import type { Caller } from '@palestra/session';
import { z } from 'zod';
import { Api } from '../platform/http/api.decorator.ts';
import { BrowserSessionService } from './browser-session.service.ts';
import { CurrentCaller, RequireScope } from './caller.decorator.ts';

const browserSessionSchema = z.object({
  id: z.string(),
  user: z.string().describe('The member who is signed in'),
  user_agent: z.string(),
  scopes: z.array(z.string()),
  key: z
    .object({ id: z.string(), name: z.string() })
    .nullable()
    .describe('The key that opened it, with which it ends; null for a sign-in link'),
  created_at: z.string(),
  expires_at: z.string(),
});

@Controller('v1/browser-sessions')
@RequireScope('keys')
export class BrowserSessionController {
  constructor(private readonly sessions: BrowserSessionService) {}

  @Get()
  @Api({ summary: 'Signed-in browsers of the organisation', response: z.object({ browser_sessions: z.array(browserSessionSchema) }) })
  async list(@CurrentCaller() caller: Caller) {
    return { browser_sessions: await this.sessions.list(caller) };
  }

  @Delete(':id')
  @Api({ summary: 'Sign a browser out', response: z.object({ deleted: z.literal(true) }), errors: ['browser_session_not_found'] })
  async end(@CurrentCaller() caller: Caller, @Param('id') id: string) {
    await this.sessions.end(caller, id);
    return { deleted: true };
  }
}
