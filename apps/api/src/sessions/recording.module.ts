import { Module } from '@nestjs/common';
import { IngestModule } from '../store/ingest.module.ts';
import { Recorder } from './recording/recorder.ts';
import { SessionRolloutController } from './recording/session-rollout.controller.ts';
import { SessionRolloutService } from './recording/session-rollout.service.ts';
import { SessionsModule } from './sessions.module.ts';

/** Recordings of sessions as rollouts. */
@Module({
  imports: [SessionsModule, IngestModule],
  controllers: [SessionRolloutController],
  providers: [Recorder, SessionRolloutService],
})
export class RecordingModule {}
