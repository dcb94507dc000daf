import { Controller, Get, Query } from '@nestjs/common';
import { RequireScope } from '../../accounts/caller.decorator.ts';
import { Api } from '../../platform/http/api.decorator.ts';
import { ReadsRun } from '../run-freshness.ts';
import { OfRun, type RunScope } from '../run-scope.ts';
import { type StepsQuery, stepsQuerySchema, stepsSchema } from './run-steps.schema.ts';
import { RunStepsService } from './run-steps.service.ts';

@Controller('v1/runs/:run')
@RequireScope('rollouts')
export class RunStepsController {
  constructor(private readonly counts: RunStepsService) {}

  @Get('steps')
  @ReadsRun()
  @Api({
    summary: 'Counts and stop reasons by step, as columns',
    query: stepsQuerySchema,
    response: stepsSchema,
    errors: ['run_not_found'],
  })
  steps(@OfRun() run: RunScope, @Query({ schema: stepsQuerySchema }) query: StepsQuery) {
    return this.counts.steps(run.seq, query);
  }
}
