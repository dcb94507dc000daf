import { Injectable } from '@nestjs/common';
import { isUuid } from '@palestra/kit';
import { PalestraError, type RolloutList, type RunList, type RunView } from '@palestra/protocol';
import { LIVE_MS } from '@palestra/rollouts';
import type { Caller } from '@palestra/session';
import { Database } from '../platform/database.ts';
import { IngestService } from '../rollouts/ingest.service.ts';
import { presentRolloutRow } from '../rollouts/rollout.presenter.ts';
import { countRollouts, selectRollouts } from '../rollouts/rollout.sql.ts';
import type { RolloutListQuery, RunListQuery } from './run.schema.ts';
import { countRuns, deleteRun, type RunRow, selectRuns } from './run.sql.ts';

/** Runs of the caller's organisation. */
@Injectable()
export class RunService {
  constructor(
    private readonly database: Database,
    private readonly ingest: IngestService,
  ) {}

  async list(caller: Caller, query: RunListQuery): Promise<RunList> {
    const rows = await selectRuns(this.database.pool, { orgId: caller.orgId, ...query });
    const total = rows[0]?.total ?? (query.name === undefined ? await countRuns(this.database.pool, caller.orgId, query.search) : 0);
    return { runs: rows.map((row) => presentRun(row, caller.orgName)), total };
  }

  async get(caller: Caller, id: string): Promise<RunView> {
    const [row] = isUuid(id) ? await selectRuns(this.database.pool, { orgId: caller.orgId, id, limit: 1, offset: 0 }) : [];
    if (!row) throw new PalestraError('run_not_found');
    return presentRun(row, caller.orgName);
  }

  async rollouts(caller: Caller, id: string, query: RolloutListQuery): Promise<RolloutList> {
    await this.get(caller, id);
    const page = { orgId: caller.orgId, runId: id, ...query };
    const [records, total] = await Promise.all([
      selectRollouts(this.database.pool, page),
      countRollouts(this.database.pool, caller.orgId, id),
    ]);
    return { rollouts: records.map(presentRolloutRow), total };
  }

  async delete(caller: Caller, id: string): Promise<void> {
    if (!isUuid(id) || !(await deleteRun(this.database.pool, caller.orgId, id))) throw new PalestraError('run_not_found');
    this.ingest.forgetRuns();
  }
}

function presentRun(row: RunRow, org: string): RunView {
  return {
    id: row.id,
    name: row.name,
    org,
    num_rollouts: row.num_rollouts,
    avg_rollout_reward: row.avg_reward,
    num_scored: row.num_scored,
    num_errors: row.num_errors,
    num_finished: row.num_finished,
    avg_rollout_length: row.avg_length,
    environments: row.environments ?? [],
    created_at: row.created_at.toISOString(),
    updated_at: row.updated_at.toISOString(),
    live: Date.now() - row.updated_at.getTime() < LIVE_MS,
  };
}
