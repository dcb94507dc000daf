import { createParamDecorator, type ExecutionContext, Injectable } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import type { Caller } from '@palestra/session';
import { Database } from '../platform/database/database.ts';
import type { RolloutDetail, RolloutHead } from './rollout.sql.ts';
import { RolloutService } from './rollout.service.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** On routes with `@ReadsRollout()`: the rollout in the path. */
    rollout?: RolloutSnapshot;
  }
}

/** The state of a rollout at the begin of a read. `record` is null before its start event arrived. */
export interface RolloutSnapshot {
  head: RolloutHead;
  record: RolloutDetail | null;
  orgId: string;
  orgName: string;
  /** Version of its run; '0' without one. */
  runVersion: string;
}

/** The rollout of a route with `@ReadsRollout()`. */
export const OfRollout = createParamDecorator((_data: unknown, context: ExecutionContext): RolloutSnapshot => {
  const { rollout } = context.switchToHttp().getRequest<FastifyRequest>();
  if (!rollout) throw new Error('@OfRollout() needs @ReadsRollout() on its route');
  return rollout;
});

/** Loads the rollout that a request reads. */
@Injectable()
export class RolloutSnapshots {
  constructor(
    private readonly database: Database,
    private readonly rollouts: RolloutService,
  ) {}

  /** Throws `rollout_not_found`, also for one of another organisation. */
  async load(caller: Caller, id: string): Promise<RolloutSnapshot> {
    const { head, record } = await this.rollouts.find(caller, id);
    const { rows } = await this.database.pool.query<{ version: string }>('SELECT version::text FROM runs WHERE seq = $1', [head.run_seq]);
    return { head, record, orgId: caller.orgId, orgName: caller.orgName, runVersion: rows[0]?.version ?? '0' };
  }
}
