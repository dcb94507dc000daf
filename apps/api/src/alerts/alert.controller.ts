import { Body, Controller, Delete, Get, Param, Post, Put, Query } from '@nestjs/common';
import type { AlertBody, AlertEventQuery, AlertPreviewBody } from '@palestra/protocol';
import {
  alertBodySchema,
  alertEventListSchema,
  alertEventQuerySchema,
  alertListSchema,
  alertPreviewBodySchema,
  alertPreviewSchema,
  alertSchema,
  deletedSchema,
  readAlertEventsSchema,
  runAlertsSchema,
  unreadAlertEventsSchema,
} from '@palestra/protocol/schemas';
import type { Caller } from '@palestra/session';
import { CurrentCaller, RequireScope } from '../accounts/caller.decorator.ts';
import { Api } from '../platform/http/api.decorator.ts';
import { AlertService } from './alert.service.ts';

@Controller('v1')
@RequireScope('rollouts')
export class AlertController {
  constructor(private readonly alerts: AlertService) {}

  @Get('alerts')
  @Api({ summary: 'Alerts, by name, with the runs in which they fire', response: alertListSchema })
  list(@CurrentCaller() caller: Caller) {
    return this.alerts.list(caller);
  }

  @Post('alerts')
  @Api({
    summary: 'Create an alert',
    body: alertBodySchema,
    response: alertSchema,
    errors: ['limit_reached', 'webhook_not_found', 'run_not_found', 'invalid_query'],
  })
  create(@CurrentCaller() caller: Caller, @Body({ schema: alertBodySchema }) body: AlertBody) {
    return this.alerts.create(caller, body);
  }

  @Post('alerts/preview')
  @Api({
    summary: 'When an alert would have fired in a run',
    body: alertPreviewBodySchema,
    response: alertPreviewSchema,
    errors: ['run_not_found', 'invalid_query', 'too_expensive', 'capacity_exhausted'],
  })
  preview(@CurrentCaller() caller: Caller, @Body({ schema: alertPreviewBodySchema }) body: AlertPreviewBody) {
    return this.alerts.preview(caller, body);
  }

  @Get('alerts/:id')
  @Api({ summary: 'An alert', response: alertSchema, errors: ['alert_not_found'] })
  get(@CurrentCaller() caller: Caller, @Param('id') id: string) {
    return this.alerts.get(caller, id);
  }

  @Put('alerts/:id')
  @Api({
    summary: 'Replace an alert; with another condition or other runs it begins again',
    body: alertBodySchema,
    response: alertSchema,
    errors: ['alert_not_found', 'webhook_not_found', 'run_not_found', 'invalid_query'],
  })
  replace(@CurrentCaller() caller: Caller, @Param('id') id: string, @Body({ schema: alertBodySchema }) body: AlertBody) {
    return this.alerts.replace(caller, id, body);
  }

  @Delete('alerts/:id')
  @Api({ summary: 'Delete an alert with its history', response: deletedSchema, errors: ['alert_not_found'] })
  async delete(@CurrentCaller() caller: Caller, @Param('id') id: string) {
    await this.alerts.delete(caller, id);
    return { deleted: true };
  }

  @Get('alert-events')
  @Api({
    summary: 'Changes of alerts, newest first, and how many the member has not read; kept for 90 days',
    query: alertEventQuerySchema,
    response: alertEventListSchema,
    errors: ['run_not_found', 'invalid_cursor'],
  })
  events(@CurrentCaller() caller: Caller, @Query({ schema: alertEventQuerySchema }) query: AlertEventQuery) {
    return this.alerts.events(caller, query);
  }

  @Post('alert-events/read')
  @Api({ summary: 'Mark changes of alerts as read', body: readAlertEventsSchema, response: unreadAlertEventsSchema })
  markRead(@CurrentCaller() caller: Caller, @Body({ schema: readAlertEventsSchema }) { until }: { until: string }) {
    return this.alerts.markRead(caller, until);
  }

  @Get('runs/:run/alerts')
  @Api({ summary: 'Alerts that fire in a run', response: runAlertsSchema, errors: ['run_not_found'] })
  ofRun(@CurrentCaller() caller: Caller, @Param('run') run: string) {
    return this.alerts.ofRun(caller, run);
  }
}
