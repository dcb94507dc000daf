import { Inject, Injectable } from '@nestjs/common';
import { isUuid } from '@palestra/kit';
import { type AlertBody, type AlertCondition, type AlertEventQuery, type AlertPreviewBody, PalestraError } from '@palestra/protocol';
import { alertConditionSchema } from '@palestra/protocol/schemas';
import type { Caller } from '@palestra/session';
import { assertRoomForAlert } from '../accounts/account-limits.ts';
import { AuditLog } from '../accounts/audit/audit-log.service.ts';
import { type Config, CONFIG } from '../platform/config.ts';
import { Database } from '../platform/database/database.ts';
import type { AlertModel } from '../platform/generated/prisma/models.ts';
import { decodeCursor, encodeCursor, INT64 } from '../platform/http/cursor.ts';
import { canonicalQuery, rolloutQuery } from '../rollouts/rollout-query.ts';
import { RunService } from '../runs/run.service.ts';
import { AlertPreviews } from './alert-preview.service.ts';
import { type FiringRow, markRead, selectBaselines, selectEvents, selectFiring, selectUnread } from './alert.sql.ts';
import { conditionText } from './alert-text.ts';
import { selectFiringEnvironments } from './environment-alerts.sql.ts';
import { countedQuery } from './time-judgements.ts';

const FIRING_SHOWN = 20;

/** Alerts of an organisation. All members see and change them. */
@Injectable()
export class AlertService {
  constructor(
    private readonly database: Database,
    private readonly runs: RunService,
    private readonly previews: AlertPreviews,
    private readonly audit: AuditLog,
    @Inject(CONFIG) private readonly config: Config,
  ) {}

  async list(caller: Caller) {
    const { orgId } = caller;
    const [rows, firing] = await Promise.all([
      this.database.prisma.alert.findMany({ where: { orgId }, orderBy: [{ name: 'asc' }, { id: 'asc' }] }),
      this.#firing(orgId),
    ]);
    return { alerts: await this.#present(caller, rows, firing) };
  }

  /** Throws `alert_not_found`. */
  async get(caller: Caller, id: string) {
    const row = await this.#find(caller, id);
    const firing = await this.#firing(caller.orgId);
    return (await this.#present(caller, [row], firing))[0]!;
  }

  /** Throws `limit_reached`, `webhook_not_found`, `run_not_found`, `invalid_query`. */
  async create(caller: Caller, body: AlertBody) {
    const data = await this.#columnsOf(caller, body);
    const row = await this.database.prisma.$transaction(async (transaction) => {
      await assertRoomForAlert(transaction, this.config.limits, caller.orgId);
      const user = await transaction.user.findUnique({ where: { id: caller.userId }, select: { name: true } });
      const created = await transaction.alert.create({ data: { ...data, orgId: caller.orgId, author: user?.name ?? caller.userId } });
      await this.audit.record(caller, { action: 'alert.create', targetId: created.id, target: created.name }, transaction);
      return created;
    });
    return (await this.#present(caller, [row], []))[0]!;
  }

  /** An alert with another condition or other runs begins again. Throws as `create`, and `alert_not_found`. */
  async replace(caller: Caller, id: string, body: AlertBody) {
    const known = await this.#find(caller, id);
    const data = await this.#columnsOf(caller, body);
    const isSame =
      data.runs === known.runs && JSON.stringify(data.condition) === JSON.stringify(alertConditionSchema.parse(known.condition));
    const row = await this.database.prisma.$transaction(async (transaction) => {
      const changed = await transaction.alert.update({
        where: { id: known.id, orgId: caller.orgId },
        data: { ...data, ...(isSame ? {} : { since: new Date() }) },
      });
      if (!isSame) {
        await transaction.alertState.deleteMany({ where: { alertId: id, orgId: caller.orgId } });
        await transaction.alertEnvironmentState.deleteMany({ where: { alertId: id, orgId: caller.orgId } });
      }
      await this.audit.record(caller, { action: 'alert.change', targetId: id, target: changed.name }, transaction);
      return changed;
    });
    const firing = await this.#firing(caller.orgId);
    return (await this.#present(caller, [row], firing))[0]!;
  }

  /** Throws `alert_not_found`. */
  async delete(caller: Caller, id: string): Promise<void> {
    const known = await this.#find(caller, id);
    await this.database.prisma.$transaction(async (transaction) => {
      await transaction.alert.deleteMany({ where: { id, orgId: caller.orgId } });
      await this.audit.record(caller, { action: 'alert.delete', targetId: id, target: known.name }, transaction);
    });
  }

  /** Throws `run_not_found`, `invalid_query`, `too_expensive`, `capacity_exhausted`. */
  async preview(caller: Caller, { run, condition }: AlertPreviewBody) {
    const { condition: valid, baseline } = await this.#validate(caller, condition);
    return { condition_text: conditionText(valid, baseline), ...(await this.previews.preview(caller, run, valid)) };
  }

  /** Alerts that fire in a run. Throws `run_not_found`. */
  async ofRun(caller: Caller, run: string) {
    const rows = await selectFiring(this.database.pool, caller.orgId, await this.runs.seqOf(caller, run));
    return {
      firing: rows.map(({ alert_id, alert_name, since, evidence }) => ({
        alert: { id: alert_id, name: alert_name },
        since: since.toISOString(),
        evidence,
      })),
    };
  }

  async events(caller: Caller, { alert, run, limit, cursor }: AlertEventQuery) {
    const { pool } = this.database;
    const runSeq = run === undefined ? null : await this.runs.seqOf(caller, run);
    const before = cursor === undefined ? null : decodeCursor(cursor, INT64)[0]!;
    const [rows, { read, unread }] = await Promise.all([
      selectEvents(pool, { orgId: caller.orgId, alertId: alert ?? null, runSeq, before, limit: limit + 1 }),
      selectUnread(pool, caller.orgId, caller.userId),
    ]);
    const last = rows[limit - 1];
    return {
      events: rows.slice(0, limit).map((row) => ({
        id: row.id,
        alert: { id: row.alert_id, name: row.alert_name },
        ...subjectOf(row),
        kind: row.kind,
        at: row.at.toISOString(),
        muted: row.muted,
        unread: !row.muted && BigInt(row.seq) > BigInt(read),
        evidence: row.evidence,
      })),
      unread,
      next: rows.length > limit && last ? encodeCursor([last.seq]) : null,
    };
  }

  /** Marks this event and all older ones as read. An unknown event changes nothing. */
  async markRead({ orgId, userId }: Caller, until: string) {
    await markRead(this.database.pool, orgId, userId, until);
    const { unread } = await selectUnread(this.database.pool, orgId, userId);
    return { unread };
  }

  /** In runs and in hosted environments. */
  async #firing(orgId: string): Promise<FiringRow[]> {
    const { pool } = this.database;
    return (await Promise.all([selectFiring(pool, orgId, null), selectFiringEnvironments(pool, orgId)])).flat();
  }

  async #find({ orgId }: Caller, id: string): Promise<AlertModel> {
    const row = isUuid(id) ? await this.database.prisma.alert.findFirst({ where: { id, orgId } }) : null;
    if (!row) throw new PalestraError('alert_not_found');
    return row;
  }

  async #columnsOf(caller: Caller, { name, runs, condition, webhook, muted }: AlertBody) {
    if (webhook !== null && (await this.database.prisma.webhook.count({ where: { id: webhook, orgId: caller.orgId } })) === 0)
      throw new PalestraError('webhook_not_found');
    return { name, runs, condition: (await this.#validate(caller, condition)).condition, webhookId: webhook, muted };
  }

  /** Names what a condition refers to by id, and writes its query as the printer does. */
  async #validate(caller: Caller, condition: AlertCondition): Promise<{ condition: AlertCondition; baseline: string | null }> {
    const { pool } = this.database;
    if (condition.kind === 'baseline') {
      const { id, name } = await this.runs.get(caller, condition.run);
      return { condition: { ...condition, run: id }, baseline: name };
    }
    if (condition.kind !== 'count') return { condition, baseline: null };
    const q = canonicalQuery(condition.q);
    const { compiled } = await rolloutQuery(pool, countedQuery({ ...condition, q }), [], 1);
    if (compiled.postFilter !== null || compiled.text.length > 0) {
      const msg = 'An alert cannot search for a regex or for words of messages. Use keys, as in stop:timeout or tool.error:bash.';
      throw new PalestraError('invalid_query', { detail: [{ type: 'value_error', loc: ['body', 'condition', 'q'], msg }] });
    }
    return { condition: { ...condition, q }, baseline: null };
  }

  async #present(caller: Caller, rows: readonly AlertModel[], firing: readonly FiringRow[]) {
    const conditions = rows.map(({ condition }) => alertConditionSchema.parse(condition));
    const baselines = await selectBaselines(this.database.pool, caller.orgId, conditions);
    return rows.map((row, at) => {
      const condition = conditions[at]!;
      return {
        id: row.id,
        name: row.name,
        runs: row.runs,
        condition,
        condition_text: conditionText(condition, condition.kind === 'baseline' ? (baselines.get(condition.run)?.name ?? null) : null),
        webhook: row.webhookId,
        muted: row.muted,
        author: row.author,
        created_at: row.createdAt.toISOString(),
        firing: firing
          .filter(({ alert_id }) => alert_id === row.id)
          .slice(0, FIRING_SHOWN)
          .map((one) => ({ ...subjectOf(one), since: one.since.toISOString(), evidence: one.evidence })),
      };
    });
  }
}

const subjectOf = ({ run_id: id, run_name: name, environment }: Pick<FiringRow, 'run_id' | 'run_name' | 'environment'>) => ({
  run: id === null || name === null ? null : { id, name },
  environment,
});
