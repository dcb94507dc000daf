import { Module } from '@nestjs/common';
import { IngestModule } from '../store/ingest.module.ts';
import { StoreModule } from '../store/store.module.ts';
import { FailureTexts } from './failure-texts.service.ts';
import { QueryFilter } from './query-filter.service.ts';
import { RolloutBodyService } from './rollout-body.service.ts';
import { RolloutListService } from './rollout-list.service.ts';
import { RolloutReadsController } from './rollout-reads.controller.ts';
import { RolloutReadsService } from './rollout-reads.service.ts';
import { RolloutSnapshots } from './rollout-snapshot.ts';
import { RolloutController } from './rollout.controller.ts';
import { RolloutService } from './rollout.service.ts';

/** Single rollouts and lists of rollouts. */
@Module({
  imports: [StoreModule, IngestModule],
  controllers: [RolloutController, RolloutReadsController],
  providers: [FailureTexts, QueryFilter, RolloutService, RolloutListService, RolloutSnapshots, RolloutReadsService, RolloutBodyService],
  exports: [FailureTexts, QueryFilter, RolloutService, RolloutListService, RolloutSnapshots, RolloutReadsService],
})
export class RolloutsModule {}
