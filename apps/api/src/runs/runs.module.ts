import { Module } from '@nestjs/common';
import { EnvironmentsModule } from '../environments/environments.module.ts';
import { DeriveLoop } from '../rollouts/derive.loop.ts';
import { DeriveService } from '../rollouts/derive.service.ts';
import { EraseService } from '../rollouts/erase.service.ts';
import { IngestService } from '../rollouts/ingest.service.ts';
import { MessageObjects } from '../rollouts/message-objects.service.ts';
import { RolloutListService } from '../rollouts/rollout-list.service.ts';
import { RolloutController } from '../rollouts/rollout.controller.ts';
import { RolloutService } from '../rollouts/rollout.service.ts';
import { RollupService } from '../rollouts/rollup.service.ts';
import { TranscriptObjects } from '../rollouts/transcript-objects.service.ts';
import { TranscriptReader } from '../rollouts/transcript-reader.service.ts';
import { RunActivity } from './run-activity.service.ts';
import { RunController } from './run.controller.ts';
import { RunService } from './run.service.ts';
import { StreamController } from './stream.controller.ts';
import { TaskDifficultyController } from './task-difficulty.controller.ts';

/** Rollouts and the runs that group them: one module, because ingest, reads and live news share their tables. */
@Module({
  imports: [EnvironmentsModule],
  controllers: [RolloutController, RunController, StreamController, TaskDifficultyController],
  providers: [
    IngestService,
    MessageObjects,
    TranscriptObjects,
    TranscriptReader,
    DeriveService,
    RollupService,
    DeriveLoop,
    EraseService,
    RolloutService,
    RolloutListService,
    RunService,
    RunActivity,
  ],
  exports: [IngestService, DeriveService, RollupService, EraseService, TranscriptReader, RunService, RolloutListService],
})
export class RunsModule {}
