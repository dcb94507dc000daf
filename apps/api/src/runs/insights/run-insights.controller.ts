import { Controller, Get, Query } from '@nestjs/common';
import type { FailureQuery, ToolCheckQuery, ToolListQuery, ToolQuery } from '@palestra/protocol';
import {
  failureListSchema,
  failureQuerySchema,
  runConfigSchema,
  runFacetsQuerySchema,
  runFacetsSchema,
  toolCheckQuerySchema,
  toolCheckSchema,
  toolListQuerySchema,
  toolListSchema,
  toolQuerySchema,
  toolStepsSchema,
} from '@palestra/protocol/schemas';
import type { z } from 'zod';
import { RequireScope } from '../../accounts/caller.decorator.ts';
import { Api } from '../../platform/http/api.decorator.ts';
import { RoundFigures } from '../../platform/http/round-figures.ts';
import { ReadsRun } from '../run-freshness.ts';
import { RunFailuresService } from './run-failures.service.ts';
import { RunInsightsService } from './run-insights.service.ts';
import { RunToolsService } from './run-tools.service.ts';
import { OfRun, type RunScope } from '../run-scope.ts';

@Controller('v1/runs/:run')
@RoundFigures()
@RequireScope('rollouts')
export class RunInsightsController {
  constructor(
    private readonly insights: RunInsightsService,
    private readonly failed: RunFailuresService,
    private readonly toolReads: RunToolsService,
  ) {}

  @Get('facets')
  @ReadsRun()
  @Api({
    summary: 'Values of the rollouts of a query, counted',
    query: runFacetsQuerySchema,
    response: runFacetsSchema,
    errors: ['run_not_found', 'invalid_query'],
  })
  facets(@OfRun() run: RunScope, @Query({ schema: runFacetsQuerySchema }) query: z.infer<typeof runFacetsQuerySchema>) {
    return this.insights.facets(run, query.q);
  }

  @Get('tools')
  @ReadsRun()
  @Api({
    summary: 'Tools of a run: errors, true latency, reward',
    query: toolListQuerySchema,
    response: toolListSchema,
    errors: ['run_not_found'],
  })
  tools(@OfRun() run: RunScope, @Query({ schema: toolListQuerySchema }) query: ToolListQuery) {
    return this.insights.tools(run, query);
  }

  @Get('tools/steps')
  @ReadsRun()
  @Api({ summary: 'One tool of a run, by step', query: toolQuerySchema, response: toolStepsSchema, errors: ['run_not_found'] })
  toolSteps(@OfRun() run: RunScope, @Query({ schema: toolQuerySchema }) query: ToolQuery) {
    return this.toolReads.steps(run, query);
  }

  @Get('tools/check')
  @ReadsRun()
  @Api({
    summary: 'The newest calls of a tool against the schema that its environment publishes',
    query: toolCheckQuerySchema,
    response: toolCheckSchema,
    errors: ['run_not_found', 'too_expensive', 'capacity_exhausted'],
  })
  toolCheck(@OfRun() run: RunScope, @Query({ schema: toolCheckQuerySchema }) query: ToolCheckQuery) {
    return this.toolReads.check(run, query);
  }

  @Get('failures')
  @ReadsRun()
  @Api({
    summary: 'Why rollouts failed, by cause',
    query: failureQuerySchema,
    response: failureListSchema,
    errors: ['run_not_found', 'capacity_exhausted'],
  })
  failures(@OfRun() run: RunScope, @Query({ schema: failureQuerySchema }) query: FailureQuery) {
    return this.failed.list(run, query);
  }

  @Get('config')
  @ReadsRun()
  @Api({ summary: 'Ingest, provenance and settings of a run', response: runConfigSchema, errors: ['run_not_found'] })
  config(@OfRun() run: RunScope) {
    return this.insights.config(run);
  }
}
