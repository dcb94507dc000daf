import { Injectable } from '@nestjs/common';
import { isUuid } from '@palestra/kit';
import { PalestraError, type RolloutMessageView, type RolloutView } from '@palestra/protocol';
import type { Caller } from '@palestra/session';
import { Database } from '../platform/database.ts';
import { presentMessage, presentRollout } from './rollout.presenter.ts';
import { deleteRollout, type RolloutDetail, selectMessages, selectMissingIndexes, selectRollout } from './rollout.sql.ts';

/** Reads and erasure of single rollouts, within the caller's organisation. */
@Injectable()
export class RolloutService {
  constructor(private readonly database: Database) {}

  /** The whole rollout without paging: readers expect it in one answer (openreward-wire.md 13.5). */
  async get(caller: Caller, id: string): Promise<RolloutView> {
    const detail = await this.#find(caller, id);
    const { pool } = this.database;
    const gaps = detail.max_index + 1 > detail.num_messages;
    const [messages, missing] = await Promise.all([
      selectMessages(pool, caller.orgId, id),
      gaps ? selectMissingIndexes(pool, caller.orgId, id, detail.max_index) : [],
    ]);
    return presentRollout(detail, caller.orgName, messages, missing);
  }

  async messages(caller: Caller, id: string, from: number, limit: number): Promise<{ messages: RolloutMessageView[]; total: number }> {
    const detail = await this.#find(caller, id);
    const messages = await selectMessages(this.database.pool, caller.orgId, id, from, limit);
    return { messages: messages.map(presentMessage), total: detail.num_messages };
  }

  async delete(caller: Caller, id: string): Promise<void> {
    if (!isUuid(id) || !(await deleteRollout(this.database.pool, caller.orgId, id))) throw new PalestraError('rollout_not_found');
  }

  async #find(caller: Caller, id: string): Promise<RolloutDetail> {
    const detail = isUuid(id) ? await selectRollout(this.database.pool, caller.orgId, id) : null;
    if (!detail) throw new PalestraError('rollout_not_found');
    return detail;
  }
}
