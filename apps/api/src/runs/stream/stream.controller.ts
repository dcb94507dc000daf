import { Controller, Get, Query, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { isUuid } from '@palestra/kit';
import { PalestraError, type StreamCounters } from '@palestra/protocol';
import type { Caller } from '@palestra/session';
import { CurrentCaller, RequireScope } from '../../accounts/caller.decorator.ts';
import { Database } from '../../platform/database/database.ts';
import { onClosed } from '../../platform/http/on-closed.ts';
import { InFlight } from '../../platform/limits.ts';
import { RunAdvisoriesService } from '../curves/run-advisories.service.ts';
import { RunActivity } from '../../store/run-activity.service.ts';
import { RunService } from '../run.service.ts';
import { RESUMABLE_STEPS, RESUMABLE_VERSIONS, REPEATED_VERSIONS, RunStream } from './run-stream.ts';
import { selectCounters, selectOpenRollout, selectStepsSince } from './stream.sql.ts';

@Controller('v1/stream')
@RequireScope('rollouts')
export class StreamController {
  constructor(
    private readonly database: Database,
    private readonly activity: RunActivity,
    private readonly runs: RunService,
    private readonly advisories: RunAdvisoriesService,
    private readonly inFlight: InFlight,
  ) {}

  /**
   * Server-sent events, each kind at most once a second. For all runs: `run {id, v, steps}`. With `?run=` (id or name) also
   * `counters {rollouts, messages, live, lag_ms, v}`, `advisory {advisories, v}` (all current ones, at each change) and
   * `dirty {steps, groups, v}` with the version as `id`; after `Last-Event-ID` the stream starts with a `dirty` of the missed changes, or
   * `reset`. With `?rollout=` (id), with or without `run`, also `rollout {id, msgs, state}` at each change. Throws `run_not_found` and
   * `rollout_not_found` before the stream begins.
   */
  @Get()
  async stream(
    @CurrentCaller() caller: Caller,
    @Query('run') run: string | undefined,
    @Query('rollout') rollout: string | undefined,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const id = run === undefined ? null : (await this.runs.get(caller, run)).id;
    const runSeq = id === null ? null : await this.runs.seqOf(caller, id);
    const open = rollout === undefined ? null : await this.#open(caller, rollout);
    const reads = { ...(runSeq !== null && id !== null && this.#ofRun(caller, id, runSeq)), ...(open && { rollout: open.read }) };
    const release = this.inFlight.enter('streams', caller);
    reply.hijack();
    onClosed(reply.raw, release);
    const stream = new RunStream(reply.raw, reads);
    const unsubscribe = this.activity.subscribe(caller.orgId, (news) => {
      if (id === null || id === news.id) stream.sendChange(news);
      if (open?.isIn(news.id)) stream.requestRollout();
    });
    onClosed(reply.raw, () => {
      stream.end();
      unsubscribe();
    });
    await this.#begin(stream, id, reads.counters, request.headers['last-event-id']).catch(() => reply.raw.destroy());
  }

  #ofRun(caller: Caller, id: string, runSeq: number) {
    return {
      counters: () => selectCounters(this.database.pool, id, caller.orgId),
      advisories: () => this.advisories.current(runSeq),
    };
  }

  /** Throws `rollout_not_found`. */
  async #open(caller: Caller, id: string) {
    const read = () => selectOpenRollout(this.database.pool, id, caller.orgId);
    let last = isUuid(id) ? await read() : null;
    if (!last) throw new PalestraError('rollout_not_found');
    return {
      /** A rollout without its start event has no run yet: any change may be about it. */
      isIn: (runId: string) => last === null || last.run_id === null || last.run_id === runId,
      read: async () => (last = await read()),
    };
  }

  async #begin(
    stream: RunStream,
    id: string | null,
    counters: (() => Promise<StreamCounters | null>) | undefined,
    lastEventId: string | string[] | undefined,
  ): Promise<void> {
    const now = await counters?.();
    if (id !== null && now && typeof lastEventId === 'string') stream.resume(await this.#since(id, lastEventId, now.v), now.v);
    stream.begin();
  }

  /** Null when the version is too old, or not a version of this run. */
  async #since(id: string, lastEventId: string, v: string): Promise<number[] | null> {
    if (!/^\d{1,18}$/.test(lastEventId)) return null;
    const behind = BigInt(v) - BigInt(lastEventId);
    if (behind < 0n || behind > RESUMABLE_VERSIONS) return null;
    const steps = await selectStepsSince(this.database.pool, id, String(BigInt(lastEventId) - REPEATED_VERSIONS), RESUMABLE_STEPS + 1);
    return steps.length > RESUMABLE_STEPS ? null : steps;
  }
}
