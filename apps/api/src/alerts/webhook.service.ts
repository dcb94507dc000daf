import { randomUUID } from 'node:crypto';
import { Inject, Injectable } from '@nestjs/common';
import { type Clock, isUuid } from '@palestra/kit';
import { OutboundPolicy } from '@palestra/outbound';
import { type ChangeWebhook, type CreateWebhook, type DeliveryQuery, PalestraError } from '@palestra/protocol';
import type { Caller } from '@palestra/session';
import { assertRoomForWebhook } from '../accounts/account-limits.ts';
import { AuditLog } from '../accounts/audit/audit-log.service.ts';
import { isOwner } from '../accounts/owner.ts';
import { type Config, CONFIG } from '../platform/config.ts';
import { Database } from '../platform/database/database.ts';
import { inTransaction } from '../platform/database/transaction.ts';
import type { WebhookModel } from '../platform/generated/prisma/models.ts';
import { decodeCursor, encodeCursor, TIME } from '../platform/http/cursor.ts';
import type { SecretKeys } from '../platform/secret-keys.ts';
import { CLOCK, SERVER_SECRET } from '../platform/tokens.ts';
import { AlertMessages } from './alert-messages.ts';
import { messageIdOf } from './webhook-signature.ts';
import { sealSecret } from './webhook-secrets.ts';
import { countWaiting, type DeliveryRow, giveUpDeliveries, requeueDelivery, selectDeliveries } from './webhook.sql.ts';

/** Receivers of webhooks. All members see them; owners change them, because they send data out of the organisation. */
@Injectable()
export class WebhookService {
  constructor(
    private readonly database: Database,
    private readonly audit: AuditLog,
    private readonly policy: OutboundPolicy,
    private readonly messages: AlertMessages,
    @Inject(SERVER_SECRET) private readonly keys: SecretKeys,
    @Inject(CLOCK) private readonly clock: Clock,
    @Inject(CONFIG) private readonly config: Config,
  ) {}

  async list({ orgId }: Caller) {
    const [rows, waiting] = await Promise.all([
      this.database.prisma.webhook.findMany({ where: { orgId }, orderBy: [{ name: 'asc' }, { id: 'asc' }] }),
      countWaiting(this.database.pool, orgId),
    ]);
    return { webhooks: rows.map((row) => present(row, waiting)) };
  }

  /** Returns the secret, this once. Throws `owner_required`, `limit_reached`, `upstream_address_refused`. */
  async create(caller: Caller, { name, url }: CreateWebhook) {
    await this.#assertOwner(caller);
    await this.#assertReachable(url);
    const { orgId } = caller;
    const id = randomUUID();
    const { secret, sealed } = sealSecret(this.keys, { id, orgId }, this.clock.now());
    await this.database.prisma.$transaction(async (transaction) => {
      await assertRoomForWebhook(transaction, this.config.limits, orgId);
      const user = await transaction.user.findUnique({ where: { id: caller.userId }, select: { name: true } });
      await transaction.webhook.create({ data: { id, orgId, name, url, secrets: sealed, author: user?.name ?? caller.userId } });
      await this.audit.record(caller, { action: 'webhook.create', ...audited({ id, name, url }) }, transaction);
    });
    return { id, secret };
  }

  /** Throws `owner_required`, `webhook_not_found`, `upstream_address_refused`. */
  async change(caller: Caller, id: string, { name, url, enabled }: ChangeWebhook) {
    await this.#assertOwner(caller);
    const known = await this.#find(caller, id);
    if (url !== undefined) await this.#assertReachable(url);
    const state =
      enabled === undefined
        ? {}
        : { disabledAt: enabled ? null : new Date(this.clock.now()), disabledReason: enabled ? null : 'Disabled by a member.' };
    const row = await this.database.prisma.$transaction(async (transaction) => {
      const changed = await transaction.webhook.update({ where: { id: known.id, orgId: caller.orgId }, data: { name, url, ...state } });
      const details: Record<string, boolean> = enabled === undefined ? {} : { enabled };
      await this.audit.record(caller, { action: 'webhook.change', ...audited(changed, details) }, transaction);
      return changed;
    });
    if (enabled === false) await giveUpDeliveries(this.database.pool, id);
    return present(row, await countWaiting(this.database.pool, caller.orgId));
  }

  /** Throws `owner_required`, `webhook_not_found`. */
  async delete(caller: Caller, id: string): Promise<void> {
    await this.#assertOwner(caller);
    const known = await this.#find(caller, id);
    await this.database.prisma.$transaction(async (transaction) => {
      await transaction.webhook.deleteMany({ where: { id, orgId: caller.orgId } });
      await this.audit.record(caller, { action: 'webhook.delete', ...audited(known) }, transaction);
    });
  }

  /** Replaces the secret; the old one also signs for a day. Throws `owner_required`, `webhook_not_found`. */
  async rotate(caller: Caller, id: string) {
    await this.#assertOwner(caller);
    const known = await this.#find(caller, id);
    const { secret, sealed } = sealSecret(this.keys, known, this.clock.now(), known.secrets);
    await this.database.prisma.$transaction(async (transaction) => {
      await transaction.webhook.update({ where: { id: known.id, orgId: caller.orgId }, data: { secrets: sealed } });
      await this.audit.record(caller, { action: 'webhook.rotate', ...audited(known) }, transaction);
    });
    return { id, secret };
  }

  /** Throws `webhook_not_found`, `webhook_disabled`. */
  async test(caller: Caller, id: string) {
    await this.#find(caller, id);
    const now = new Date(this.clock.now());
    const delivery = await inTransaction(this.database.pool, (client) => this.messages.addTest(client, caller.orgId, id, now));
    if (delivery === null) throw new PalestraError('webhook_disabled');
    return { id: delivery };
  }

  async deliveries(caller: Caller, id: string, { limit, cursor }: DeliveryQuery) {
    await this.#find(caller, id);
    const [at, after] = cursor === undefined ? [] : decodeCursor(cursor, TIME, isUuid);
    const page = { orgId: caller.orgId, webhookId: id, after: at === undefined ? null : { at, id: after! }, limit: limit + 1 };
    const rows = await selectDeliveries(this.database.pool, page);
    const last = rows[limit - 1];
    return {
      deliveries: rows.slice(0, limit).map(presentDelivery),
      next: rows.length > limit && last ? encodeCursor([last.at, last.id]) : null,
    };
  }

  /** Throws `webhook_not_found`, `webhook_disabled`, `delivery_not_found`. */
  async redeliver(caller: Caller, id: string, delivery: string) {
    if ((await this.#find(caller, id)).disabledAt !== null) throw new PalestraError('webhook_disabled');
    if (!isUuid(delivery) || !(await requeueDelivery(this.database.pool, caller.orgId, id, delivery)))
      throw new PalestraError('delivery_not_found');
    await this.messages.wake(this.database.pool);
    return { id: delivery };
  }

  async #find({ orgId }: Caller, id: string): Promise<WebhookModel> {
    const row = isUuid(id) ? await this.database.prisma.webhook.findFirst({ where: { id, orgId } }) : null;
    if (!row) throw new PalestraError('webhook_not_found');
    return row;
  }

  async #assertOwner(caller: Caller): Promise<void> {
    if (caller.anonymous || !(await isOwner(this.database, caller))) throw new PalestraError('owner_required');
  }

  /** The policy also decides at every attempt: names may resolve to other addresses then. */
  async #assertReachable(url: string): Promise<void> {
    const { hostname, port, protocol } = new URL(url);
    await this.policy.checkResolved(hostname, Number(port) || (protocol === 'https:' ? 443 : 80));
  }
}

/** Without the path and query of the URL, which often have a token. */
const audited = ({ id, name, url }: Pick<WebhookModel, 'id' | 'name' | 'url'>, details: Record<string, boolean> = {}) => ({
  targetId: id,
  target: name,
  details: { host: new URL(url).host, ...details },
});

const present = (row: WebhookModel, waiting: ReadonlyMap<string, number>) => ({
  id: row.id,
  name: row.name,
  url: row.url,
  enabled: row.disabledAt === null,
  disabled_reason: row.disabledReason,
  author: row.author,
  created_at: row.createdAt.toISOString(),
  waiting: waiting.get(row.id) ?? 0,
});

const presentDelivery = ({ id, body, state, next_at, created_at, attempts }: DeliveryRow) => ({
  id,
  message_id: messageIdOf(id),
  type: (JSON.parse(body) as { type: string }).type,
  state,
  next_at: next_at?.toISOString() ?? null,
  created_at: created_at.toISOString(),
  body,
  attempts: attempts.map((attempt) => ({ ...attempt, at: new Date(attempt.at).toISOString() })),
});
