import { Controller, Get, Query } from '@nestjs/common';
import type { CompareTasksQuery } from '@palestra/protocol';
import { compareTasksQuerySchema, compareTasksSchema } from '@palestra/protocol/schemas';
import type { Caller } from '@palestra/session';
import { CurrentCaller, RequireScope } from '../../accounts/caller.decorator.ts';
import { Api } from '../../platform/http/api.decorator.ts';
import { CacheByResponse } from '../../platform/http/freshness.ts';
import { CompareTasksService } from './compare-tasks.service.ts';

@Controller('v1/compare')
@RequireScope('rollouts')
export class CompareTasksController {
  constructor(private readonly compared: CompareTasksService) {}

  @Get('tasks')
  @CacheByResponse()
  @Api({
    summary: 'Runs against each other on the tasks that all of them scored, with paired differences',
    query: compareTasksQuerySchema,
    response: compareTasksSchema,
    errors: ['run_not_found', 'invalid_cursor', 'invalid_request'],
  })
  tasks(@CurrentCaller() caller: Caller, @Query({ schema: compareTasksQuerySchema }) query: CompareTasksQuery) {
    return this.compared.list(caller, query);
  }
}
