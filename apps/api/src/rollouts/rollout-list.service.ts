import { Injectable } from '@nestjs/common';
import type { RolloutCount, RolloutList } from '@palestra/protocol';
import type { PostFilter } from '@palestra/query';
import { decodeCursor, encodeCursor, exactly, FLOAT64, INT32, INT64 } from '../platform/http/cursor.ts';
import { Database } from '../platform/database/database.ts';
import { ReadSettler } from '../store/derive/read-settler.service.ts';
import { QueryFilter } from './query-filter.service.ts';
import { presentRolloutRow } from './rollout.presenter.ts';
import { type RolloutQuery, rolloutQuery } from './rollout-query.ts';
import type { RolloutSnapshot } from './rollout-snapshot.ts';
import {
  countRollouts,
  FIRST_PARAMETER,
  type Keyset,
  latestRollout,
  type RolloutPage,
  type RolloutPageRow,
  type RolloutSort,
  rolloutSorts,
  selectArrivalsEnd,
  selectKeyset,
  selectRollouts,
} from './rollout.sql.ts';

/** Counting stops here: a list then shows "10k+". */
const MAX_COUNT = 10_000;
/** Counting of a selection stops here. */
const MAX_SELECTED = 100_000;
/** Rollouts per page of a count with a regex. */
const COUNT_PAGE = 1_000;
/** Rollouts of a run that one page of `arrivals` reads. */
const MAX_READ = 20_000;
/** Rollouts per batch of a regex search, and the time limit of a page. */
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

/** `more`: start of the next page; null at the end. */
interface Rows {
  rows: RolloutPageRow[];
  more: Keyset | null;
}

/** A list and a rollout that was opened from it. */
export type BesideRequest = Pick<ListRequest, 'runSeqs' | 'q' | 'sort' | 'order'> & { seq: string };

/** Pages of rollouts in any order, with a filter of the query language. */
@Injectable()
export class RolloutListService {
  constructor(
    private readonly database: Database,
    private readonly filter: QueryFilter,
    private readonly settler: ReadSettler,
  ) {}

  async list(request: ListRequest): Promise<RolloutList> {
    const query = await this.#query(request);
    const page: RolloutPage = { ...request, where: query?.where, after: keysetOf(request), limit: request.limit + 1 };
    const byRegex = query?.compiled.postFilter != null;
    const [{ rows, more }, counted] = await Promise.all([
      this.#rows(page, query, request.limit),
      // SQL finds more rollouts than a regex accepts.
      byRegex ? null : countRollouts(this.database.pool, request.runSeqs, query?.where, MAX_COUNT + 1),
    ]);
    const total = counted ?? (rows.length === 0 ? 0 : request.offset + rows.length);
    return {
      rollouts: rows.map(presentRolloutRow),
      total: Math.min(total, MAX_COUNT),
      total_is: total > MAX_COUNT || byRegex ? 'at_least' : 'exact',
      next: more === null ? null : encodeCursor([request.sort, request.order, more.value, more.seq]),
      query: query?.text ?? null,
    };
  }

  /**
   * The rows before and after a rollout, which need not be in the list. `incomplete`: the time limit of a regex passed before they were
   * found.
   */
  async beside({ seq, ...list }: BesideRequest): Promise<{ previous?: RolloutPageRow; next?: RolloutPageRow; incomplete: boolean }> {
    const query = await this.#query(list);
    const after = await selectKeyset(this.database.pool, seq, list);
    const one = (backwards: boolean) => this.#rows({ ...list, where: query?.where, after, limit: 2, backwards }, query, 1);
    const [previous, next] = await Promise.all([one(true), one(false)]);
    const isCut = (side: typeof next) => side.rows.length === 0 && side.more !== null;
    return {
      ...(previous.rows[0] && { previous: previous.rows[0] }),
      ...(next.rows[0] && { next: next.rows[0] }),
      incomplete: isCut(previous) || isCut(next),
    };
  }

  /** Rollouts of a query up to now. `as_of` bounds the same rollouts for `arrivals`. */
  async count(runSeq: number, q: string | undefined): Promise<RolloutCount> {
    const { pool } = this.database;
    const asOf = await latestRollout(pool, runSeq);
    const query = await this.#query({ runSeqs: [runSeq], ...(q !== undefined && { q }) });
    const regex = query?.compiled.postFilter ?? null;
    const { count, isExact } = regex
      ? await this.#countFiltered(runSeq, boundedBy(asOf, query), regex)
      : await countUpTo(MAX_SELECTED, (limit) => countRollouts(pool, [runSeq], boundedBy(asOf, query), limit));
    return { count, count_is: isExact ? 'exact' : 'at_least', as_of: asOf };
  }

  /**
   * Rollouts of a query in the order of arrival, after `after` up to `asOf`. A page reads at most `MAX_READ` rollouts of the run, so that it
   * can have fewer than `limit` or none; `more` continues.
   */
  async arrivals(page: {
    runSeq: number;
    q: string;
    asOf: string;
    after: string | null;
    limit: number;
  }): Promise<{ seqs: string[]; more: string | null }> {
    const [query, { until, isLast }] = await Promise.all([
      this.#query({ q: page.q, runSeqs: [page.runSeq] }),
      selectArrivalsEnd(this.database.pool, page, MAX_READ),
    ]);
    const after = page.after === null ? undefined : { value: page.after, seq: page.after };
    const { rows, more } = await this.#rows(
      { ...ARRIVALS, runSeqs: [page.runSeq], where: boundedBy(until, query), after, limit: page.limit + 1, readLimit: MAX_READ },
      query,
      page.limit,
    );
    return { seqs: rows.map(({ seq }) => seq), more: more?.seq ?? (isLast ? null : until) };
  }

  async #countFiltered(runSeq: number, where: RolloutPage['where'], filter: PostFilter): Promise<{ count: number; isExact: boolean }> {
    const deadline = performance.now() + REGEX_MS;
    let count = 0;
    let after: Keyset | undefined;
    for (;;) {
      const { rows, more } = await this.#filtered({ ...ARRIVALS, runSeqs: [runSeq], where, after, limit: COUNT_PAGE }, filter, COUNT_PAGE);
      count += rows.length;
      if (more === null) return { count, isExact: true };
      if (performance.now() > deadline || count >= MAX_SELECTED) return { count, isExact: false };
      after = more;
    }
  }

  /** Whether a rollout of a run matches a query now. */
  async matches({ record }: Pick<RolloutSnapshot, 'record'>, q: string): Promise<boolean> {
    if (record === null) return false;
    const runSeqs = [record.run_seq];
    await this.settler.settle(runSeqs);
    const query = await this.#query({ q, runSeqs });
    if (query === null) return true;
    const { sql, values } = query.where;
    const where = { sql: `(${sql}) AND r.seq = $${FIRST_PARAMETER + values.length}`, values: [...values, record.seq] };
    const { rows } = await this.#rows({ runSeqs, where, sort: 'created_at', order: 'desc', limit: 1, offset: 0 }, query, 1);
    return rows.length === 1;
  }

  async #query({ q, runSeqs }: Pick<ListRequest, 'q' | 'runSeqs'>): Promise<RolloutQuery | null> {
    return q === undefined || q.trim() === '' ? null : rolloutQuery(this.database.pool, q, runSeqs, FIRST_PARAMETER);
  }

  #rows(page: RolloutPage, query: RolloutQuery | null, limit: number): Promise<Rows> {
    const filter = query?.compiled.postFilter ?? null;
    return filter ? this.#filtered(page, filter, limit) : this.#page(page, limit);
  }

  async #page(page: RolloutPage, limit: number): Promise<Rows> {
    const rows = await selectRollouts(this.database.pool, page);
    return { rows: rows.slice(0, limit), more: rows.length > limit ? keysetAt(rows[limit - 1]!) : null };
  }

  /** Rows that a regex accepts. A page has fewer rows than requested, or none, when its time limit has passed; `next` continues there. */
  async #filtered(page: RolloutPage, filter: PostFilter, limit: number): Promise<Rows> {
    const deadline = performance.now() + REGEX_MS;
    const accepted: RolloutPageRow[] = [];
    let { after, offset: skips = 0 } = page;
    for (;;) {
      const candidates = await selectRollouts(this.database.pool, { ...page, after, offset: 0, limit: REGEX_BATCH });
      const { accepted: found, read } = await this.filter.accepted(
        filter,
        candidates.map(({ seq }) => seq),
        deadline,
      );
      for (const row of candidates.slice(0, read)) {
        after = keysetAt(row);
        if (!found.has(row.seq)) continue;
        if (skips > 0) skips -= 1;
        else accepted.push(row);
        if (accepted.length === limit) return { rows: accepted, more: after };
      }
      if (read === candidates.length && candidates.length < REGEX_BATCH) return { rows: accepted, more: null };
      if (read < candidates.length || performance.now() > deadline) return { rows: accepted, more: after ?? null };
    }
  }
}

const ARRIVALS = { sort: 'created_at', order: 'asc' } as const;

/** The condition of a query, restricted to rollouts that had arrived. */
function boundedBy(asOf: string, query: RolloutQuery | null): NonNullable<RolloutPage['where']> {
  const { sql, values } = query?.where ?? { sql: 'TRUE', values: [] };
  return { sql: `(${sql}) AND r.seq <= $${FIRST_PARAMETER + values.length}::bigint`, values: [...values, asOf] };
}

async function countUpTo(most: number, count: (limit: number) => Promise<number>): Promise<{ count: number; isExact: boolean }> {
  const counted = await count(most + 1);
  return { count: Math.min(counted, most), isExact: counted <= most };
}

const SORT_VALUES = { bigint: INT64, float8: FLOAT64, int: INT32 };

function keysetOf({ cursor, sort, order }: ListRequest): Keyset | undefined {
  if (cursor === undefined) return undefined;
  const [, , value, seq] = decodeCursor(cursor, exactly(sort), exactly(order), SORT_VALUES[rolloutSorts[sort].type], INT64);
  return { value: value!, seq: seq! };
}

const keysetAt = (row: RolloutPageRow): Keyset => ({ value: row.sort_value, seq: row.seq });
