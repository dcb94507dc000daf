import { Module } from '@nestjs/common';
import { RunsModule } from '../runs/runs.module.ts';
import { ShareController } from './share.controller.ts';
import { ShareService } from './share.service.ts';

/** Links that show one rollout to people without an account. */
@Module({ imports: [RunsModule], controllers: [ShareController], providers: [ShareService] })
export class SharesModule {}
