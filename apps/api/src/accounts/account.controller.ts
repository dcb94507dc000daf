import { Controller, Get, Query } from '@nestjs/common';
import type { Caller } from '@palestra/session';
import { meSchema, namespaceQuerySchema, namespaceSchema } from '@palestra/protocol/schemas';
import { Api } from '../platform/http/api.decorator.ts';
import { AccountService } from './account.service.ts';
import { CurrentCaller } from './caller.decorator.ts';

@Controller('v1')
export class AccountController {
  constructor(private readonly accounts: AccountService) {}

  @Get('me')
  @Api({ summary: 'User and organisation of the key or browser session', response: meSchema })
  me(@CurrentCaller() caller: Caller) {
    return this.accounts.me(caller);
  }

  @Get('namespace/current')
  @Api({
    summary: 'The namespace of the key, for `orwd whoami`',
    query: namespaceQuerySchema,
    response: namespaceSchema,
  })
  namespace(@CurrentCaller() caller: Caller, @Query('type') type: string | undefined) {
    return this.accounts.namespace(caller, type);
  }
}
