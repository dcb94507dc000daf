import { Controller, Get, Query } from '@nestjs/common';
import type { SearchQuery } from '@palestra/protocol';
import { searchQuerySchema, searchSchema } from '@palestra/protocol/schemas';
import type { Caller } from '@palestra/session';
import { CurrentCaller, RequireScope } from '../../accounts/caller.decorator.ts';
import { Api } from '../../platform/http/api.decorator.ts';
import { CacheByResponse } from '../../platform/http/freshness.ts';
import { ReadsRun } from '../run-freshness.ts';
import { OfRun, type RunScope } from '../run-scope.ts';
import { SearchService } from './search.service.ts';

@Controller('v1')
@RequireScope('rollouts')
export class SearchController {
  constructor(private readonly searches: SearchService) {}

  @Get('runs/:run/search')
  @ReadsRun()
  @Api({
    summary: 'Find messages of a run',
    query: searchQuerySchema,
    response: searchSchema,
    errors: ['run_not_found', 'invalid_query', 'invalid_cursor', 'too_expensive', 'capacity_exhausted'],
  })
  run(@OfRun() run: RunScope, @Query({ schema: searchQuerySchema }) query: SearchQuery) {
    return this.searches.search(run.orgId, [run.seq], query);
  }

  @Get('search')
  @CacheByResponse()
  @Api({
    summary: 'Find messages of all runs',
    query: searchQuerySchema,
    response: searchSchema,
    errors: ['invalid_query', 'invalid_cursor', 'too_expensive', 'capacity_exhausted'],
  })
  organisation(@CurrentCaller() caller: Caller, @Query({ schema: searchQuerySchema }) query: SearchQuery) {
    return this.searches.organisation(caller.orgId, query);
  }
}
