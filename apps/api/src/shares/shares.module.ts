import { Module } from '@nestjs/common';
import { RolloutsModule } from '../rollouts/rollouts.module.ts';
import { ShareController } from './share.controller.ts';
import { ShareService } from './share.service.ts';

/** Links that show one rollout to people without an account. */
@Module({ imports: [RolloutsModule], controllers: [ShareController], providers: [ShareService] })
export class SharesModule {}
