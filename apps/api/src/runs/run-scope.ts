import { createParamDecorator, type ExecutionContext, Injectable } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import type { Caller } from '@palestra/session';
import { Database } from '../platform/database/database.ts';
import { ReadSettler } from '../store/derive/read-settler.service.ts';
import { RunService } from './run.service.ts';
import { type RunState, selectRunState } from './run-scope.sql.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** The settled run of a route marked `@ReadsRun()`. */
    run?: RunScope;
  }
}

/** A run as one read sees it. Its figures contain all events that were acknowledged before, unless deriving them takes too long. */
export interface RunScope extends RunState {
  orgId: string;
  /** Rollouts whose newest events its figures do not show yet; null = the figures are complete. */
  pending: number | null;
}

/** The run of a route marked `@ReadsRun()`. */
export const OfRun = createParamDecorator((_data: unknown, context: ExecutionContext): RunScope => {
  const { run } = context.switchToHttp().getRequest<FastifyRequest>();
  if (!run) throw new Error('@OfRun() needs @ReadsRun() on its route');
  return run;
});

/** Opens a run for a read. */
@Injectable()
export class RunScopes {
  constructor(
    private readonly database: Database,
    private readonly runs: RunService,
    private readonly settler: ReadSettler,
  ) {}

  /** By id or name. Throws `run_not_found`, also for a run of another organisation. */
  async open(caller: Caller, idOrName: string): Promise<RunScope> {
    const seq = await this.runs.seqOf(caller, idOrName);
    const pending = await this.settler.settle([seq]);
    return { ...(await selectRunState(this.database.pool, seq)), orgId: caller.orgId, pending: pending.get(seq) ?? null };
  }
}
