import { randomUUID } from 'node:crypto';
import { Inject, Injectable } from '@nestjs/common';
import type { AlertEvidence, CrashesCondition } from '@palestra/protocol';
import type { Logger } from 'pino';
import { Database } from '../platform/database/database.ts';
import { inTransaction } from '../platform/database/transaction.ts';
import { LOGGER } from '../platform/tokens.ts';
import { insertEvent, type StoredAlert } from './alert.sql.ts';
import { AlertMessages } from './alert-messages.ts';
import { type CrashingEnvironment, insertCrashAlerts, selectCrashing, storeEnvironmentState } from './environment-alerts.sql.ts';

/** The alert of an organisation that hosts environments, until a member changes or deletes it. */
const DEFAULT_NAME = 'Hosted environment keeps crashing';
const DEFAULT_CONDITION: CrashesCondition = { kind: 'crashes', count: 3, minutes: 10, environment: null };

/** Judges alerts on hosted environments: one fires while the instances of a version fail again and again. */
@Injectable()
export class EnvironmentAlerts {
  constructor(
    private readonly database: Database,
    private readonly messages: AlertMessages,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {}

  /** Adds this alert to organisations that host their first environment. */
  async addDefaults(): Promise<void> {
    await insertCrashAlerts(this.database.pool, DEFAULT_NAME, DEFAULT_CONDITION);
  }

  async judge(alerts: readonly StoredAlert[], signal: AbortSignal): Promise<void> {
    for (const alert of alerts) {
      const { condition } = alert;
      if (condition.kind !== 'crashes') continue;
      if (signal.aborted) return;
      try {
        for (const found of await selectCrashing(this.database.pool, alert, condition)) await this.#change(alert, condition, found);
      } catch (error) {
        this.logger.warn({ err: error, alert: alert.id }, 'an alert was not judged; the next round repeats it');
      }
    }
  }

  async #change(alert: StoredAlert, condition: CrashesCondition, environment: CrashingEnvironment): Promise<void> {
    const firing = environment.failed >= condition.count;
    if (firing === environment.firing) return;
    const evidence = evidenceOf(condition, environment);
    await inTransaction(this.database.pool, async (client) => {
      if (!(await storeEnvironmentState(client, alert, environment.id, firing, evidence))) return;
      const event = { id: randomUUID(), kind: firing ? ('firing' as const) : ('resolved' as const), evidence };
      const row = { ...event, orgId: alert.org_id, alertId: alert.id, runSeq: null, environmentId: environment.id, muted: alert.muted };
      const at = await insertEvent(client, row);
      if (!alert.muted && alert.webhook_id !== null)
        await this.messages.add(client, alert, { run: null, environment: environment.name }, { ...event, at });
    });
  }
}

function evidenceOf({ count, minutes }: CrashesCondition, { name, failed, version, detail }: CrashingEnvironment): AlertEvidence {
  const instances = failed === 1 ? '1 instance' : `${failed} instances`;
  const of = version === null ? name : `version ${version} of ${name}`;
  const text =
    failed >= count
      ? `${instances} of ${of} failed within ${minutes} min. The last one: ${detail ?? 'no reason is known.'}`
      : `Only ${instances} of ${name} failed within the last ${minutes} min. Its page shows whether it has running ones.`;
  return { text, value: failed, threshold: count, n: null, low: null, high: null, from_step: null, step: null, q: null, baseline: null };
}
