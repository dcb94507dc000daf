import { Module } from '@nestjs/common';
import { RunsModule } from '../runs/runs.module.ts';
import { AlertPreviews } from './alert-preview.service.ts';
import { AlertStoreModule } from './alert-store.module.ts';
import { AlertController } from './alert.controller.ts';
import { AlertService } from './alert.service.ts';
import { WebhookController } from './webhook.controller.ts';
import { WebhookService } from './webhook.service.ts';

/** Alerts on the figures of runs, and the webhooks that they send. */
@Module({
  imports: [RunsModule, AlertStoreModule],
  controllers: [AlertController, WebhookController],
  providers: [AlertService, AlertPreviews, WebhookService],
})
export class AlertsModule {}
