import { Controller, Get, Query } from '@nestjs/common';
import type { RunStepsQuery } from '@palestra/protocol';
import { runStepsQuerySchema, runStepsSchema } from '@palestra/protocol/schemas';
import { RequireScope } from '../../accounts/caller.decorator.ts';
import { Shareable } from '../../accounts/shareable.decorator.ts';
import { Api } from '../../platform/http/api.decorator.ts';
import { RoundFigures } from '../../platform/http/round-figures.ts';
import { ReadsRun } from '../run-freshness.ts';
import { OfRun, type RunScope } from '../run-scope.ts';
import { RunStepsService } from './run-steps.service.ts';

@Controller('v1/runs/:run')
@RoundFigures()
@RequireScope('rollouts')
export class RunStepsController {
  constructor(private readonly counts: RunStepsService) {}

  @Get('steps')
  @ReadsRun()
  @Shareable('run')
  @Api({
    summary: 'Counts and stop reasons by step, as columns',
    query: runStepsQuerySchema,
    response: runStepsSchema,
    errors: ['run_not_found'],
  })
  steps(@OfRun() run: RunScope, @Query({ schema: runStepsQuerySchema }) query: RunStepsQuery) {
    return this.counts.steps(run.seq, query);
  }
}
