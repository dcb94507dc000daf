import { Injectable } from '@nestjs/common';
import { isUuid } from '@palestra/kit';
import {
  PalestraError,
  type RolloutCount,
  type RolloutList,
  type RolloutListQuery,
  type RunList,
  type RunListQuery,
  type RunView,
} from '@palestra/protocol';
import { LIVE_MS } from '@palestra/rollouts';
import type { Caller } from '@palestra/session';
import { decodeCursor, encodeCursor, TIME } from '../platform/http/cursor.ts';
import { Database } from '../platform/database/database.ts';
import { DeriveService } from '../store/derive/derive.service.ts';
import { type PendingRollouts, ReadSettler } from '../store/derive/read-settler.service.ts';
import { EraseService } from '../store/storage/erase.service.ts';
import { IngestService } from '../store/ingest/ingest.service.ts';
import { RolloutListService } from '../rollouts/rollout-list.service.ts';
import { recentFigures } from './run-recent.ts';
import { selectOrigins, selectPhases, selectRecentSteps } from './run-recent.sql.ts';
import {
  countRuns,
  type RunChange,
  type RunRow,
  selectRunSeq,
  selectRunSeqByName,
  selectPageSeqs,
  selectRuns,
  selectSparklines,
  updateRun,
} from './run.sql.ts';

/** Runs of the caller's organisation. */
@Injectable()
export class RunService {
  constructor(
    private readonly database: Database,
    private readonly ingest: IngestService,
    private readonly derive: DeriveService,
    private readonly settler: ReadSettler,
    private readonly lists: RolloutListService,
    private readonly eraser: EraseService,
  ) {}

  async list(caller: Caller, { cursor, ...query }: RunListQuery): Promise<RunList> {
    const [updatedAt, afterId] = cursor === undefined ? [] : decodeCursor(cursor, TIME, isUuid);
    const after = updatedAt === undefined ? undefined : { updatedAt, id: afterId! };
    const filter = { orgId: caller.orgId, ...query, limit: query.limit + 1, after };
    // Settle the runs of the page before reading their figures.
    const pending = await this.settler.settle(await selectPageSeqs(this.database.pool, filter));
    const rows = await selectRuns(this.database.pool, filter);
    const shown = rows.slice(0, query.limit);
    const last = shown.at(-1);
    const seqs = shown.map(({ seq }) => seq);
    const [sparklines, recent, origins, phases] = await Promise.all([
      selectSparklines(this.database.pool, seqs),
      selectRecentSteps(this.database.pool, seqs),
      selectOrigins(this.database.pool, seqs),
      selectPhases(this.database.pool, seqs),
    ]);
    return {
      runs: shown.map((row) => ({
        ...presentRun(row, caller.orgName, pending),
        sparkline: sparklines.get(row.seq) ?? [],
        recent: recentFigures(recent.get(row.seq) ?? []),
        origin: origins.get(row.seq) ?? null,
        phases: phases.get(row.seq) ?? [],
      })),
      total: query.name === undefined ? await countRuns(this.database.pool, filter) : shown.length,
      next: rows.length > query.limit && last ? encodeCursor([last.updated_at.toISOString(), last.id]) : null,
    };
  }

  async get(caller: Caller, idOrName: string): Promise<RunView> {
    const seq = await this.seqOf(caller, idOrName);
    const pending = await this.settler.settle([seq]);
    return this.#view(caller, seq, pending);
  }

  async rollouts(caller: Caller, idOrName: string, query: RolloutListQuery): Promise<RolloutList> {
    const runSeq = await this.seqOf(caller, idOrName);
    await this.settler.settle([runSeq]);
    return this.lists.list({ ...query, runSeqs: [runSeq] });
  }

  countRollouts(runSeq: number, q: string | undefined): Promise<RolloutCount> {
    return this.lists.count(runSeq, q);
  }

  /** New settings also apply to stored rollouts. */
  async change(caller: Caller, idOrName: string, change: RunChange): Promise<RunView> {
    const seq = await this.seqOf(caller, idOrName);
    await updateRun(this.database.pool, seq, change);
    if (change.settings !== undefined) await this.derive.renormalise(seq);
    return this.get(caller, idOrName);
  }

  async delete(caller: Caller, idOrName: string): Promise<void> {
    const { id } = await this.#view(caller, await this.seqOf(caller, idOrName));
    if (!(await this.eraser.eraseRun(caller.orgId, id))) throw new PalestraError('run_not_found');
    this.ingest.forgetRuns();
  }

  /** The short key of a run, by id or name. Throws `run_not_found`. */
  async seqOf(caller: Caller, idOrName: string): Promise<number> {
    const { pool } = this.database;
    const byId = isUuid(idOrName) ? await selectRunSeq(pool, caller.orgId, idOrName) : null;
    const seq = byId ?? (await selectRunSeqByName(pool, caller.orgId, idOrName));
    if (seq === null) throw new PalestraError('run_not_found');
    return seq;
  }

  async #view(caller: Caller, seq: number, pending: PendingRollouts = new Map()): Promise<RunView> {
    const [row] = await selectRuns(this.database.pool, { orgId: caller.orgId, seq, limit: 1, offset: 0 });
    if (!row) throw new PalestraError('run_not_found');
    return presentRun(row, caller.orgName, pending);
  }
}

function presentRun(row: RunRow, org: string, pending: PendingRollouts): RunView {
  return {
    id: row.id,
    name: row.name,
    org,
    num_rollouts: row.num_rollouts,
    avg_rollout_reward: row.avg_reward,
    num_scored: row.num_scored,
    num_errors: row.num_errors,
    num_finished: row.num_finished,
    avg_rollout_length: row.num_rollouts === 0 ? null : Number(row.num_messages) / row.num_rollouts,
    last_step: row.last_step,
    environments: row.environments ?? [],
    tags: row.tags,
    settings: row.settings as RunView['settings'],
    inference: row.inference as RunView['inference'],
    retention_days: row.retention_days,
    version: row.version,
    pending: pending.get(row.seq) ?? null,
    created_at: row.created_at.toISOString(),
    updated_at: row.updated_at.toISOString(),
    finished: row.finished,
    live: Date.now() - row.updated_at.getTime() < LIVE_MS,
  };
}
