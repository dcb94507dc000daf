import { Module } from '@nestjs/common';
import { EnvironmentsModule } from '../environments/environments.module.ts';
import { IngestService } from '../rollouts/ingest/ingest.service.ts';
import { MessageObjects } from '../rollouts/ingest/message-objects.service.ts';
import { RolloutListService } from '../rollouts/rollout-list.service.ts';
import { OtlpController } from '../rollouts/ingest/otlp.controller.ts';
import { OtlpService } from '../rollouts/ingest/otlp.service.ts';
import { RolloutScopes } from '../rollouts/rollout-scope.ts';
import { RolloutController } from '../rollouts/rollout.controller.ts';
import { RolloutService } from '../rollouts/rollout.service.ts';
import { StoreModule } from '../rollouts/store.module.ts';
import { EnvironmentUsageController } from './environment-usage.controller.ts';
import { RunScopes } from './run-scope.ts';
import { RunController } from './run.controller.ts';
import { RunService } from './run.service.ts';
import { TaskDifficultyController } from './task-difficulty.controller.ts';

/** Rollouts and the runs that group them: one module, because ingest, reads and live news share their tables. */
@Module({
  imports: [EnvironmentsModule, StoreModule],
  controllers: [RolloutController, OtlpController, RunController, TaskDifficultyController, EnvironmentUsageController],
  providers: [IngestService, OtlpService, MessageObjects, RolloutService, RolloutListService, RunService, RunScopes, RolloutScopes],
  exports: [StoreModule, IngestService, RunService, RunScopes, RolloutService, RolloutScopes, RolloutListService],
})
export class RunsModule {}
