import { Controller, Get, Inject, Param, Query } from '@nestjs/common';
import type { TaskDifficultyQuery } from '@palestra/protocol';
import { taskDifficultyQuerySchema, taskDifficultySchema } from '@palestra/protocol/schemas';
import type { Caller, EnvironmentDirectory } from '@palestra/session';
import { CurrentCaller, RequireScope } from '../accounts/caller.decorator.ts';
import { ENVIRONMENT_DIRECTORY } from '../environments/directory.token.ts';
import { Api } from '../platform/http/api.decorator.ts';
import { RoundFigures } from '../platform/http/round-figures.ts';
import { Database } from '../platform/database/database.ts';
import { selectTaskDifficulty } from './task-difficulty.sql.ts';

@Controller('v1/environments')
@RoundFigures()
export class TaskDifficultyController {
  constructor(
    private readonly database: Database,
    @Inject(ENVIRONMENT_DIRECTORY) private readonly directory: EnvironmentDirectory,
  ) {}

  @RequireScope('rollouts')
  @Get(':owner/:name/task-difficulty')
  @Api({
    summary: "Rewards per task over the caller's rollouts",
    query: taskDifficultyQuerySchema,
    response: taskDifficultySchema,
    errors: ['deployment_not_found'],
  })
  async get(
    @CurrentCaller() caller: Caller,
    @Param('owner') owner: string,
    @Param('name') name: string,
    @Query({ schema: taskDifficultyQuerySchema }) query: TaskDifficultyQuery,
  ) {
    const hosted = await this.directory.resolve(`${owner}/${name}`, caller);
    const tasks = await selectTaskDifficulty(this.database.pool, {
      orgId: caller.orgId,
      environmentId: hosted.environmentId,
      environment: `${owner}/${name}`,
      variant: query.variant,
      split: query.split,
      modelName: query.model_name,
      minModelParams: query.min_model_params,
      maxModelParams: query.max_model_params,
      trainingStage: query.training_stage,
    });
    return { tasks };
  }
}
