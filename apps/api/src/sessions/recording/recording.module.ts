import { Module } from '@nestjs/common';
import { IngestModule } from '../../store/ingest.module.ts';
import { Recorder } from './recorder.ts';
import { SessionRolloutController } from './session-rollout.controller.ts';
import { SessionRolloutService } from './session-rollout.service.ts';
import { SessionsModule } from '../sessions.module.ts';

/** Sessions as rollouts: where the two domains meet. */
@Module({
  imports: [SessionsModule, IngestModule],
  controllers: [SessionRolloutController],
  providers: [Recorder, SessionRolloutService],
})
export class RecordingModule {}
