import { Injectable } from '@nestjs/common';
import { isUuid } from '@palestra/kit';
import { alphaInterval, groupBy, krippendorffAlpha } from '@palestra/metrics';
import { type CreateReviewQueue, PalestraError, type ReviewQueue, type ReviewQueueDetail, type ReviewQueueList } from '@palestra/protocol';
import type { Caller } from '@palestra/session';
import { isOwner } from '../accounts/owner.ts';
import { insertReviewAnnotations, selectUserName } from '../annotations/annotation.sql.ts';
import { Database } from '../platform/database/database.ts';
import { inTransaction } from '../platform/database/transaction.ts';
import { TenantConcurrency } from '../platform/tenant-concurrency.ts';
import { rolloutQuery } from '../rollouts/rollout-query.ts';
import { RunService } from '../runs/run.service.ts';
import { selectRunSeqs } from '../runs/search/search.sql.ts';
import { ReadSettler } from '../store/derive/read-settler.service.ts';
import {
  closeQueue,
  countQueues,
  deleteQueue,
  insertQueue,
  insertSample,
  type PatternRow,
  type QueueRow,
  SAMPLE_PARAMETER,
  selectMembers,
  selectPatterns,
  selectProgress,
  selectQueue,
  selectQueues,
} from './review-queue.sql.ts';

/** Of an organisation, so that one list shows all. */
const MAX_QUEUES = 200;
const MAX_ITEMS = 50_000;
/** Without a run the sample is drawn from the newest runs, at most this many. */
const MAX_RUNS = 1_000;
/** Samples drawn at the same time. Each sorts the matching rollouts. */
const LIMITS = { owner: 1, all: 2 };

/** Review queues of the caller's organisation. Every member creates and reads them. */
@Injectable()
export class ReviewQueueService {
  readonly #limits = new TenantConcurrency('new review queues', LIMITS);

  constructor(
    private readonly database: Database,
    private readonly runs: RunService,
    private readonly settler: ReadSettler,
  ) {}

  /** Throws `run_not_found`, `invalid_query`, `member_not_found`, `limit_reached`, `capacity_exhausted`. */
  async create(caller: Caller, request: CreateReviewQueue): Promise<ReviewQueueDetail> {
    const { pool } = this.database;
    const runSeq = request.run === undefined ? null : await this.runs.seqOf(caller, request.run);
    const runSeqs = runSeq === null ? await selectRunSeqs(pool, caller.orgId, MAX_RUNS) : [runSeq];
    const id = await this.#limits.use(caller.orgId, async () => {
      await this.settler.settle(runSeqs);
      const query = await rolloutQuery(pool, request.query, runSeqs, SAMPLE_PARAMETER);
      if (query.compiled.postFilter)
        throw new PalestraError('invalid_query', {
          detail: 'A sample cannot use a regex. Use words or phrases, or tag the rollouts that match the regex and query the tag.',
        });
      const reviewers = [...new Set(request.reviewers)];
      if ((await selectMembers(pool, caller.orgId, reviewers)).length < reviewers.length) throw new PalestraError('member_not_found');
      await this.#checkLimits(caller, request.sample);
      const author = await selectUserName(pool, caller.userId);
      const { name, seed, mode, criteria, overlap } = request;
      const labels = mode === 'labels' ? request.labels : [];
      const queue = { org_id: caller.orgId, run_seq: runSeq, user_id: caller.userId, author, query: query.text, reviewers };
      return inTransaction(pool, async (client) => {
        const queueId = await insertQueue(client, { ...queue, name, seed, mode, labels, criteria, overlap });
        const sample = { orgId: caller.orgId, queueId, runSeqs, seed, size: request.sample, mode, where: query.where };
        if ((await insertSample(client, sample)) === 0)
          throw new PalestraError('invalid_query', {
            detail:
              mode === 'pairs'
                ? 'No group has two rollouts that match the query.'
                : 'No rollout matches the query, so there is nothing to review.',
          });
        return queueId;
      });
    });
    return this.get(caller, id);
  }

  async list(caller: Caller): Promise<ReviewQueueList> {
    const rows = await selectQueues(this.database.pool, caller.orgId, MAX_QUEUES);
    const patterns = groupBy(
      await selectPatterns(
        this.database.pool,
        rows.map(({ id }) => id),
      ),
      ({ queue_id }) => queue_id,
    );
    const owner = await isOwner(this.database, caller);
    return { queues: rows.map((row) => present(row, patterns.get(row.id) ?? [], caller, owner, null)) };
  }

  /** Throws `review_queue_not_found`. */
  async get(caller: Caller, id: string): Promise<ReviewQueueDetail> {
    const row = await this.find(caller, id);
    const [patterns, progress, owner] = await Promise.all([
      selectPatterns(this.database.pool, [row.id]),
      selectProgress(this.database.pool, row.id),
      isOwner(this.database, caller),
    ]);
    return {
      ...present(row, patterns, caller, owner, alphaInterval(patterns)),
      progress: progress.map(({ last_at, ...counts }) => ({ ...counts, last_at: last_at?.toISOString() ?? null })),
    };
  }

  /** Ends the review: all answers become annotations, also those of incomplete items. Throws `review_queue_not_found`, `owner_required`. */
  async close(caller: Caller, id: string): Promise<ReviewQueueDetail> {
    const row = await this.#managed(caller, id);
    await inTransaction(this.database.pool, async (client) => {
      await closeQueue(client, caller.orgId, row.id);
      await insertReviewAnnotations(client, row.id, null);
    });
    return this.get(caller, id);
  }

  /** Deletes the queue with its answers and their annotations. Throws `review_queue_not_found`, `owner_required`. */
  async delete(caller: Caller, id: string): Promise<void> {
    const row = await this.#managed(caller, id);
    if (!(await deleteQueue(this.database.pool, caller.orgId, row.id))) throw new PalestraError('review_queue_not_found');
  }

  /** Throws `review_queue_not_found`. */
  async find(caller: Caller, id: string): Promise<QueueRow> {
    const row = isUuid(id) ? await selectQueue(this.database.pool, caller.orgId, id) : null;
    if (!row) throw new PalestraError('review_queue_not_found');
    return row;
  }

  async #managed(caller: Caller, id: string): Promise<QueueRow> {
    const row = await this.find(caller, id);
    if (row.user_id !== caller.userId && !(await isOwner(this.database, caller)))
      throw new PalestraError('owner_required', {
        detail: 'Only its author or an owner of the organisation can close or delete a review queue.',
      });
    return row;
  }

  async #checkLimits(caller: Caller, sample: number): Promise<void> {
    const held = await countQueues(this.database.pool, caller.orgId);
    if (held.queues >= MAX_QUEUES)
      throw new PalestraError('limit_reached', { detail: `An organisation can have at most ${MAX_QUEUES} review queues. Delete some.` });
    if (held.items + sample > MAX_ITEMS)
      throw new PalestraError('limit_reached', {
        detail: `The review queues of an organisation have at most ${MAX_ITEMS} items together, and yours have ${held.items}. Delete some, or take a smaller sample.`,
      });
  }
}

/** Whether the caller may answer items of the queue, apart from its end. */
export const isReviewer = ({ reviewers }: Pick<QueueRow, 'reviewers'>, { userId }: Caller): boolean =>
  reviewers.length === 0 || reviewers.some(({ id }) => id === userId);

function present(
  row: QueueRow,
  patterns: readonly PatternRow[],
  caller: Caller,
  owner: boolean,
  interval: { low: number; high: number } | null,
): ReviewQueue {
  const choices: Record<string, number> = {};
  let complete = 0;
  let answers = 0;
  for (const { counts, items } of patterns) {
    let answersOfItem = 0;
    for (const [choice, count] of Object.entries(counts)) {
      answersOfItem += count;
      choices[choice] = (choices[choice] ?? 0) + count * items;
    }
    answers += answersOfItem * items;
    if (answersOfItem >= row.overlap) complete += items;
  }
  const { alpha, items } = krippendorffAlpha(patterns);
  const { id, name, run, query, seed, mode, labels, criteria, reviewers, overlap, author } = row;
  return {
    id,
    name,
    run,
    query,
    seed,
    mode,
    labels,
    criteria,
    reviewers,
    overlap,
    author,
    created_at: row.created_at.toISOString(),
    closed_at: row.closed_at?.toISOString() ?? null,
    items: row.items,
    complete,
    answers,
    choices,
    agreement: { alpha, low: interval?.low ?? null, high: interval?.high ?? null, items },
    can_review: row.closed_at === null && isReviewer(row, caller),
    can_manage: owner || row.user_id === caller.userId,
  };
}
