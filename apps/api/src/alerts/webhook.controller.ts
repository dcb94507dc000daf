import { Body, Controller, Delete, Get, Param, Patch, Post, Query } from '@nestjs/common';
import type { ChangeWebhook, CreateWebhook, DeliveryQuery } from '@palestra/protocol';
import {
  changeWebhookSchema,
  createWebhookSchema,
  deletedSchema,
  deliveryListSchema,
  deliveryQuerySchema,
  queuedDeliverySchema,
  webhookListSchema,
  webhookSchema,
  webhookSecretSchema,
} from '@palestra/protocol/schemas';
import type { Caller } from '@palestra/session';
import { CurrentCaller, RequireScope } from '../accounts/caller.decorator.ts';
import { Api } from '../platform/http/api.decorator.ts';
import { WebhookService } from './webhook.service.ts';

@Controller('v1/webhooks')
@RequireScope('rollouts')
export class WebhookController {
  constructor(private readonly webhooks: WebhookService) {}

  @Get()
  @Api({ summary: 'Receivers of webhooks', response: webhookListSchema })
  list(@CurrentCaller() caller: Caller) {
    return this.webhooks.list(caller);
  }

  @Post()
  @Api({
    summary: 'Add a receiver of webhooks; only this response has its secret',
    body: createWebhookSchema,
    response: webhookSecretSchema,
    errors: ['owner_required', 'limit_reached', 'upstream_address_refused'],
  })
  create(@CurrentCaller() caller: Caller, @Body({ schema: createWebhookSchema }) body: CreateWebhook) {
    return this.webhooks.create(caller, body);
  }

  @Patch(':id')
  @Api({
    summary: 'Change, disable or enable a receiver of webhooks',
    body: changeWebhookSchema,
    response: webhookSchema,
    errors: ['owner_required', 'webhook_not_found', 'upstream_address_refused'],
  })
  change(@CurrentCaller() caller: Caller, @Param('id') id: string, @Body({ schema: changeWebhookSchema }) body: ChangeWebhook) {
    return this.webhooks.change(caller, id, body);
  }

  @Delete(':id')
  @Api({ summary: 'Delete a receiver of webhooks', response: deletedSchema, errors: ['owner_required', 'webhook_not_found'] })
  async delete(@CurrentCaller() caller: Caller, @Param('id') id: string) {
    await this.webhooks.delete(caller, id);
    return { deleted: true };
  }

  @Post(':id/secret')
  @Api({
    summary: 'Replace the secret of a webhook; the old one also signs for a day. Only this response has the new one',
    response: webhookSecretSchema,
    errors: ['owner_required', 'webhook_not_found'],
  })
  rotate(@CurrentCaller() caller: Caller, @Param('id') id: string) {
    return this.webhooks.rotate(caller, id);
  }

  @Post(':id/test')
  @Api({ summary: 'Send a test to a webhook', response: queuedDeliverySchema, errors: ['webhook_not_found', 'webhook_disabled'] })
  test(@CurrentCaller() caller: Caller, @Param('id') id: string) {
    return this.webhooks.test(caller, id);
  }

  @Get(':id/deliveries')
  @Api({
    summary: 'Deliveries to a webhook with their attempts, newest first; kept for 30 days',
    query: deliveryQuerySchema,
    response: deliveryListSchema,
    errors: ['webhook_not_found', 'invalid_cursor'],
  })
  deliveries(@CurrentCaller() caller: Caller, @Param('id') id: string, @Query({ schema: deliveryQuerySchema }) query: DeliveryQuery) {
    return this.webhooks.deliveries(caller, id, query);
  }

  @Post(':id/deliveries/:delivery/redeliver')
  @Api({
    summary: 'Send a delivery again, with the same id and body',
    response: queuedDeliverySchema,
    errors: ['webhook_not_found', 'webhook_disabled', 'delivery_not_found'],
  })
  redeliver(@CurrentCaller() caller: Caller, @Param('id') id: string, @Param('delivery') delivery: string) {
    return this.webhooks.redeliver(caller, id, delivery);
  }
}
