import { Injectable, UseInterceptors } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { PalestraError } from '@palestra/protocol';
import type { Caller } from '@palestra/session';
import { Freshness, type ReadState } from '../platform/http/freshness.ts';
import { RolloutListService } from './rollout-list.service.ts';
import { RolloutSnapshots } from './rollout-snapshot.ts';

@Injectable()
class RolloutFreshness extends Freshness {
  constructor(
    private readonly rollouts: RolloutSnapshots,
    private readonly lists: RolloutListService,
  ) {
    super();
  }

  protected async stateOf(request: FastifyRequest): Promise<ReadState> {
    const rollout = await this.rollouts.load(request.caller as Caller, (request.params as Record<string, string>)['id'] ?? '');
    // A link to a query opens what matches now.
    const q = request.share?.query ?? null;
    if (q !== null && !(await this.lists.matches(rollout, q))) throw new PalestraError('rollout_not_found');
    request.rollout = rollout;
    const { head, runVersion } = rollout;
    return {
      mark: `${head.seq}.${head.revision}.${runVersion}`,
      asOf: head.last_at,
      version: runVersion,
      lastAt: head.last_at,
      pending: head.dirty && head.run_seq !== null ? 1 : null,
    };
  }
}

/** For routes that read the rollout of parameter `id`. The handler gets it by `@OfRollout()`. */
export const ReadsRollout = () => UseInterceptors(RolloutFreshness);
