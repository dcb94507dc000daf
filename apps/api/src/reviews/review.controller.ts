import { Body, Controller, Delete, Get, HttpCode, Param, Post, Put } from '@nestjs/common';
import type { CreateReviewQueue, NextReviewBody, ReviewAnswerBody, ReviewQueueDetail } from '@palestra/protocol';
import {
  createReviewQueueSchema,
  deletedSchema,
  nextReviewBodySchema,
  nextReviewSchema,
  reviewAnswerBodySchema,
  reviewItemSchema,
  reviewQueueDetailSchema,
  reviewQueueListSchema,
} from '@palestra/protocol/schemas';
import type { Caller } from '@palestra/session';
import { Audited } from '../accounts/audit/audited.decorator.ts';
import { CurrentCaller, RequireScope } from '../accounts/caller.decorator.ts';
import { Api } from '../platform/http/api.decorator.ts';
import { CacheByResponse } from '../platform/http/freshness.ts';
import { ReviewItemService } from './review-item.service.ts';
import { ReviewQueueService } from './review-queue.service.ts';

@Controller('v1/review-queues')
@RequireScope('rollouts')
export class ReviewController {
  constructor(
    private readonly queues: ReviewQueueService,
    private readonly items: ReviewItemService,
  ) {}

  @Audited<unknown, ReviewQueueDetail>('review_queue.create', ({ result }) => ({
    targetId: result.id,
    target: result.name,
    details: { run: result.run, mode: result.mode, items: result.items },
  }))
  @Post()
  @HttpCode(200)
  @Api({
    summary: 'Create a review queue from a sample of a query',
    body: createReviewQueueSchema,
    response: reviewQueueDetailSchema,
    errors: ['run_not_found', 'invalid_query', 'member_not_found', 'limit_reached', 'capacity_exhausted'],
  })
  create(@CurrentCaller() caller: Caller, @Body({ schema: createReviewQueueSchema }) body: CreateReviewQueue) {
    return this.queues.create(caller, body);
  }

  @Get()
  @CacheByResponse()
  @Api({ summary: 'Review queues with progress and agreement, newest first', response: reviewQueueListSchema })
  list(@CurrentCaller() caller: Caller) {
    return this.queues.list(caller);
  }

  @Get(':id')
  @CacheByResponse()
  @Api({ summary: 'A review queue', response: reviewQueueDetailSchema, errors: ['review_queue_not_found'] })
  get(@CurrentCaller() caller: Caller, @Param('id') id: string) {
    return this.queues.get(caller, id);
  }

  @Audited('review_queue.close')
  @Post(':id/close')
  @HttpCode(200)
  @Api({
    summary: 'End a review; all its answers become annotations',
    response: reviewQueueDetailSchema,
    errors: ['review_queue_not_found', 'owner_required'],
  })
  close(@CurrentCaller() caller: Caller, @Param('id') id: string) {
    return this.queues.close(caller, id);
  }

  @Audited('review_queue.delete')
  @Delete(':id')
  @Api({
    summary: 'Delete a review queue with its answers and their annotations',
    response: deletedSchema,
    errors: ['review_queue_not_found', 'owner_required'],
  })
  async delete(@CurrentCaller() caller: Caller, @Param('id') id: string) {
    await this.queues.delete(caller, id);
    return { deleted: true };
  }

  @Post(':id/next')
  @HttpCode(200)
  @Api({
    summary: 'Reserve the next item for the caller',
    body: nextReviewBodySchema,
    response: nextReviewSchema,
    errors: ['review_queue_not_found', 'review_queue_closed', 'forbidden'],
  })
  next(@CurrentCaller() caller: Caller, @Param('id') id: string, @Body({ schema: nextReviewBodySchema }) body: NextReviewBody) {
    return this.items.next(caller, id, body);
  }

  @Get(':id/items/:position')
  @CacheByResponse()
  @Api({
    summary: 'An item with the answer of the caller, and those of others once it is complete',
    response: reviewItemSchema,
    errors: ['review_queue_not_found', 'review_item_not_found'],
  })
  item(@CurrentCaller() caller: Caller, @Param('id') id: string, @Param('position') position: string) {
    return this.items.item(caller, id, position);
  }

  @Put(':id/items/:position')
  @Api({
    summary: 'Answer an item, change the answer, or skip the item',
    body: reviewAnswerBodySchema,
    response: reviewItemSchema,
    errors: ['review_queue_not_found', 'review_item_not_found', 'review_item_taken', 'review_queue_closed', 'forbidden'],
  })
  answer(
    @CurrentCaller() caller: Caller,
    @Param('id') id: string,
    @Param('position') position: string,
    @Body({ schema: reviewAnswerBodySchema }) body: ReviewAnswerBody,
  ) {
    return this.items.answer(caller, id, position, body);
  }
}
