import { Injectable } from '@nestjs/common';
import type pg from 'pg';
import { patiently } from '../../platform/database-retry.ts';
import { Database } from '../../platform/database.ts';
import { RunActivity } from '../../runs/stream/run-activity.service.ts';
import { successRule } from './rollup.figures.ts';
import {
  type EnvironmentThreshold,
  restoreThresholds,
  type BumpedRun,
  bumpRuns,
  selectPinnedThresholds,
  selectThresholds,
  type StepKey,
  takeDirtySteps,
  writeThresholds,
} from './rollup.sql.ts';
import type { StepPart } from './step-columns.ts';
import { selectStepParts } from './step-parts.sql.ts';
import { remakeSteps, type StepToMake } from './step-making.ts';

/** What was rolled back by a deadlock is done again within this. */
const PATIENCE_MS = 2_000;
/** Steps of one transaction, which costs a round of questions and a write to disk of its own: of two thousand rollouts each a fifth of a second. */
const BATCH = 50;
/** Before an answer a read waits for so many batches at most. */
const SETTLE_BATCHES = 4;
/** A step that is not known may hold a whole run: making such ones again may take this share of the time at most. */
const VAST_SHARE = 0.05;

/** Rollups and groups of steps whose rollouts changed; nothing else is ever read again. */
@Injectable()
export class RollupService {
  #vastAfter = 0;

  constructor(
    private readonly database: Database,
    private readonly activity: RunActivity,
  ) {}

  /** One batch; answers whether there may be more. */
  async round(): Promise<boolean> {
    const taken = await this.#batch({ vast: false }, BATCH);
    if (performance.now() < this.#vastAfter) return taken === BATCH;
    const started = performance.now();
    await this.#batch({ vast: true }, 4);
    const now = performance.now();
    this.#vastAfter = now + (now - started) / VAST_SHARE;
    return taken === BATCH;
  }

  async settle(runSeq: number): Promise<void> {
    // Until nothing is left: a batch that finds another scale of rewards marks steps anew.
    for (let batch = 0; batch < SETTLE_BATCHES; batch += 1) {
      if ((await this.#batch({ runSeq, vast: false }, BATCH)) === 0) break;
    }
    if (performance.now() >= this.#vastAfter) await this.#batch({ runSeq, vast: true }, 4);
  }

  /** New thresholds mark steps that another batch may hold: PostgreSQL rolls one of the two back, marks and all. */
  #batch(scope: { runSeq?: number; vast: boolean }, limit: number): Promise<number> {
    return patiently(() => this.#batchOnce(scope, limit), PATIENCE_MS);
  }

  async #batchOnce(scope: { runSeq?: number; vast: boolean }, limit: number): Promise<number> {
    const client = await this.database.pool.connect();
    try {
      await client.query('BEGIN');
      const steps = await takeDirtySteps(client, scope, limit);
      const runs = steps.length > 0 ? await this.#rollUp(client, steps) : [];
      await client.query('COMMIT');
      for (const run of runs) {
        const own = steps.filter(({ run_seq }) => run_seq === run.seq).map(({ step }) => step);
        this.activity.rolled({ id: run.id, org_id: run.org_id, version: run.version, steps: own });
      }
      return steps.length;
    } catch (error) {
      await client.query('ROLLBACK').catch(() => {});
      throw error;
    } finally {
      client.release();
    }
  }

  async #rollUp(client: pg.PoolClient, steps: readonly StepKey[]): Promise<BumpedRun[]> {
    const runSeqs = [...new Set(steps.map((s) => s.run_seq))];
    const parts = await selectStepParts(client, steps);
    const known = await selectThresholds(client, runSeqs);
    const pinned = await selectPinnedThresholds(client, runSeqs);
    const thresholds = newThresholds(steps, parts, known);
    if (thresholds.changed.length > 0) await writeThresholds(client, thresholds.changed);
    const doubtful = doubtfulThresholds(steps, parts, known);
    const restored = doubtful.length > 0 ? await restoreThresholds(client, doubtful) : [];
    for (const { run_seq, env_id } of restored) thresholds.unit.set(`${run_seq}:${env_id}`, true);
    const runs = await bumpRuns(client, runSeqs);
    const versions = new Map(runs.map(({ seq, version }) => [seq, version]));
    const remaining = steps.flatMap((step, at): StepToMake[] => {
      const version = versions.get(step.run_seq);
      // The run was erased meanwhile, and its rollups with it.
      if (version === undefined) return [];
      const ruleOf = (envId: number) => successRule(pinned.get(step.run_seq), thresholds.unit.get(`${step.run_seq}:${envId}`));
      return [{ step, version, parts: parts[at]!, ruleOf }];
    });
    await remakeSteps(client, remaining);
    return runs;
  }
}

const hasUnitRewards = ({ reward }: StepPart) => reward.every((value) => Number.isNaN(value) || (value >= 0 && value <= 1));

/**
 * Environments that had a reward outside of [0, 1] of which none is left in these steps: it may be gone, with its rollout, or because it
 * was only a part of a total.
 */
function doubtfulThresholds(
  steps: readonly StepKey[],
  parts: readonly StepPart[][],
  known: readonly EnvironmentThreshold[],
): EnvironmentThreshold[] {
  const outside = new Set<string>();
  steps.forEach(({ run_seq }, at) => {
    for (const part of parts[at]!) if (!hasUnitRewards(part)) outside.add(`${run_seq}:${part.env_id}`);
  });
  return known.filter((row) => !row.unit_rewards && !outside.has(`${row.run_seq}:${row.env_id}`));
}

/** What rewards of these steps say about the scale of their environments, with what was known before. */
function newThresholds(
  steps: readonly StepKey[],
  parts: readonly StepPart[][],
  known: readonly EnvironmentThreshold[],
): { unit: Map<string, boolean>; changed: EnvironmentThreshold[] } {
  const unit = new Map(known.map((row) => [`${row.run_seq}:${row.env_id}`, row.unit_rewards]));
  const changed = new Map<string, EnvironmentThreshold>();
  steps.forEach(({ run_seq }, at) => {
    for (const part of parts[at]!) {
      const key = `${run_seq}:${part.env_id}`;
      const inside = hasUnitRewards(part);
      if (unit.has(key) && (inside || unit.get(key) === false)) continue;
      unit.set(key, inside && unit.get(key) !== false);
      changed.set(key, { run_seq, env_id: part.env_id, unit_rewards: inside });
    }
  });
  return { unit, changed: [...changed.values()] };
}
