import { Inject, Injectable } from '@nestjs/common';
import type { AlertEvidence } from '@palestra/protocol';
import type pg from 'pg';
import { JobQueue } from '../jobs/job-queue.service.ts';
import { type Config, CONFIG } from '../platform/config.ts';
import { PUBLIC_ORIGIN, type PublicOrigin } from '../platform/tokens.ts';
import type { AlertedRun, StoredAlert } from './alert.sql.ts';
import { conditionText } from './alert-text.ts';
import { DELIVER_NOW } from './webhook-schedule.ts';
import { insertDelivery, selectOrganisationName } from './webhook.sql.ts';

/** Version of the body (docs/reference/alerts.md). */
const VERSION = 1;

interface AlertChange {
  id: string;
  kind: 'firing' | 'resolved';
  at: Date;
  evidence: AlertEvidence;
}

/** A run, or a hosted environment. */
export type AlertSubject = { run: Pick<AlertedRun, 'id' | 'name'>; environment: null } | { run: null; environment: string };

/** Writes the messages of webhooks: a body that no attempt changes, and the job that sends it. */
@Injectable()
export class AlertMessages {
  constructor(
    private readonly jobs: JobQueue,
    @Inject(PUBLIC_ORIGIN) private readonly origin: PublicOrigin,
    @Inject(CONFIG) private readonly config: Config,
  ) {}

  /** In the transaction of `client`, which stores the change. */
  async add(client: pg.PoolClient, alert: StoredAlert, { run, environment }: AlertSubject, change: AlertChange): Promise<void> {
    const org = await selectOrganisationName(client, alert.org_id);
    const { q } = change.evidence;
    const data = {
      event: change.id,
      alert: { id: alert.id, name: alert.name, condition: conditionText(alert.condition), url: this.#url('/alerts', { alert: alert.id }) },
      run: run && { id: run.id, name: run.name, url: this.#url(`/${org}/runs/${run.id}`) },
      environment:
        environment === null ? null : { name: environment, url: this.#url(`/environments/${environment}`, { tab: 'instances' }) },
      evidence: { ...change.evidence, url: q === null || run === null ? null : this.#url(`/${org}/runs/${run.id}/rollouts`, { q }) },
    };
    await this.#send(
      client,
      { orgId: alert.org_id, webhookId: alert.webhook_id!, eventId: change.id },
      `alert.${change.kind}`,
      change.at,
      data,
    );
  }

  /** Null when the webhook is disabled. */
  async addTest(client: pg.PoolClient, orgId: string, webhookId: string, now: Date): Promise<string | null> {
    return this.#send(client, { orgId, webhookId, eventId: null }, 'webhook.test', now, { text: 'A test of this webhook.' });
  }

  async #send(
    client: pg.PoolClient,
    target: { orgId: string; webhookId: string; eventId: string | null },
    type: string,
    at: Date,
    data: object,
  ): Promise<string | null> {
    const body = JSON.stringify({ type, version: VERSION, timestamp: at.toISOString(), data });
    const id = await insertDelivery(client, { ...target, body });
    await this.wake(client);
    return id;
  }

  /** Starts the job that sends what is due. */
  async wake(client: Pick<pg.Pool, 'query'>): Promise<void> {
    await this.jobs.add('deliver-webhooks', {}, DELIVER_NOW, client);
  }

  /** Null where the service does not know its address: a worker without PALESTRA_PUBLIC_URL. */
  #url(path: string, search: Record<string, string> = {}): string | null {
    const origin = this.origin.url || (this.config.publicUrl ?? '');
    if (origin === '') return null;
    const url = new URL(path, origin);
    for (const [name, value] of Object.entries(search)) url.searchParams.set(name, value);
    return url.href;
  }
}
