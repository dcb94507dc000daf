import { Module } from '@nestjs/common';
import { StepFiguresService } from '../store/figures/step-figures.service.ts';
import { StoreModule } from '../store/store.module.ts';
import { AlertEvaluator } from './alert-evaluator.ts';
import { AlertFigures } from './alert-figures.service.ts';
import { AlertMessages } from './alert-messages.ts';
import { EnvironmentAlerts } from './environment-alerts.ts';
import { WebhookSender } from './webhook-sender.ts';

/** Judges alerts and sends webhooks, without routes: shared by the API process and workers. */
@Module({
  imports: [StoreModule],
  providers: [StepFiguresService, AlertFigures, AlertMessages, EnvironmentAlerts, AlertEvaluator, WebhookSender],
  exports: [AlertFigures, AlertMessages],
})
export class AlertStoreModule {}
