import { Module } from '@nestjs/common';
import { RolloutsModule } from '../rollouts/rollouts.module.ts';
import { RunReadsModule } from '../runs/run-reads.module.ts';
import { RunsModule } from '../runs/runs.module.ts';
import { ShareController } from './share.controller.ts';
import { ShareImages } from './share-image.service.ts';
import { SharePageService } from './share-page.service.ts';
import { SharePreviews } from './share-preview.service.ts';
import { ShareService } from './share.service.ts';

/** Links that show a rollout, a run, a list or a comparison without an account (ADR 18). */
@Module({
  imports: [RolloutsModule, RunsModule, RunReadsModule],
  controllers: [ShareController],
  providers: [ShareService, SharePageService, SharePreviews, ShareImages],
})
export class SharesModule {}
