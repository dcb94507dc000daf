import { Injectable } from '@nestjs/common';
import {
  type NextReview,
  type NextReviewBody,
  PAIR_CHOICES,
  PalestraError,
  type ReviewAnswerBody,
  type ReviewItem,
} from '@palestra/protocol';
import type { Caller } from '@palestra/session';
import { insertReviewAnnotations, selectUserName } from '../annotations/annotation.sql.ts';
import { Database } from '../platform/database/database.ts';
import { inTransaction } from '../platform/database/transaction.ts';
import {
  claimNext,
  countAnswers,
  hasRoom,
  lockQueue,
  lockRollouts,
  saveAnswer,
  selectItem,
  selectMyProgress,
  selectPrevious,
} from './review-item.sql.ts';
import { isReviewer, ReviewQueueService } from './review-queue.service.ts';
import type { QueueRow } from './review-queue.sql.ts';

/** How long an item is reserved for the reviewer that got it. Then others may get it too. */
const CLAIM_MS = 15 * 60_000;

/**
 * Items of a queue and their answers. An answer becomes an annotation when its item is complete, because reviewers must not see the answers
 * of others before.
 */
@Injectable()
export class ReviewItemService {
  constructor(
    private readonly database: Database,
    private readonly queues: ReviewQueueService,
  ) {}

  /** Reserves the next item. Throws `review_queue_not_found`, `review_queue_closed`, `forbidden`. */
  async next(caller: Caller, id: string, { skipped }: NextReviewBody): Promise<NextReview> {
    const { pool } = this.database;
    const queue = await this.#reviewed(caller, id);
    const reviewer = await this.#reviewer(caller, queue);
    const position = await inTransaction(pool, async (client) => {
      const { overlap } = await openQueue(client, queue.id);
      return claimNext(client, reviewer, { overlap, withSkipped: skipped, claimMs: CLAIM_MS });
    });
    const progress = await selectMyProgress(pool, queue.id, caller.userId, queue.overlap);
    return { item: position === null ? null : await this.#item(caller, queue, position), items: queue.items, ...progress };
  }

  /** Throws `review_queue_not_found`, `review_item_not_found`. */
  async item(caller: Caller, id: string, position: string): Promise<ReviewItem> {
    return this.#item(caller, await this.queues.find(caller, id), positionOf(position));
  }

  /**
   * Stores or replaces the caller's answer. Throws `review_queue_not_found`, `review_item_not_found`, `review_queue_closed`, `forbidden`,
   * `invalid_body` for an unknown choice, and `review_item_taken` if others have answered or reserved it after the reservation of the
   * caller ended.
   */
  async answer(caller: Caller, id: string, at: string, answer: ReviewAnswerBody): Promise<ReviewItem> {
    const position = positionOf(at);
    const queue = await this.#reviewed(caller, id);
    const choices: readonly string[] = queue.mode === 'pairs' ? PAIR_CHOICES : queue.labels;
    if (answer.choice !== null && !choices.includes(answer.choice))
      throw new PalestraError('invalid_body', {
        detail: [{ type: 'value_error', loc: ['body', 'choice'], msg: `Expected ${choices.join(', ')}, or null.` }],
      });
    const reviewer = await this.#reviewer(caller, queue);
    await inTransaction(this.database.pool, async (client) => {
      await lockRollouts(client, queue.id, position);
      const { overlap } = await openQueue(client, queue.id);
      const free = await hasRoom(client, queue.id, caller.userId, position, overlap);
      if (free === null) throw new PalestraError('review_item_not_found');
      if (!free && answer.choice !== null) throw new PalestraError('review_item_taken');
      await saveAnswer(client, reviewer, position, answer);
      if ((await countAnswers(client, queue.id, position)) >= overlap) await insertReviewAnnotations(client, queue.id, position);
    });
    return this.#item(caller, queue, position);
  }

  async #reviewed(caller: Caller, id: string): Promise<QueueRow> {
    const queue = await this.queues.find(caller, id);
    if (!isReviewer(queue, caller))
      throw new PalestraError('forbidden', { detail: 'You are not a reviewer of this queue. Ask its author.' });
    return queue;
  }

  async #reviewer({ orgId, userId }: Caller, { id }: QueueRow) {
    return { orgId, userId, queueId: id, name: await selectUserName(this.database.pool, userId) };
  }

  async #item(caller: Caller, queue: QueueRow, position: number): Promise<ReviewItem> {
    const { pool } = this.database;
    const row = await selectItem(pool, queue.id, position);
    if (!row) throw new PalestraError('review_item_not_found');
    const answered = row.answers.filter(({ choice }) => choice !== null);
    const complete = answered.length >= queue.overlap;
    const mine = row.answers.find((each) => each.user_id === caller.userId && (each.choice !== null || each.skipped));
    const shown = complete || queue.closed_at !== null ? answered.filter(({ user_id }) => user_id !== caller.userId) : [];
    return {
      position,
      rollouts: row.rollouts,
      complete,
      answer: mine
        ? { choice: mine.choice, comment: mine.comment, skipped: mine.skipped, answered_at: mine.answered_at?.toISOString() ?? null }
        : null,
      others: shown.map(({ author, choice, comment, answered_at }) => ({
        reviewer: author,
        choice: choice!,
        comment,
        answered_at: answered_at!.toISOString(),
      })),
      previous: await selectPrevious(pool, queue.id, caller.userId, mine?.answered_at ?? null, position),
    };
  }
}

/** Of a path. Throws `review_item_not_found`. */
function positionOf(text: string): number {
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new PalestraError('review_item_not_found');
  return Number(text);
}

/** Locks the queue. Throws `review_queue_not_found`, `review_queue_closed`. */
async function openQueue(client: Parameters<typeof lockQueue>[0], id: string): Promise<{ overlap: number }> {
  const queue = await lockQueue(client, id);
  if (!queue) throw new PalestraError('review_queue_not_found');
  if (queue.closed_at !== null) throw new PalestraError('review_queue_closed');
  return queue;
}
