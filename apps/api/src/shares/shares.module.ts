import { Module } from '@nestjs/common';
import { RolloutsModule } from '../rollouts/rollouts.module.ts';
import { ShareController } from './share.controller.ts';
import { SharePageService } from './share-page.service.ts';
import { ShareService } from './share.service.ts';

/** Links that show one rollout without an account. */
@Module({ imports: [RolloutsModule], controllers: [ShareController], providers: [ShareService, SharePageService] })
export class SharesModule {}
