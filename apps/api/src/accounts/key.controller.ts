import { Body, Controller, Delete, Get, Param, Post } from '@nestjs/common';
import type { CreateKeyBody } from '@palestra/protocol';
import { createdKeySchema, createKeyBodySchema, keyListSchema, keyViewSchema } from '@palestra/protocol/schemas';
import type { Caller } from '@palestra/session';
import { Api } from '../platform/http/api.decorator.ts';
import { CurrentCaller, RequireScope } from './caller.decorator.ts';
import { KeyService } from './key.service.ts';

@Controller('v1/keys')
@RequireScope('keys')
export class KeyController {
  constructor(private readonly keys: KeyService) {}

  @Get()
  @Api({ summary: 'API keys of the organisation', response: keyListSchema })
  async list(@CurrentCaller() caller: Caller) {
    return { keys: await this.keys.list(caller) };
  }

  @Post()
  @Api({
    summary: 'Create an API key; only this response has it',
    body: createKeyBodySchema,
    response: createdKeySchema,
    errors: ['limit_reached'],
  })
  create(@CurrentCaller() caller: Caller, @Body({ schema: createKeyBodySchema }) body: CreateKeyBody) {
    return this.keys.create(caller, body);
  }

  @Delete(':id')
  @Api({ summary: 'Revoke an API key', response: keyViewSchema, errors: ['key_not_found'] })
  revoke(@CurrentCaller() caller: Caller, @Param('id') id: string) {
    return this.keys.revoke(caller, id);
  }
}
