import { Controller, Get, Query } from '@nestjs/common';
import type { RunHeatmapQuery, RunSeriesQuery, RunSummaryQuery } from '@palestra/protocol';
import {
  runHeatmapQuerySchema,
  runHeatmapSchema,
  runSeriesQuerySchema,
  runSeriesSchema,
  runSummaryQuerySchema,
  runSummarySchema,
} from '@palestra/protocol/schemas';
import { RequireScope } from '../../accounts/caller.decorator.ts';
import { Shareable } from '../../accounts/shareable.decorator.ts';
import { Api } from '../../platform/http/api.decorator.ts';
import { RoundFigures } from '../../platform/http/round-figures.ts';
import { guestSummary } from '../guest-answers.ts';
import { ReadsRun } from '../run-freshness.ts';
import { RunHeatmapService } from './run-heatmap.service.ts';
import { OfRun, type RunScope } from '../run-scope.ts';
import { RunSeriesService } from './run-series.service.ts';
import { RunSummaryService } from './run-summary.service.ts';

@Controller('v1/runs/:run')
@RoundFigures()
@RequireScope('rollouts')
export class RunCurvesController {
  constructor(
    private readonly curves: RunSeriesService,
    private readonly heat: RunHeatmapService,
    private readonly summaries: RunSummaryService,
  ) {}

  @Get('series')
  @ReadsRun()
  @Shareable('run')
  @Api({
    summary: 'Metrics over steps, as columns',
    query: runSeriesQuerySchema,
    response: runSeriesSchema,
    errors: ['run_not_found', 'invalid_query'],
  })
  series(@OfRun() run: RunScope, @Query({ schema: runSeriesQuerySchema }) query: RunSeriesQuery) {
    return this.curves.series(run.seq, query);
  }

  @Get('summary')
  @ReadsRun()
  @Shareable('run', guestSummary)
  @Api({
    summary: 'Figures and advisories of a range of steps',
    query: runSummaryQuerySchema,
    response: runSummarySchema,
    errors: ['run_not_found'],
  })
  summary(@OfRun() run: RunScope, @Query({ schema: runSummaryQuerySchema }) query: RunSummaryQuery) {
    return this.summaries.summary(run, query);
  }

  @Get('heatmap')
  @ReadsRun()
  @Shareable('run')
  @Api({
    summary: 'Rewards, turns or tokens by step and bin',
    query: runHeatmapQuerySchema,
    response: runHeatmapSchema,
    errors: ['run_not_found'],
  })
  heatmap(@OfRun() run: RunScope, @Query({ schema: runHeatmapQuerySchema }) query: RunHeatmapQuery) {
    return this.heat.heatmap(run.seq, query);
  }
}
