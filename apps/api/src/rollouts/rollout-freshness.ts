import { Injectable, UseInterceptors } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import type { Caller } from '@palestra/session';
import { Freshness, type ReadState } from '../platform/http/freshness.ts';
import { RolloutSnapshots } from './rollout-snapshot.ts';

@Injectable()
class RolloutFreshness extends Freshness {
  constructor(private readonly rollouts: RolloutSnapshots) {
    super();
  }

  protected async stateOf(request: FastifyRequest): Promise<ReadState> {
    const rollout = await this.rollouts.load(request.caller as Caller, (request.params as Record<string, string>)['id'] ?? '');
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
