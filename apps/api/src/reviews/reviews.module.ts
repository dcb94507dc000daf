import { Module } from '@nestjs/common';
import { RunsModule } from '../runs/runs.module.ts';
import { StoreModule } from '../store/store.module.ts';
import { ReviewController } from './review.controller.ts';
import { ReviewItemService } from './review-item.service.ts';
import { ReviewQueueService } from './review-queue.service.ts';

/** Samples of a query that people review; their answers are annotations. */
@Module({ imports: [StoreModule, RunsModule], controllers: [ReviewController], providers: [ReviewQueueService, ReviewItemService] })
export class ReviewsModule {}
