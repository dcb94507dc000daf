import { Body, Controller, Delete, Get, Param, Patch, Query } from '@nestjs/common';
import type { RolloutListQuery, RunChangeBody, RunListQuery } from '@palestra/protocol';
import {
  deletedSchema,
  rolloutCountQuerySchema,
  rolloutCountSchema,
  rolloutListQuerySchema,
  rolloutListSchema,
  runListQuerySchema,
  runListSchema,
  runViewSchema,
} from '@palestra/protocol/schemas';
import type { Caller } from '@palestra/session';
import { Audited } from '../accounts/audit/audited.decorator.ts';
import { CurrentCaller, RequireScope } from '../accounts/caller.decorator.ts';
import { Shareable } from '../accounts/shareable.decorator.ts';
import { Api } from '../platform/http/api.decorator.ts';
import { RoundFigures } from '../platform/http/round-figures.ts';
import { guestList } from '../rollouts/guest-answers.ts';
import { CacheByResponse } from '../platform/http/freshness.ts';
import { ReadsRun } from './run-freshness.ts';
import { guestRun } from './guest-answers.ts';
import { OfRun, type RunScope } from './run-scope.ts';
import { RunService } from './run.service.ts';
import { checkedRunChangeSchema } from './run-change.schema.ts';

@Controller('v1/runs')
@RoundFigures()
@RequireScope('rollouts')
export class RunController {
  constructor(private readonly runs: RunService) {}

  @Get()
  @CacheByResponse()
  @Api({ summary: 'Runs, newest activity first', query: runListQuerySchema, response: runListSchema, errors: ['invalid_cursor'] })
  list(@CurrentCaller() caller: Caller, @Query({ schema: runListQuerySchema }) query: RunListQuery) {
    return this.runs.list(caller, query);
  }

  @Get(':id')
  @ReadsRun('id')
  @Shareable('run', guestRun)
  @Api({ summary: 'A run with its figures', response: runViewSchema, errors: ['run_not_found'] })
  get(@CurrentCaller() caller: Caller, @Param('id') id: string) {
    return this.runs.get(caller, id);
  }

  @Get(':id/rollouts')
  @ReadsRun('id')
  @Shareable('list', guestList)
  @Api({
    summary: 'Rollouts of a run',
    query: rolloutListQuerySchema,
    response: rolloutListSchema,
    errors: ['run_not_found', 'invalid_query', 'invalid_cursor', 'too_expensive', 'capacity_exhausted'],
  })
  rollouts(@CurrentCaller() caller: Caller, @Param('id') id: string, @Query({ schema: rolloutListQuerySchema }) query: RolloutListQuery) {
    return this.runs.rollouts(caller, id, query);
  }

  @Get(':id/rollouts/count')
  @ReadsRun('id')
  @Api({
    summary: 'The number of rollouts of a query, for an action on all of them',
    query: rolloutCountQuerySchema,
    response: rolloutCountSchema,
    errors: ['run_not_found', 'invalid_query', 'too_expensive', 'capacity_exhausted'],
  })
  countRollouts(@OfRun() run: RunScope, @Query({ schema: rolloutCountQuerySchema }) { q }: { q?: string }) {
    return this.runs.countRollouts(run.seq, q);
  }

  @Patch(':id')
  @Api({
    summary: 'Change settings, tags or retention of a run, or mark it as finished',
    body: checkedRunChangeSchema,
    response: runViewSchema,
    errors: ['run_not_found'],
  })
  change(@CurrentCaller() caller: Caller, @Param('id') id: string, @Body({ schema: checkedRunChangeSchema }) body: RunChangeBody) {
    return this.runs.change(caller, id, { ...body, tags: body.tags && [...new Set(body.tags)] });
  }

  @Audited('run.delete')
  @Delete(':id')
  @Api({ summary: 'Erase a run with all its rollouts', response: deletedSchema, errors: ['run_not_found'] })
  async delete(@CurrentCaller() caller: Caller, @Param('id') id: string) {
    await this.runs.delete(caller, id);
    return { deleted: true };
  }
}
