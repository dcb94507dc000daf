import { applyDecorators, type ExecutionContext, Injectable, SetMetadata, UseInterceptors } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import type { Caller } from '@palestra/session';
import { Freshness, type ReadState } from '../platform/http/freshness.ts';
import { RunScopes } from './run-scope.ts';

const PARAMETER = 'palestra:run-parameter';

@Injectable()
class RunFreshness extends Freshness {
  constructor(private readonly runs: RunScopes) {
    super();
  }

  protected async stateOf(request: FastifyRequest, context: ExecutionContext): Promise<ReadState> {
    const parameter = Reflect.getMetadata(PARAMETER, context.getHandler()) as string;
    const run = await this.runs.open(request.caller as Caller, (request.params as Record<string, string>)[parameter] ?? '');
    request.run = run;
    return {
      mark: `${run.seq}.${run.version}.${run.updated_at.getTime()}`,
      asOf: run.as_of,
      version: run.version,
      lastAt: run.updated_at,
      pending: run.pending,
    };
  }
}

/** Marks a route that reads one run. `parameter` names its id or name in the path; the handler gets the run as `@OfRun()`. */
export const ReadsRun = (parameter = 'run') => applyDecorators(SetMetadata(PARAMETER, parameter), UseInterceptors(RunFreshness));
