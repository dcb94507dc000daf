import { Readable } from 'node:stream';
import { Injectable } from '@nestjs/common';
import { type AuditEvent, type AuditExportQuery, type AuditQuery, PalestraError } from '@palestra/protocol';
import type { Caller } from '@palestra/session';
import { Database } from '../../platform/database/database.ts';
import { decodeCursor, encodeCursor, INT64 } from '../../platform/http/cursor.ts';
import { FIRST_ORG, isOwner } from '../owner.ts';
import { AuditLog } from './audit-log.service.ts';
import { type AuditFilter, type AuditRow, selectAuditRows } from './audit.sql.ts';

/** Rows of an export in memory. */
const BATCH = 500;

/**
 * The audit log of an organisation, for its owners. Owners of the first organisation run the service and also see events without an
 * organisation.
 */
@Injectable()
export class AuditReader {
  constructor(
    private readonly database: Database,
    private readonly log: AuditLog,
  ) {}

  async list(caller: Caller, { limit, cursor, ...query }: AuditQuery) {
    const filter = await this.#filter(caller, query);
    const from = cursor === undefined ? null : decodeCursor(cursor, INT64)[0]!;
    const rows = await selectAuditRows(this.database.pool, filter, { from, limit: limit + 1 });
    const page = rows.slice(0, limit);
    return { events: page.map(present), next_cursor: rows.length > limit ? encodeCursor([page.at(-1)!.id]) : null };
  }

  /** Streams JSON lines. An export without a filter ends with its own event. */
  async export(caller: Caller, query: AuditExportQuery): Promise<Readable> {
    const filter = await this.#filter(caller, query);
    const filters = Object.entries(query).filter(([, value]) => value !== undefined);
    await this.log.record(caller, { action: 'audit.export', details: Object.fromEntries(filters) });
    return Readable.from(this.#lines(filter), { objectMode: false });
  }

  async *#lines(filter: AuditFilter): AsyncGenerator<string> {
    let from: string | null = null;
    for (;;) {
      const rows: AuditRow[] = await selectAuditRows(this.database.pool, filter, { from, limit: BATCH, ascending: true });
      if (rows.length > 0) yield rows.map((row) => `${JSON.stringify(present(row))}\n`).join('');
      if (rows.length < BATCH) return;
      from = rows.at(-1)!.id;
    }
  }

  async #filter(caller: Caller, { action, actor, since, until }: AuditExportQuery): Promise<AuditFilter> {
    if (caller.anonymous || !(await isOwner(this.database, caller))) throw new PalestraError('owner_required');
    const operator = caller.orgName === FIRST_ORG;
    return { orgId: caller.orgId, operator, action: action ?? null, actor: actor ?? null, since: since ?? null, until: until ?? null };
  }
}

function present(row: AuditRow): AuditEvent {
  return {
    id: row.id,
    at: row.at.toISOString(),
    action: row.action,
    refused: row.refused,
    actor: row.actor_id === null ? null : { id: row.actor_id, name: row.actor },
    key: row.key_id === null ? null : { id: row.key_id, name: row.key_name },
    target: row.target_id === null && row.target === null ? null : { id: row.target_id, name: row.target },
    details: row.details,
    address: row.address,
    user_agent: row.user_agent,
  };
}
