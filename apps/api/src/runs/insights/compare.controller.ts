import { Controller, Get, Query } from '@nestjs/common';
import type { CompareQuery, CompareTasksQuery } from '@palestra/protocol';
import { compareQuerySchema, compareSchema, compareTasksQuerySchema, compareTasksSchema } from '@palestra/protocol/schemas';
import type { Caller } from '@palestra/session';
import { CurrentCaller, RequireScope } from '../../accounts/caller.decorator.ts';
import { Shareable } from '../../accounts/shareable.decorator.ts';
import { Api } from '../../platform/http/api.decorator.ts';
import { RoundFigures } from '../../platform/http/round-figures.ts';
import { CacheByResponse } from '../../platform/http/freshness.ts';
import { CompareRunsService } from './compare-runs.service.ts';
import { CompareTasksService } from './compare-tasks.service.ts';

@Controller('v1/compare')
@RoundFigures()
@RequireScope('rollouts')
export class CompareController {
  constructor(
    private readonly runs: CompareRunsService,
    private readonly compared: CompareTasksService,
  ) {}

  @Get()
  @CacheByResponse()
  @Shareable('runs')
  @Api({
    summary: 'Differences between runs with intervals, paired by task where they share tasks, and the power of the comparison',
    query: compareQuerySchema,
    response: compareSchema,
    errors: ['run_not_found', 'capacity_exhausted'],
  })
  compare(@CurrentCaller() caller: Caller, @Query({ schema: compareQuerySchema }) query: CompareQuery) {
    return this.runs.compare(caller, query);
  }

  @Get('tasks')
  @CacheByResponse()
  @Shareable('runs')
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
