import { Controller, Get, Query } from '@nestjs/common';
import type { RunMovesQuery } from '@palestra/protocol';
import { runMovesQuerySchema, runMovesSchema } from '@palestra/protocol/schemas';
import { RequireScope } from '../../accounts/caller.decorator.ts';
import { Api } from '../../platform/http/api.decorator.ts';
import { RoundFigures } from '../../platform/http/round-figures.ts';
import { ReadsRun } from '../run-freshness.ts';
import { OfRun, type RunScope } from '../run-scope.ts';
import { RunMovesService } from './run-moves.service.ts';

@Controller('v1/runs/:run')
@RoundFigures()
@RequireScope('rollouts')
export class RunMovesController {
  constructor(private readonly reads: RunMovesService) {}

  @Get('moves')
  @ReadsRun()
  @Api({
    summary: 'Steps at which the mean reward moved by more than noise, and what else changed there',
    query: runMovesQuerySchema,
    response: runMovesSchema,
    errors: ['run_not_found', 'invalid_body', 'capacity_exhausted'],
  })
  moves(@OfRun() run: RunScope, @Query({ schema: runMovesQuerySchema }) query: RunMovesQuery) {
    return this.reads.moves(run, query);
  }
}
