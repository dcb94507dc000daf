import { Controller, Get, Query } from '@nestjs/common';
import { RequireScope } from '../../accounts/caller.decorator.ts';
import { Api } from '../../platform/http/api.decorator.ts';
import { ReadsRun } from '../run-freshness.ts';
import {
  type HeatmapQuery,
  heatmapQuerySchema,
  heatmapSchema,
  type SeriesQuery,
  seriesQuerySchema,
  seriesSchema,
  type SummaryQuery,
  summaryQuerySchema,
  summarySchema,
} from './run-curves.schema.ts';
import { RunHeatmapService } from './run-heatmap.service.ts';
import { OfRun, type RunScope } from '../run-scope.ts';
import { RunSeriesService } from './run-series.service.ts';
import { RunSummaryService } from './run-summary.service.ts';

@Controller('v1/runs/:run')
@RequireScope('rollouts')
export class RunCurvesController {
  constructor(
    private readonly curves: RunSeriesService,
    private readonly heat: RunHeatmapService,
    private readonly summaries: RunSummaryService,
  ) {}

  @Get('series')
  @ReadsRun()
  @Api({
    summary: 'Metrics over steps, as columns',
    query: seriesQuerySchema,
    response: seriesSchema,
    errors: ['run_not_found', 'invalid_query'],
  })
  series(@OfRun() run: RunScope, @Query({ schema: seriesQuerySchema }) query: SeriesQuery) {
    return this.curves.series(run.seq, query);
  }

  @Get('summary')
  @ReadsRun()
  @Api({
    summary: 'Figures and advisories of a range of steps',
    query: summaryQuerySchema,
    response: summarySchema,
    errors: ['run_not_found'],
  })
  summary(@OfRun() run: RunScope, @Query({ schema: summaryQuerySchema }) query: SummaryQuery) {
    return this.summaries.summary(run, query);
  }

  @Get('heatmap')
  @ReadsRun()
  @Api({
    summary: 'Rewards, turns or tokens by step and bin',
    query: heatmapQuerySchema,
    response: heatmapSchema,
    errors: ['run_not_found'],
  })
  heatmap(@OfRun() run: RunScope, @Query({ schema: heatmapQuerySchema }) query: HeatmapQuery) {
    return this.heat.heatmap(run.seq, query);
  }
}
