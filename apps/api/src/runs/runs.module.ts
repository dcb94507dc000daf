import { Module } from '@nestjs/common';
import { EnvironmentsModule } from '../environments/environments.module.ts';
import { IngestService } from '../rollouts/ingest.service.ts';
import { RolloutController } from '../rollouts/rollout.controller.ts';
import { RolloutService } from '../rollouts/rollout.service.ts';
import { RunActivity } from './run-activity.service.ts';
import { RunController } from './run.controller.ts';
import { RunService } from './run.service.ts';
import { StreamController } from './stream.controller.ts';
import { TaskDifficultyController } from './task-difficulty.controller.ts';

/** Rollouts and the runs that group them: one module, because ingest, reads and live news share their tables. */
@Module({
  imports: [EnvironmentsModule],
  controllers: [RolloutController, RunController, StreamController, TaskDifficultyController],
  providers: [IngestService, RolloutService, RunService, RunActivity],
  exports: [IngestService],
})
export class RunsModule {}
