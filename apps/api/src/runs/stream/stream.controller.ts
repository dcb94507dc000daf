import { Controller, Get, Query, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Caller } from '@palestra/session';
import { CurrentCaller, RequireScope } from '../../accounts/caller.decorator.ts';
import { Database } from '../../platform/database.ts';
import { RunActivity } from './run-activity.service.ts';
import { RunService } from '../run.service.ts';
import { RESUMABLE_STEPS, RESUMABLE_VERSIONS, RETOLD_VERSIONS, RunStream } from './run-stream.ts';
import { type RunCounters, selectCounters, selectStepsSince } from './stream.sql.ts';

@Controller('v1/stream')
@RequireScope('rollouts')
export class StreamController {
  constructor(
    private readonly database: Database,
    private readonly activity: RunActivity,
    private readonly runs: RunService,
  ) {}

  /**
   * Server-sent events (dashboard.md section 7), each kind at most once a second. Of all runs: `run {id, v, steps}`. With `?run=` (id or
   * name) also `counters {rollouts, messages, live, lag_ms, v}` and `dirty {steps, groups, v}`, the version as `id`; `Last-Event-ID`
   * is answered with a `dirty` of what was missed, or `reset`. Throws `run_not_found` before the stream begins.
   */
  @Get()
  async stream(
    @CurrentCaller() caller: Caller,
    @Query('run') run: string | undefined,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const id = run === undefined ? null : (await this.runs.get(caller, run)).id;
    const { pool } = this.database;
    const counters = id === null ? null : () => selectCounters(pool, id, caller.orgId);
    reply.hijack();
    const stream = new RunStream(reply.raw, counters);
    const unsubscribe = this.activity.subscribe(caller.orgId, (news) => (id === null || id === news.id) && stream.tell(news));
    request.raw.once('close', () => {
      stream.end();
      unsubscribe();
    });
    if (id !== null && counters !== null)
      await this.#begin(stream, id, counters, request.headers['last-event-id']).catch(() => reply.raw.destroy());
  }

  async #begin(
    stream: RunStream,
    id: string,
    counters: () => Promise<RunCounters | null>,
    lastEventId: string | string[] | undefined,
  ): Promise<void> {
    const now = await counters();
    if (now && typeof lastEventId === 'string') stream.resume(await this.#since(id, lastEventId, now.v), now.v);
    stream.count();
  }

  /** Null when it is too long ago, or no version of this run. */
  async #since(id: string, lastEventId: string, v: string): Promise<number[] | null> {
    if (!/^\d{1,18}$/.test(lastEventId)) return null;
    const behind = BigInt(v) - BigInt(lastEventId);
    if (behind < 0n || behind > RESUMABLE_VERSIONS) return null;
    const steps = await selectStepsSince(this.database.pool, id, String(BigInt(lastEventId) - RETOLD_VERSIONS), RESUMABLE_STEPS + 1);
    return steps.length > RESUMABLE_STEPS ? null : steps;
  }
}
