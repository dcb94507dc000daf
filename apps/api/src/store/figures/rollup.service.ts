import { setImmediate as yieldToEventLoop } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import type pg from 'pg';
import { retryDatabase } from '../../platform/database/database-retry.ts';
import { Database } from '../../platform/database/database.ts';
import { inTransaction } from '../../platform/database/transaction.ts';
import { isInputFault } from '../bisect-batch.ts';
import { Quarantine } from '../quarantine.ts';
import { RunActivity } from '../run-activity.service.ts';
import { type BumpedRun, bumpRuns, type DirtySteps, hasDirtySteps, type StepKey, stepText, takeDirtySteps } from './dirty-steps.sql.ts';
import { selectStepColumns } from './step-columns.sql.ts';
import { rollUpStep } from './step-rollup.ts';
import { writeStepRollups } from './step-rollup.sql.ts';
import { selectSuccessRules, updateRewardScales } from './success-thresholds.sql.ts';
import { writeToolRollups } from './tool-rollup.sql.ts';

/** How long a batch that a deadlock rolled back is retried. */
const PATIENCE_MS = 2_000;
/** Steps of one transaction. */
const BATCH = 50;
/** How many batches a read waits for before it answers. */
const SETTLE_BATCHES = 4;
/** Largest share of the time for steps that are not known and may hold a whole run. */
const VAST_SHARE = 0.05;

/** Rebuilds the rollups and groups of steps whose rollouts changed. No other step is read again. */
@Injectable()
export class RollupService {
  #vastAfter = 0;

  constructor(
    private readonly database: Database,
    private readonly activity: RunActivity,
    private readonly quarantine: Quarantine,
  ) {}

  /** Whether any step is marked. */
  isDue(): Promise<boolean> {
    return hasDirtySteps(this.database.pool);
  }

  /** One batch; returns whether there may be more. */
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
    // Until nothing is left: a batch that finds another scale of rewards marks steps again.
    for (let batch = 0; batch < SETTLE_BATCHES; batch += 1) {
      if ((await this.#batch({ runSeq, vast: false }, BATCH)) === 0) break;
    }
    if (performance.now() >= this.#vastAfter) await this.#batch({ runSeq, vast: true }, 4);
  }

  /**
   * New thresholds mark steps that another batch may hold: PostgreSQL then rolls one of the two back, with its marks. Where one step makes
   * the batch fail, each step gets a batch of one.
   */
  async #batch(dirty: DirtySteps, limit: number): Promise<number> {
    let taken: readonly StepKey[] = [];
    try {
      return await retryDatabase(() => this.#batchOnce(dirty, limit, (steps) => (taken = steps)), PATIENCE_MS);
    } catch (error) {
      if (taken.length === 0 || !isInputFault(error)) throw error;
      if (taken.length === 1) this.quarantine.add('step', stepText(taken[0]!), error);
      else for (let step = 0; step < taken.length; step += 1) await this.#batch(dirty, 1);
      return taken.length;
    }
  }

  async #batchOnce(dirty: DirtySteps, limit: number, onTaken: (steps: readonly StepKey[]) => void): Promise<number> {
    const { steps, runs } = await inTransaction(this.database.pool, async (client) => {
      const taken = await takeDirtySteps(client, dirty, limit, this.quarantine.members('step'));
      onTaken(taken);
      return { steps: taken, runs: taken.length > 0 ? await rebuildSteps(client, taken) : [] };
    });
    for (const run of runs) {
      const numbers = steps.filter(({ run_seq }) => run_seq === run.seq).map(({ step }) => step);
      this.activity.rolled({ id: run.id, org_id: run.org_id, version: run.version, steps: numbers });
    }
    return steps.length;
  }
}

/** The transaction of `client` holds the marks of these steps: until it ends, nothing else changes their rollouts (step-marks.sql.ts). */
async function rebuildSteps(client: pg.PoolClient, steps: readonly StepKey[]): Promise<BumpedRun[]> {
  const runSeqs = [...new Set(steps.map((step) => step.run_seq))];
  // Sets marks, which everywhere come before runs (derive.sql.ts).
  await updateRewardScales(client, steps);
  const ruleOf = await selectSuccessRules(client, runSeqs);
  const runs = await bumpRuns(client, runSeqs);
  const versions = new Map(runs.map(({ seq, version }) => [seq, version]));
  for (const step of steps) {
    const version = versions.get(step.run_seq);
    // The run was erased, and its rollups with it.
    if (version === undefined) continue;
    const [columns] = await selectStepColumns(client, [step]);
    await writeStepRollups(
      client,
      step,
      version,
      rollUpStep(step, columns!, (envId) => ruleOf(step.run_seq, envId)),
    );
    await writeToolRollups(client, step);
    await yieldToEventLoop();
  }
  return runs;
}
