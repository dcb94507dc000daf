import { Module } from '@nestjs/common';
import { EnvironmentsModule } from '../environments/environments.module.ts';
import { RolloutsModule } from '../rollouts/rollouts.module.ts';
import { IngestModule } from '../store/ingest.module.ts';
import { StoreModule } from '../store/store.module.ts';
import { EnvironmentUsageController } from './environment-usage.controller.ts';
import { RunScopes } from './run-scope.ts';
import { RunController } from './run.controller.ts';
import { RunService } from './run.service.ts';
import { TaskDifficultyController } from './task-difficulty.controller.ts';

/** Runs, and statistics of their rollouts by environment and task. */
@Module({
  imports: [EnvironmentsModule, StoreModule, IngestModule, RolloutsModule],
  controllers: [RunController, TaskDifficultyController, EnvironmentUsageController],
  providers: [RunService, RunScopes],
  exports: [RunService, RunScopes],
})
export class RunsModule {}
