import { Controller, Get, Param, Query } from '@nestjs/common';
import type { GroupListQuery, GroupQuery, RunTaskListQuery } from '@palestra/protocol';
import {
  groupListQuerySchema,
  groupListSchema,
  groupQuerySchema,
  groupViewSchema,
  runTaskListQuerySchema,
  runTaskListSchema,
  runTaskSchema,
} from '@palestra/protocol/schemas';
import { RequireScope } from '../../accounts/caller.decorator.ts';
import { Api } from '../../platform/http/api.decorator.ts';
import { RoundFigures } from '../../platform/http/round-figures.ts';
import { ReadsRun } from '../run-freshness.ts';
import { RunGroupsService } from './run-groups.service.ts';
import { OfRun, type RunScope } from '../run-scope.ts';
import { RunTasksService } from './run-tasks.service.ts';

const taskQuerySchema = runTaskListQuerySchema.pick({ phase: true });

@Controller('v1/runs/:run')
@RoundFigures()
@RequireScope('rollouts')
export class RunGroupsController {
  constructor(
    private readonly groups: RunGroupsService,
    private readonly tasks: RunTasksService,
  ) {}

  @Get('groups')
  @ReadsRun()
  @Api({
    summary: 'Groups of a run',
    query: groupListQuerySchema,
    response: groupListSchema,
    errors: ['run_not_found', 'invalid_query', 'invalid_cursor'],
  })
  list(@OfRun() run: RunScope, @Query({ schema: groupListQuerySchema }) query: GroupListQuery) {
    return this.groups.list(run, query);
  }

  @Get('groups/:key')
  @ReadsRun()
  @Api({
    summary: 'A group with its rollouts and their advantages',
    query: groupQuerySchema,
    response: groupViewSchema,
    errors: ['run_not_found', 'group_not_found'],
  })
  get(@OfRun() run: RunScope, @Param('key') key: string, @Query({ schema: groupQuerySchema }) query: GroupQuery) {
    return this.groups.get(run, key, query);
  }

  @Get('tasks')
  @ReadsRun()
  @Api({
    summary: 'Tasks of a run, solve rates by step',
    query: runTaskListQuerySchema,
    response: runTaskListSchema,
    errors: ['run_not_found', 'invalid_cursor'],
  })
  listTasks(@OfRun() run: RunScope, @Query({ schema: runTaskListQuerySchema }) query: RunTaskListQuery) {
    return this.tasks.list(run, query);
  }

  @Get('tasks/:task')
  @ReadsRun()
  @Api({
    summary: 'A task of a run with its groups',
    query: taskQuerySchema,
    response: runTaskSchema,
    errors: ['run_not_found', 'task_not_found'],
  })
  getTask(@OfRun() run: RunScope, @Param('task') task: string, @Query({ schema: taskQuerySchema }) query: Pick<RunTaskListQuery, 'phase'>) {
    return this.tasks.get(run, task, query);
  }
}
