import { Module } from '@nestjs/common';
import { RunsModule } from '../runs/runs.module.ts';
import { Recorder } from './recorder.ts';
import { SessionsModule } from './sessions.module.ts';

/** Sessions as rollouts: where the two domains meet. */
@Module({ imports: [SessionsModule, RunsModule], providers: [Recorder] })
export class RecordingModule {}
