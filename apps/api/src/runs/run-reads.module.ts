import { Module } from '@nestjs/common';
import { RewardPercentiles } from './curves/reward-percentiles.service.ts';
import { RunAdvisoriesService } from './curves/run-advisories.service.ts';
import { RunCurvesController } from './curves/run-curves.controller.ts';
import { CompareController } from './insights/compare.controller.ts';
import { CompareRunsService } from './insights/compare-runs.service.ts';
import { CompareTasksService } from './insights/compare-tasks.service.ts';
import { RunFailuresService } from './insights/run-failures.service.ts';
import { RunGroupsController } from './insights/run-groups.controller.ts';
import { RunGroupsService } from './insights/run-groups.service.ts';
import { RunHeatmapService } from './curves/run-heatmap.service.ts';
import { RunInsightsController } from './insights/run-insights.controller.ts';
import { RunInsightsService } from './insights/run-insights.service.ts';
import { RunSeriesService } from './curves/run-series.service.ts';
import { RunStepsController } from './curves/run-steps.controller.ts';
import { RunStepsService } from './curves/run-steps.service.ts';
import { RunSummaryService } from './curves/run-summary.service.ts';
import { RunTasksService } from './insights/run-tasks.service.ts';
import { RunToolsService } from './insights/run-tools.service.ts';
import { InvalidArguments } from './moves/invalid-arguments.service.ts';
import { MoveCauses } from './moves/move-causes.service.ts';
import { RunMovesController } from './moves/run-moves.controller.ts';
import { RunMovesService } from './moves/run-moves.service.ts';
import { RolloutsModule } from '../rollouts/rollouts.module.ts';
import { StoreModule } from '../store/store.module.ts';
import { RunsModule } from './runs.module.ts';
import { SearchController } from './search/search.controller.ts';
import { RegexSearch } from './search/regex-search.service.ts';
import { SearchService } from './search/search.service.ts';
import { StreamController } from './stream/stream.controller.ts';
import { StepFiguresService } from '../store/figures/step-figures.service.ts';

/** The reads of runs for the dashboard. */
@Module({
  imports: [StoreModule, RolloutsModule, RunsModule],
  controllers: [
    RunCurvesController,
    RunStepsController,
    RunGroupsController,
    RunInsightsController,
    RunMovesController,
    CompareController,
    SearchController,
    StreamController,
  ],
  providers: [
    StepFiguresService,
    RunSeriesService,
    RunStepsService,
    RunHeatmapService,
    RewardPercentiles,
    RunAdvisoriesService,
    RunSummaryService,
    RunGroupsService,
    RunTasksService,
    RunInsightsService,
    RunFailuresService,
    RunToolsService,
    InvalidArguments,
    MoveCauses,
    RunMovesService,
    CompareRunsService,
    CompareTasksService,
    RegexSearch,
    SearchService,
  ],
  exports: [RunSeriesService, RunSummaryService, CompareRunsService],
})
export class RunReadsModule {}
