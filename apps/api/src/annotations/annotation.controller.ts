import { Body, Controller, Delete, Get, HttpCode, Param, Post, Put, Query } from '@nestjs/common';
import type { AnnotationBody, AnnotationQuery, BulkAnnotation, BulkAnnotationBody, SavedViewBody } from '@palestra/protocol';
import {
  annotationBodySchema,
  annotationListSchema,
  annotationQuerySchema,
  annotationSchema,
  bulkAnnotationBodySchema,
  bulkAnnotationSchema,
  deletedSchema,
  savedViewBodySchema,
  savedViewListSchema,
  savedViewQuerySchema,
  savedViewSchema,
} from '@palestra/protocol/schemas';
import type { Caller } from '@palestra/session';
import type { z } from 'zod';
import { Audited } from '../accounts/audit/audited.decorator.ts';
import { CurrentCaller, RequireScope } from '../accounts/caller.decorator.ts';
import { Api } from '../platform/http/api.decorator.ts';
import { CacheByResponse } from '../platform/http/freshness.ts';
import { AnnotationService } from './annotation.service.ts';
import { BulkAnnotationService } from './bulk-annotation.service.ts';

@Controller('v1')
@RequireScope('rollouts')
export class AnnotationController {
  constructor(
    private readonly annotations: AnnotationService,
    private readonly bulk: BulkAnnotationService,
  ) {}

  @Post('annotations')
  @Api({
    summary: 'Annotate a rollout or some of its messages',
    body: annotationBodySchema,
    response: annotationSchema,
    errors: ['rollout_not_found'],
  })
  create(@CurrentCaller() caller: Caller, @Body({ schema: annotationBodySchema }) body: AnnotationBody) {
    return this.annotations.create(caller, body);
  }

  @Audited<BulkAnnotationBody, BulkAnnotation>('annotation.bulk', ({ params, body, result }) => ({
    targetId: params['run'] ?? null,
    details: { of: body.rollouts === undefined ? 'query' : 'rollouts', verdict: body.verdict ?? null, annotated: result.annotated },
  }))
  @Post('runs/:run/annotations')
  @HttpCode(200)
  @Api({
    summary: 'Give many rollouts of a run a verdict or a tag',
    body: bulkAnnotationBodySchema,
    response: bulkAnnotationSchema,
    errors: ['run_not_found', 'invalid_query', 'invalid_cursor', 'too_expensive', 'capacity_exhausted'],
  })
  createMany(
    @CurrentCaller() caller: Caller,
    @Param('run') run: string,
    @Body({ schema: bulkAnnotationBodySchema }) body: BulkAnnotationBody,
  ) {
    return this.bulk.create(caller, run, body);
  }

  @Get('annotations')
  @CacheByResponse()
  @Api({
    summary: 'Annotations, newest first',
    query: annotationQuerySchema,
    response: annotationListSchema,
    errors: ['rollout_not_found', 'run_not_found', 'invalid_cursor'],
  })
  list(@CurrentCaller() caller: Caller, @Query({ schema: annotationQuerySchema }) query: AnnotationQuery) {
    return this.annotations.list(caller, query);
  }

  @Audited('annotation.delete')
  @Delete('annotations/:id')
  @Api({ summary: 'Delete an annotation', response: deletedSchema, errors: ['annotation_not_found', 'annotation_of_review'] })
  async delete(@CurrentCaller() caller: Caller, @Param('id') id: string) {
    await this.annotations.delete(caller, id);
    return { deleted: true };
  }

  @Post('views')
  @Api({ summary: 'Save a view', body: savedViewBodySchema, response: savedViewSchema, errors: ['run_not_found', 'invalid_query'] })
  createView(@CurrentCaller() caller: Caller, @Body({ schema: savedViewBodySchema }) body: SavedViewBody) {
    return this.annotations.createView(caller, body);
  }

  @Get('views')
  @CacheByResponse()
  @Api({ summary: 'Saved views, by name', query: savedViewQuerySchema, response: savedViewListSchema, errors: ['run_not_found'] })
  listViews(@CurrentCaller() caller: Caller, @Query({ schema: savedViewQuerySchema }) query: z.infer<typeof savedViewQuerySchema>) {
    return this.annotations.listViews(caller, query.run);
  }

  @Put('views/:id')
  @Api({
    summary: 'Replace a saved view',
    body: savedViewBodySchema,
    response: savedViewSchema,
    errors: ['view_not_found', 'run_not_found', 'invalid_query'],
  })
  replaceView(@CurrentCaller() caller: Caller, @Param('id') id: string, @Body({ schema: savedViewBodySchema }) body: SavedViewBody) {
    return this.annotations.replaceView(caller, id, body);
  }

  @Audited('view.delete')
  @Delete('views/:id')
  @Api({ summary: 'Delete a saved view', response: deletedSchema, errors: ['view_not_found'] })
  async deleteView(@CurrentCaller() caller: Caller, @Param('id') id: string) {
    await this.annotations.deleteView(caller, id);
    return { deleted: true };
  }
}
