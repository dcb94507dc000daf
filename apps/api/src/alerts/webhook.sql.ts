import type pg from 'pg';
import type { NextAttempt } from './webhook-schedule.ts';

type Client = Pick<pg.Pool, 'query'>;

/** Waiting deliveries of one organisation; more are recorded as failed. */
export const MAX_WAITING = 1_000;

/**
 * A new message. It fails at once when the organisation has too many that wait. Null when the webhook is disabled, or not of the organisation.
 * Plan: webhook_deliveries_waiting_idx.
 */
export async function insertDelivery(
  client: Client,
  { orgId, webhookId, eventId, body }: { orgId: string; webhookId: string; eventId: string | null; body: string },
): Promise<string | null> {
  const { rows } = await client.query<{ id: string }>(
    `INSERT INTO webhook_deliveries (org_id, webhook_id, event_id, body, state, next_at)
     SELECT $1, $2, $3, $4, CASE WHEN full_up THEN 'failed' ELSE 'waiting' END, CASE WHEN full_up THEN NULL ELSE now() END
     FROM (SELECT count(*) >= ${MAX_WAITING} AS full_up FROM (SELECT FROM webhook_deliveries WHERE org_id = $1 AND state = 'waiting' LIMIT ${MAX_WAITING}) w) q
     WHERE EXISTS (SELECT FROM webhooks WHERE org_id = $1 AND id = $2 AND disabled_at IS NULL) RETURNING id`,
    [orgId, webhookId, eventId, body],
  );
  return rows[0]?.id ?? null;
}

export async function selectOrganisationName(client: Client, orgId: string): Promise<string> {
  const { rows } = await client.query<{ name: string }>('SELECT name FROM organisations WHERE id = $1', [orgId]);
  return rows[0]!.name;
}

export interface ClaimedDelivery {
  id: string;
  org_id: string;
  webhook_id: string;
  body: string;
  tries: number;
  url: string;
  secrets: Buffer;
}

/**
 * Takes due deliveries, those of each organisation in turn, and counts an attempt. Another process may take them again after `leaseS`: by then an
 * attempt has ended, or its process has died. Plan: webhook_deliveries_due_idx, primary keys.
 */
export async function claimDeliveries(
  pool: Client,
  { limit, perOrganisation, leaseS }: { limit: number; perOrganisation: number; leaseS: number },
): Promise<ClaimedDelivery[]> {
  const { rows } = await pool.query<ClaimedDelivery>(
    `WITH due AS (
       SELECT d.id, d.next_at, row_number() OVER (PARTITION BY d.org_id ORDER BY d.next_at) AS place FROM webhook_deliveries d
       JOIN webhooks w ON w.id = d.webhook_id AND w.disabled_at IS NULL WHERE d.state = 'waiting' AND d.next_at <= now()),
     chosen AS (SELECT id FROM due WHERE place <= $2 ORDER BY place, next_at LIMIT $1)
     UPDATE webhook_deliveries d SET next_at = now() + $3::int * interval '1 second', tries = d.tries + 1
     FROM webhooks w WHERE d.id IN (SELECT id FROM chosen) AND w.id = d.webhook_id AND d.state = 'waiting' AND d.next_at <= now()
     RETURNING d.id, d.org_id, d.webhook_id, d.body, d.tries, w.url, w.secrets`,
    [limit, perOrganisation, leaseS],
  );
  return rows;
}

export interface Attempt {
  at: Date;
  status: number | null;
  latencyMs: number;
  error: string | null;
  response: string;
}

/** Stores an attempt and its outcome; `next`: null = no other follows. Nothing if the delivery was deleted meanwhile. */
export async function storeAttempt(
  client: Client,
  { id, org_id }: Pick<ClaimedDelivery, 'id' | 'org_id'>,
  { at, status, latencyMs, error, response }: Attempt,
  next: NextAttempt | null,
): Promise<void> {
  const state = error === null ? 'delivered' : next === null ? 'failed' : 'waiting';
  await client.query(
    `WITH done AS (
       UPDATE webhook_deliveries SET state = $3, next_at = now() + $4::int * interval '1 second', tries = COALESCE($10, tries) WHERE id = $1 AND org_id = $2 RETURNING id)
     INSERT INTO webhook_attempts (delivery_id, at, org_id, status, latency_ms, error, response) SELECT id, $5, $2, $6, $7, $8, $9 FROM done
     ON CONFLICT (delivery_id, at) DO NOTHING`,
    [
      id,
      org_id,
      state,
      state === 'waiting' ? next!.inS : null,
      at,
      status,
      latencyMs,
      error,
      response,
      state === 'waiting' ? next!.tries : null,
    ],
  );
}

/** Disables a receiver and gives up what waits for it. */
export async function disableWebhook(client: Client, webhookId: string, reason: string): Promise<void> {
  await client.query('UPDATE webhooks SET disabled_at = now(), disabled_reason = $2 WHERE id = $1 AND disabled_at IS NULL', [
    webhookId,
    reason,
  ]);
  await giveUpDeliveries(client, webhookId);
}

/** Deletes old deliveries with their attempts. Plan: webhook_deliveries_created_at_idx. */
export async function deleteOldDeliveries(client: Client, days: number, limit: number): Promise<number> {
  const { rowCount } = await client.query(
    `DELETE FROM webhook_deliveries WHERE id IN (SELECT id FROM webhook_deliveries WHERE created_at < now() - $1::int * interval '1 day' ORDER BY created_at LIMIT $2)`,
    [days, limit],
  );
  return rowCount ?? 0;
}

export interface DeliveryRow {
  id: string;
  body: string;
  state: 'waiting' | 'delivered' | 'failed';
  next_at: Date | null;
  created_at: Date;
  at: string;
  attempts: { at: string; status: number | null; latency_ms: number; error: string | null; response: string }[];
}

const MAX_ATTEMPTS_SHOWN = 20;

/** Newest first. Plan: webhook_deliveries_webhook_id_idx backwards, webhook_attempts_pkey per row. */
export async function selectDeliveries(
  pool: Client,
  { orgId, webhookId, after, limit }: { orgId: string; webhookId: string; after: { at: string; id: string } | null; limit: number },
): Promise<DeliveryRow[]> {
  const { rows } = await pool.query<DeliveryRow>(
    `SELECT d.id, d.body, d.state, d.next_at, d.created_at, d.created_at::text AS at, COALESCE((
       SELECT json_agg(a) FROM (SELECT at, status, latency_ms, error, response FROM webhook_attempts WHERE delivery_id = d.id ORDER BY at DESC
         LIMIT ${MAX_ATTEMPTS_SHOWN}) a), '[]') AS attempts
     FROM webhook_deliveries d WHERE d.org_id = $1 AND d.webhook_id = $2 AND ($3::timestamptz IS NULL OR (d.created_at, d.id) < ($3, $4::uuid))
     ORDER BY d.created_at DESC, d.id DESC LIMIT $5`,
    [orgId, webhookId, after?.at ?? null, after?.id ?? null, limit],
  );
  return rows;
}

/** Gives up what waits for a receiver. */
export async function giveUpDeliveries(client: Client, webhookId: string): Promise<void> {
  await client.query(`UPDATE webhook_deliveries SET state = 'failed', next_at = NULL WHERE webhook_id = $1 AND state = 'waiting'`, [
    webhookId,
  ]);
}

/** Sends a message again, with the same id and body. False when the organisation has no such delivery of the webhook. */
export async function requeueDelivery(client: Client, orgId: string, webhookId: string, id: string): Promise<boolean> {
  const { rowCount } = await client.query(
    `UPDATE webhook_deliveries SET state = 'waiting', tries = 0, next_at = now() WHERE org_id = $1 AND webhook_id = $2 AND id = $3`,
    [orgId, webhookId, id],
  );
  return rowCount === 1;
}

/** Waiting deliveries by webhook. Plan: webhook_deliveries_waiting_idx. */
export async function countWaiting(pool: Client, orgId: string): Promise<Map<string, number>> {
  const { rows } = await pool.query<{ webhook_id: string; count: number }>(
    `SELECT webhook_id, count(*)::int AS count FROM webhook_deliveries WHERE org_id = $1 AND state = 'waiting' GROUP BY 1`,
    [orgId],
  );
  return new Map(rows.map(({ webhook_id, count }) => [webhook_id, count]));
}
