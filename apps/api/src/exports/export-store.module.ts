import { Module } from '@nestjs/common';
import { StoreModule } from '../store/store.module.ts';
import { ExportJobs } from './export-jobs.ts';
import { LakeService } from './lake.service.ts';
import { ExportMessages } from './rollout-export.messages.ts';
import { RolloutExportRunner } from './rollout-export.runner.ts';

/** Writes exports and the lake, without routes: shared by the API process and workers. */
@Module({
  imports: [StoreModule],
  providers: [ExportMessages, RolloutExportRunner, LakeService, ExportJobs],
  exports: [ExportJobs, LakeService],
})
export class ExportStoreModule {}
