import { Module } from '@nestjs/common';
import { RunActivity } from './run-activity.service.ts';
import { DeriveLoop } from './derive/derive.loop.ts';
import { DeriveService } from './derive/derive.service.ts';
import { ReadSettler } from './derive/read-settler.service.ts';
import { SealedEvents } from './ingest/sealed-events.service.ts';
import { SearchIndex } from './derive/search/search-index.service.ts';
import { CompactService } from './storage/compact.service.ts';
import { EraseService } from './storage/erase.service.ts';
import { ObjectGarbage } from './storage/garbage.service.ts';
import { PartitionService } from './storage/partition.service.ts';
import { RetentionService } from './storage/retention.service.ts';
import { RollupService } from './figures/rollup.service.ts';
import { Quarantine } from './quarantine.ts';
import { SealService } from './storage/seal.service.ts';
import { StoreJobs } from './storage/store-jobs.ts';
import { TranscriptObjects } from './storage/transcript-objects.service.ts';
import { TranscriptReader } from './storage/transcript-reader.service.ts';
import { TranscriptWriter } from './storage/transcript-writer.service.ts';
import { VerifyService } from './derive/verify/verify.service.ts';

const shared = [
  RunActivity,
  TranscriptReader,
  DeriveService,
  ReadSettler,
  RollupService,
  VerifyService,
  SealService,
  CompactService,
  EraseService,
  RetentionService,
  PartitionService,
  SealedEvents,
];

/** The rollout store without routes, for an API process and a worker (ADR 15). */
@Module({
  providers: [...shared, TranscriptObjects, TranscriptWriter, SearchIndex, Quarantine, ObjectGarbage, DeriveLoop, StoreJobs],
  exports: shared,
})
export class StoreModule {}
