import { createParamDecorator, type ExecutionContext, Injectable } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import type { Caller } from '@palestra/session';
import { Database } from '../platform/database/database.ts';
import type { RolloutDetail, RolloutHead } from './rollout.sql.ts';
import { RolloutService } from './rollout.service.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Of a route marked `@ReadsRollout()`: the rollout that its path names. */
    rollout?: RolloutScope;
  }
}

/** A rollout as one read sees it. `record` is null before its start event came. */
export interface RolloutScope {
  head: RolloutHead;
  record: RolloutDetail | null;
  orgId: string;
  orgName: string;
  /** Version of its run; '0' without one. */
  runVersion: string;
}

/** The rollout of a route marked `@ReadsRollout()`. */
export const OfRollout = createParamDecorator((_data: unknown, context: ExecutionContext): RolloutScope => {
  const { rollout } = context.switchToHttp().getRequest<FastifyRequest>();
  if (!rollout) throw new Error('@OfRollout() needs @ReadsRollout() on its route');
  return rollout;
});

/** Where every read of one rollout begins. */
@Injectable()
export class RolloutScopes {
  constructor(
    private readonly database: Database,
    private readonly rollouts: RolloutService,
  ) {}

  /** Throws `rollout_not_found`, also for one of another organisation. */
  async open(caller: Caller, id: string): Promise<RolloutScope> {
    const { head, record } = await this.rollouts.find(caller, id);
    const { rows } = await this.database.pool.query<{ version: string }>('SELECT version::text FROM runs WHERE seq = $1', [head.run_seq]);
    return { head, record, orgId: caller.orgId, orgName: caller.orgName, runVersion: rows[0]?.version ?? '0' };
  }
}
