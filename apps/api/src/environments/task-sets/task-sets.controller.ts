import type { PublishedTaskSet, SplitUpload } from '@palestra/protocol';
import {
  deletedDraftSchema,
  publishedTaskSetSchema,
  splitUploadSchema,
  storedSplitSchema,
  taskSetListSchema,
  taskSetSchema,
} from '@palestra/protocol/schemas';
import type { Readable } from 'node:stream';
import { Controller, Delete, Get, HttpCode, Inject, Param, Post, Put, Query, Req } from '@nestjs/common';
import { RouteConfig } from '@nestjs/platform-fastify';
import type { FastifyRequest } from 'fastify';
import type { Caller } from '@palestra/session';
import { Audited } from '../../accounts/audit/audited.decorator.ts';
import { CurrentCaller, RequireScope } from '../../accounts/caller.decorator.ts';
import { Api } from '../../platform/http/api.decorator.ts';
import { discardRest } from '../../platform/http/body.ts';
import { TaskSetsService } from './task-sets.service.ts';

/** Uploaded tasks of an environment. */
@Controller('v1/environments/:owner/:name/task-sets')
export class TaskSetsController {
  constructor(@Inject(TaskSetsService) private readonly taskSets: TaskSetsService) {}

  @Api({ summary: 'Uploaded task sets', response: taskSetListSchema, errors: ['environment_not_found'] })
  @Get()
  list(@CurrentCaller() caller: Caller, @Param('owner') owner: string, @Param('name') name: string) {
    return this.taskSets.list(caller, owner, name);
  }

  @RequireScope('environments')
  @HttpCode(200)
  @Api({
    summary: 'Create a draft of a task set; upload a file for each split, then publish it',
    response: taskSetSchema,
    errors: ['environment_not_found', 'deployment_not_found'],
  })
  @Post()
  create(@CurrentCaller() caller: Caller, @Param('owner') owner: string, @Param('name') name: string) {
    return this.taskSets.createDraft(caller, owner, name);
  }

  /** The body is the file: one task per line or row, as `{task_spec, prompt?, id?}` or the specification itself. */
  @RequireScope('environments')
  @Api({
    summary: 'Upload a JSONL or Parquet file of tasks as a split of a draft',
    query: splitUploadSchema,
    response: storedSplitSchema,
    errors: [
      'environment_not_found',
      'task_set_not_found',
      'task_set_published',
      'invalid_task_file',
      'body_too_large',
      'too_expensive',
      'capacity_exhausted',
    ],
  })
  @Put(':id/splits/:split')
  @RouteConfig({ streamBody: true })
  putSplit(
    @CurrentCaller() caller: Caller,
    @Param('owner') owner: string,
    @Param('name') name: string,
    @Param('id') id: string,
    @Param('split') split: string,
    @Query({ schema: splitUploadSchema }) query: SplitUpload,
    @Req() request: FastifyRequest,
  ) {
    return this.taskSets
      .putSplit(caller, { owner, name, id, split }, query, request.body as Readable | undefined)
      .catch((error: unknown) => discardRest(request.raw, error));
  }

  @RequireScope('environments')
  @HttpCode(200)
  @Api({
    summary: 'Publish a draft: a new version of the environment has these tasks. Repeated content creates no version',
    response: publishedTaskSetSchema,
    errors: ['environment_not_found', 'deployment_not_found', 'task_set_not_found', 'task_set_published'],
  })
  @Audited<unknown, PublishedTaskSet>('task_set.publish', ({ params, result }) => ({
    targetId: params['id']!,
    target: `${params['owner']}/${params['name']}`,
    details: { version: result.version },
  }))
  @Post(':id/publish')
  publish(@CurrentCaller() caller: Caller, @Param('owner') owner: string, @Param('name') name: string, @Param('id') id: string) {
    return this.taskSets.publish(caller, owner, name, id);
  }

  @RequireScope('environments')
  @Api({
    summary: 'Delete a task set that no version uses',
    response: deletedDraftSchema,
    errors: ['environment_not_found', 'task_set_not_found', 'task_set_in_use'],
  })
  @Audited('task_set.delete', ({ params }) => ({ targetId: params['id']!, target: `${params['owner']}/${params['name']}` }))
  @Delete(':id')
  delete(@CurrentCaller() caller: Caller, @Param('owner') owner: string, @Param('name') name: string, @Param('id') id: string) {
    return this.taskSets.delete(caller, owner, name, id);
  }
}
