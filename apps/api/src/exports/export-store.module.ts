import { Module } from '@nestjs/common';
import { StoreModule } from '../store/store.module.ts';
import { ExportJobs } from './export-jobs.ts';
import { LakeService } from './lake.service.ts';
import { ExportMessages } from './rollout-export.messages.ts';
import { RolloutExportRunner } from './rollout-export.runner.ts';

/** What writes exports and the lake, without its routes: what an API process and a worker have in common. */
@Module({
  imports: [StoreModule],
  providers: [ExportMessages, RolloutExportRunner, LakeService, ExportJobs],
  exports: [ExportJobs, LakeService],
})
export class ExportStoreModule {}
