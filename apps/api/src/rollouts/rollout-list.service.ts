import { Injectable } from '@nestjs/common';
import type { RolloutList } from '@palestra/protocol';
import type { PostFilter } from '@palestra/query';
import { decodeCursor, encodeCursor, exactly, FLOAT64, INT32, INT64 } from '../platform/http/cursor.ts';
import { Database } from '../platform/database/database.ts';
import { QueryFilter } from './query-filter.service.ts';
import { presentRolloutRow } from './rollout.presenter.ts';
import { type RolloutQuery, rolloutQuery } from './rollout-query.ts';
import {
  countRollouts,
  FIRST_PARAMETER,
  type Keyset,
  type RolloutPage,
  type RolloutPageRow,
  type RolloutSort,
  rolloutSorts,
  selectKeyset,
  selectRollouts,
} from './rollout.sql.ts';

/** Counting stops here: a list says "10k+" then. */
const COUNTED = 10_000;
/** Rollouts that a regex looks into at a time, and how long one page may take (dashboard.md 6.3). */
const REGEX_BATCH = 100;
const REGEX_MS = 5_000;

export interface ListRequest {
  runSeqs: readonly number[];
  q?: string;
  sort: RolloutSort;
  order: 'asc' | 'desc';
  limit: number;
  offset: number;
  cursor?: string;
}

/** `more`: where the next page goes on; null at the end. */
interface Rows {
  rows: RolloutPageRow[];
  more: Keyset | null;
}

/** A list as its reader saw it, and a rollout that was opened from it. */
export type BesideRequest = Pick<ListRequest, 'runSeqs' | 'q' | 'sort' | 'order'> & { seq: string };

/** Pages of rollouts in any order, filtered by the query language. */
@Injectable()
export class RolloutListService {
  constructor(
    private readonly database: Database,
    private readonly filter: QueryFilter,
  ) {}

  async list(request: ListRequest): Promise<RolloutList> {
    const query = queryOf(request);
    const page: RolloutPage = { ...request, where: query?.where, after: keysetOf(request), limit: request.limit + 1 };
    const [{ rows, more }, total] = await Promise.all([
      this.#rows(page, query, request.limit),
      countRollouts(this.database.pool, request.runSeqs, query?.where, COUNTED + 1),
    ]);
    return {
      rollouts: rows.map(presentRolloutRow),
      total: Math.min(total, COUNTED),
      total_is: total > COUNTED || query?.compiled.postFilter ? 'at_least' : 'exact',
      next: more === null ? null : encodeCursor([request.sort, request.order, more.value, more.seq]),
      query: query?.text ?? null,
    };
  }

  /** The rows before and after a rollout, which need not be in the list itself; `incomplete` when a regex had too little time to find them. */
  async beside({ seq, ...list }: BesideRequest): Promise<{ previous?: RolloutPageRow; next?: RolloutPageRow; incomplete: boolean }> {
    const query = queryOf(list);
    const after = await selectKeyset(this.database.pool, seq, list);
    const one = (backwards: boolean) => this.#rows({ ...list, where: query?.where, after, limit: 2, backwards }, query, 1);
    const [previous, next] = await Promise.all([one(true), one(false)]);
    const given = (side: typeof next) => side.rows.length === 0 && side.more !== null;
    return {
      ...(previous.rows[0] && { previous: previous.rows[0] }),
      ...(next.rows[0] && { next: next.rows[0] }),
      incomplete: given(previous) || given(next),
    };
  }

  #rows(page: RolloutPage, query: RolloutQuery | null, limit: number): Promise<Rows> {
    const filter = query?.compiled.postFilter ?? null;
    return filter ? this.#filtered(page, filter, limit) : this.#page(page, limit);
  }

  async #page(page: RolloutPage, limit: number): Promise<Rows> {
    const rows = await selectRollouts(this.database.pool, page);
    return { rows: rows.slice(0, limit), more: rows.length > limit ? keysetAt(rows[limit - 1]!) : null };
  }

  /** Rows that a regex accepts. A page may hold fewer than asked, or none, when its time is over: `next` goes on from there. */
  async #filtered(page: RolloutPage, filter: PostFilter, limit: number): Promise<Rows> {
    const deadline = performance.now() + REGEX_MS;
    const accepted: RolloutPageRow[] = [];
    let { after, offset: left = 0 } = page;
    for (;;) {
      const candidates = await selectRollouts(this.database.pool, { ...page, after, offset: 0, limit: REGEX_BATCH });
      const found = await this.filter.accepted(
        filter,
        candidates.map(({ seq }) => seq),
      );
      for (const row of candidates) {
        after = keysetAt(row);
        if (!found.has(row.seq)) continue;
        if (left > 0) left -= 1;
        else accepted.push(row);
        if (accepted.length === limit) return { rows: accepted, more: after };
      }
      if (candidates.length < REGEX_BATCH) return { rows: accepted, more: null };
      if (performance.now() > deadline) return { rows: accepted, more: after ?? null };
    }
  }
}

const queryOf = ({ q, runSeqs }: Pick<ListRequest, 'q' | 'runSeqs'>): RolloutQuery | null =>
  q === undefined || q.trim() === '' ? null : rolloutQuery(q, runSeqs, FIRST_PARAMETER);

const SORT_VALUES = { bigint: INT64, float8: FLOAT64, int: INT32 };

function keysetOf({ cursor, sort, order }: ListRequest): Keyset | undefined {
  if (cursor === undefined) return undefined;
  const [, , value, seq] = decodeCursor(cursor, exactly(sort), exactly(order), SORT_VALUES[rolloutSorts[sort].type], INT64);
  return { value: value!, seq: seq! };
}

const keysetAt = (row: RolloutPageRow): Keyset => ({ value: row.sort_value, seq: row.seq });
