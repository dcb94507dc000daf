import { Module } from '@nestjs/common';
import { RunActivity } from '../runs/run-activity.service.ts';
import { DeriveLoop } from './derive.loop.ts';
import { DeriveService } from './derive.service.ts';
import { EraseService } from './erase.service.ts';
import { ObjectGarbage } from './garbage.service.ts';
import { PartitionService } from './partition.service.ts';
import { RetentionService } from './retention.service.ts';
import { RollupService } from './rollup.service.ts';
import { SealService } from './seal.service.ts';
import { StoreJobs } from './store-jobs.ts';
import { TranscriptObjects } from './transcript-objects.service.ts';
import { TranscriptReader } from './transcript-reader.service.ts';
import { TranscriptWriter } from './transcript-writer.service.ts';
import { VerifyService } from './verify.service.ts';

const shared = [
  RunActivity,
  TranscriptReader,
  DeriveService,
  RollupService,
  VerifyService,
  SealService,
  EraseService,
  RetentionService,
  PartitionService,
];

/** The rollout store without its routes: what an API process and a worker have in common (ADR 15). */
@Module({
  providers: [...shared, TranscriptObjects, TranscriptWriter, ObjectGarbage, DeriveLoop, StoreJobs],
  exports: shared,
})
export class StoreModule {}
