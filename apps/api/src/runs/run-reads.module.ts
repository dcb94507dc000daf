import { Module } from '@nestjs/common';
import { AnnotationController } from '../rollouts/annotation.controller.ts';
import { AnnotationService } from '../rollouts/annotation.service.ts';
import { RolloutBodyService } from '../rollouts/rollout-body.service.ts';
import { RolloutReadsController } from '../rollouts/rollout-reads.controller.ts';
import { RolloutReadsService } from '../rollouts/rollout-reads.service.ts';
import { RunCurvesController } from './run-curves.controller.ts';
import { RunFailuresService } from './run-failures.service.ts';
import { RunGroupsController } from './run-groups.controller.ts';
import { RunGroupsService } from './run-groups.service.ts';
import { RunHeatmapService } from './run-heatmap.service.ts';
import { RunInsightsController } from './run-insights.controller.ts';
import { RunInsightsService } from './run-insights.service.ts';
import { RunSeriesService } from './run-series.service.ts';
import { RunSummaryService } from './run-summary.service.ts';
import { RunTasksService } from './run-tasks.service.ts';
import { RunsModule } from './runs.module.ts';
import { SearchController } from './search.controller.ts';
import { SearchService } from './search.service.ts';
import { StepFiguresService } from './step-figures.service.ts';

/** What the dashboard reads of runs and rollouts. */
@Module({
  imports: [RunsModule],
  controllers: [
    RunCurvesController,
    RunGroupsController,
    RunInsightsController,
    SearchController,
    RolloutReadsController,
    AnnotationController,
  ],
  providers: [
    StepFiguresService,
    RunSeriesService,
    RunHeatmapService,
    RunSummaryService,
    RunGroupsService,
    RunTasksService,
    RunInsightsService,
    RunFailuresService,
    SearchService,
    RolloutReadsService,
    RolloutBodyService,
    AnnotationService,
  ],
})
export class RunReadsModule {}
