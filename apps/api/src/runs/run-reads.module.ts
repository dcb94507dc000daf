import { Module } from '@nestjs/common';
import { RolloutScopes } from '../rollouts/rollout-scope.ts';
import { Freshness } from './freshness.interceptor.ts';
import { RunCurvesController } from './run-curves.controller.ts';
import { RunHeatmapService } from './run-heatmap.service.ts';
import { RunScopes } from './run-scope.ts';
import { RunSeriesService } from './run-series.service.ts';
import { RunSummaryService } from './run-summary.service.ts';
import { RunsModule } from './runs.module.ts';
import { StepFiguresService } from './step-figures.service.ts';

/** What the dashboard reads of runs and rollouts. */
@Module({
  imports: [RunsModule],
  controllers: [RunCurvesController],
  providers: [Freshness, RunScopes, RolloutScopes, StepFiguresService, RunSeriesService, RunHeatmapService, RunSummaryService],
})
export class RunReadsModule {}
