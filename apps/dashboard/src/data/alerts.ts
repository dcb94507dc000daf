import { keepPreviousData, queryOptions } from '@tanstack/react-query';
import type { ChangeWebhook, CreateWebhook, NewAlert, NewAlertPreview } from '@palestra/protocol';
import { queryClient } from './client.ts';
import { api } from './http.ts';

/** Alerts, their changes, and the receivers of webhooks. */

const POLL_MS = 15_000;
const DELIVERIES_MS = 3_000;
const alerts = ['alerts'] as const;
const webhooks = ['webhooks'] as const;
const invalidate = (key: readonly string[]) => queryClient.invalidateQueries({ queryKey: key });

export const alertsQuery = queryOptions({
  queryKey: [...alerts, 'list'],
  queryFn: async ({ signal }) => (await api('GET /v1/alerts', { signal })).alerts,
  refetchInterval: POLL_MS,
});

/** The newest changes of all alerts and how many the member has not read. */
export const alertNewsQuery = queryOptions({
  queryKey: [...alerts, 'news'],
  queryFn: ({ signal }) => api('GET /v1/alert-events', { query: { limit: 20 }, signal }),
  refetchInterval: POLL_MS,
});

export const alertHistoryQuery = (alert: string | undefined) =>
  queryOptions({
    queryKey: [...alerts, 'history', alert ?? 'all'],
    queryFn: async ({ signal }) => (await api('GET /v1/alert-events', { query: { alert, limit: 200 }, signal })).events,
    refetchInterval: POLL_MS,
  });

/** Alerts that fire in a run, by its id. */
export const runAlertsQuery = (run: string) =>
  queryOptions({
    queryKey: [...alerts, 'run', run],
    queryFn: async ({ signal }) => (await api('GET /v1/runs/{run}/alerts', { path: { run }, signal })).firing,
    refetchInterval: POLL_MS,
  });

/** When an alert with this condition would have fired in the run. */
export const alertPreviewQuery = (body: NewAlertPreview) =>
  queryOptions({
    queryKey: ['alert-preview', JSON.stringify(body)],
    queryFn: ({ signal }) => api('POST /v1/alerts/preview', { body, signal }),
    placeholderData: keepPreviousData,
    retry: false,
  });

export async function saveAlert(id: string | null, body: NewAlert) {
  const saved = await (id === null ? api('POST /v1/alerts', { body }) : api('PUT /v1/alerts/{id}', { path: { id }, body }));
  await invalidate(alerts);
  return saved;
}

export async function deleteAlert(id: string): Promise<void> {
  await api('DELETE /v1/alerts/{id}', { path: { id } });
  await invalidate(alerts);
}

/** Marks the event and all older ones as read. */
export async function readAlertNews(until: string): Promise<void> {
  await api('POST /v1/alert-events/read', { body: { until } });
  await queryClient.invalidateQueries({ queryKey: alertNewsQuery.queryKey });
}

export const webhooksQuery = queryOptions({
  queryKey: [...webhooks, 'list'],
  queryFn: async ({ signal }) => (await api('GET /v1/webhooks', { signal })).webhooks,
});

export const deliveriesQuery = (id: string) =>
  queryOptions({
    queryKey: [...webhooks, 'deliveries', id],
    queryFn: async ({ signal }) =>
      (await api('GET /v1/webhooks/{id}/deliveries', { path: { id }, query: { limit: 50 }, signal })).deliveries,
    refetchInterval: DELIVERIES_MS,
  });

/** Only this response contains the secret. */
export async function createWebhook(body: CreateWebhook) {
  const created = await api('POST /v1/webhooks', { body });
  await invalidate(webhooks);
  return created;
}

export async function changeWebhook(id: string, body: ChangeWebhook): Promise<void> {
  await api('PATCH /v1/webhooks/{id}', { path: { id }, body });
  await invalidate(webhooks);
}

/** Only this response contains the new secret. */
export const replaceWebhookSecret = (id: string) => api('POST /v1/webhooks/{id}/secret', { path: { id } });

export async function deleteWebhook(id: string): Promise<void> {
  await api('DELETE /v1/webhooks/{id}', { path: { id } });
  await Promise.all([invalidate(webhooks), invalidate(alerts)]);
}

export async function testWebhook(id: string): Promise<void> {
  await api('POST /v1/webhooks/{id}/test', { path: { id } });
  await invalidate(webhooks);
}

export async function redeliver(id: string, delivery: string): Promise<void> {
  await api('POST /v1/webhooks/{id}/deliveries/{delivery}/redeliver', { path: { id, delivery } });
  await invalidate(webhooks);
}
