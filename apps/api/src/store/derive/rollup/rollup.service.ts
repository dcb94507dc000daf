import { Injectable } from '@nestjs/common';
import type { SuccessRule } from '@palestra/metrics';
import type pg from 'pg';
import { retryDatabase } from '../../../platform/database/database-retry.ts';
import { Database } from '../../../platform/database/database.ts';
import { inTransaction } from '../../../platform/database/transaction.ts';
import { isOwnFault } from '../../bisect-batch.ts';
import { RunActivity } from '../../run-activity.service.ts';
import { RewardScales } from './reward-scales.ts';
import { successRule } from './rollup.figures.ts';
import {
  restoreThresholds,
  type BumpedRun,
  bumpRuns,
  selectPinnedThresholds,
  selectThresholds,
  type StepKey,
  stepText,
  takeDirtySteps,
  writeThresholds,
} from './rollup.sql.ts';
import { Quarantine } from '../quarantine.ts';
import type { StepPart } from './step-columns.ts';
import { rebuildSteps, type StepToRebuild } from './rebuild-steps.ts';

/** What was rolled back by a deadlock is done again within this. */
const PATIENCE_MS = 2_000;
/** Steps of one transaction, which costs a round of questions and a write to disk of its own: of two thousand rollouts each a fifth of a second. */
const BATCH = 50;
/** Before an answer a read waits for so many batches at most. */
const SETTLE_BATCHES = 4;
/** A step that is not known may hold a whole run: making such ones again may take this share of the time at most. */
const VAST_SHARE = 0.05;

interface Scope {
  runSeq?: number;
  vast: boolean;
}

/** Rollups and groups of steps whose rollouts changed; nothing else is ever read again. */
@Injectable()
export class RollupService {
  #vastAfter = 0;

  constructor(
    private readonly database: Database,
    private readonly activity: RunActivity,
    private readonly quarantine: Quarantine,
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

  /**
   * New thresholds mark steps that another batch may hold: PostgreSQL rolls one of the two back, marks and all. Where one step makes the
   * batch fail, each is made by itself.
   */
  async #batch(scope: Scope, limit: number): Promise<number> {
    let taken: readonly StepKey[] = [];
    try {
      return await retryDatabase(() => this.#batchOnce(scope, limit, (steps) => (taken = steps)), PATIENCE_MS);
    } catch (error) {
      if (taken.length === 0 || !isOwnFault(error)) throw error;
      if (taken.length === 1) this.quarantine.add('step', stepText(taken[0]!), error);
      else for (let step = 0; step < taken.length; step += 1) await this.#batch(scope, 1);
      return taken.length;
    }
  }

  async #batchOnce(scope: Scope, limit: number, onTaken: (steps: readonly StepKey[]) => void): Promise<number> {
    const { steps, runs } = await inTransaction(this.database.pipelines, async (client) => {
      const taken = await takeDirtySteps(client, scope, limit, this.quarantine.members('step'));
      onTaken(taken);
      return { steps: taken, runs: taken.length > 0 ? await this.#rollUp(client, taken) : [] };
    });
    for (const run of runs) {
      const own = steps.filter(({ run_seq }) => run_seq === run.seq).map(({ step }) => step);
      this.activity.rolled({ id: run.id, org_id: run.org_id, version: run.version, steps: own });
    }
    return steps.length;
  }

  /** Twice when rewards have another scale than was known: then that is written first, since marks come before runs (derive.sql.ts). */
  async #rollUp(client: pg.PoolClient, steps: readonly StepKey[]): Promise<BumpedRun[]> {
    const runSeqs = [...new Set(steps.map((s) => s.run_seq))];
    const scales = new RewardScales(await selectThresholds(client, runSeqs));
    const pinned = await selectPinnedThresholds(client, runSeqs);
    const ruleOf = (runSeq: number, envId: number) => successRule(pinned.get(runSeq), scales.isUnit(runSeq, envId));
    await client.query('SAVEPOINT known_scales');
    const runs = await remake(client, steps, ruleOf, (step, parts) => scales.see(step, parts));
    const [changed, doubtful] = [scales.changes(), scales.doubtful()];
    const restored = doubtful.length > 0 ? await restoreThresholds(client, doubtful) : [];
    if (changed.length === 0 && restored.length === 0) return runs;

    await client.query('ROLLBACK TO SAVEPOINT known_scales');
    if (changed.length > 0) await writeThresholds(client, changed);
    for (const scale of changed) scales.learn([scale], scale.unit_rewards);
    if (restored.length > 0) scales.learn(await restoreThresholds(client, restored), true);
    return remake(client, steps, ruleOf, () => {});
  }
}

async function remake(
  client: pg.PoolClient,
  steps: readonly StepKey[],
  ruleOf: (runSeq: number, envId: number) => SuccessRule,
  seen: (step: StepKey, parts: readonly StepPart[]) => void,
): Promise<BumpedRun[]> {
  const runs = await bumpRuns(client, [...new Set(steps.map((s) => s.run_seq))]);
  const versions = new Map(runs.map(({ seq, version }) => [seq, version]));
  const remaining = steps.flatMap((step): StepToRebuild[] => {
    const version = versions.get(step.run_seq);
    // The run was erased meanwhile, and its rollups with it.
    return version === undefined ? [] : [{ step, version, ruleOf: (envId) => ruleOf(step.run_seq, envId) }];
  });
  await rebuildSteps(client, remaining, seen);
  return runs;
}
