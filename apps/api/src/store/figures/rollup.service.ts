import { setImmediate as yieldToEventLoop } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import type pg from 'pg';
import { retryDatabase } from '../../platform/database/database-retry.ts';
import { Database } from '../../platform/database/database.ts';
import { inTransaction } from '../../platform/database/transaction.ts';
import { isItemFault } from '../bisect-batch.ts';
import { Quarantine } from '../quarantine.ts';
import { RunActivity } from '../run-activity.service.ts';
import { type BumpedRun, bumpRun, hasDirtySteps, lockMarkedRun, lockRun, type StepKey, stepText, takeMarks } from './dirty-steps.sql.ts';
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

/** What a batch does: its run, if it is given, and whether it takes vast steps. */
interface Batch {
  runSeq?: number;
  vast: boolean;
}

/** Rebuilds the rollups and groups of steps whose rollouts changed. No other step is read again. */
@Injectable()
export class RollupService {
  #vastAfter = 0;
  /** The run of the last batch. The next one begins after it, so that a run with many changes does not delay the others. */
  #lastRun = 0;

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
    let taken = await this.#batch({ vast: false }, BATCH);
    if (taken === 0 && this.#lastRun > 0) {
      this.#lastRun = 0;
      taken = await this.#batch({ vast: false }, BATCH);
    }
    if (performance.now() < this.#vastAfter) return taken > 0;
    const started = performance.now();
    await this.#batch({ vast: true }, 4);
    const now = performance.now();
    this.#vastAfter = now + (now - started) / VAST_SHARE;
    return taken > 0;
  }

  async settle(runSeq: number): Promise<void> {
    // Until nothing is left: a batch that finds another scale of rewards marks steps again.
    for (let batch = 0; batch < SETTLE_BATCHES; batch += 1) {
      if ((await this.#batch({ runSeq, vast: false }, BATCH)) === 0) break;
    }
    if (performance.now() >= this.#vastAfter) await this.#batch({ runSeq, vast: true }, 4);
  }

  /** Where one step makes the batch fail, each step gets a batch of one. Returns the number of steps. */
  async #batch(batch: Batch, limit: number): Promise<number> {
    let taken: readonly StepKey[] = [];
    // The same for each attempt, because the first one moves `#lastRun` to the run that fails.
    const after = batch.vast ? 0 : this.#lastRun;
    try {
      return await retryDatabase(() => this.#batchOnce(batch, after, limit, (steps) => (taken = steps)), PATIENCE_MS);
    } catch (error) {
      const [first] = taken;
      if (first === undefined || !isItemFault(error)) throw error;
      if (taken.length === 1) this.quarantine.add('step', stepText(first), error);
      else for (let step = 0; step < taken.length; step += 1) await this.#batch({ ...batch, runSeq: first.run_seq }, 1);
      return taken.length;
    }
  }

  async #batchOnce({ runSeq, vast }: Batch, after: number, limit: number, onTaken: (steps: readonly StepKey[]) => void): Promise<number> {
    const chosen = { vast, without: this.quarantine.members('step') };
    const { steps, run } = await inTransaction(this.database.pool, async (client) => {
      const locked = runSeq === undefined ? await lockMarkedRun(client, chosen, after) : runSeq;
      if (locked === null) return { steps: [], run: null };
      if (runSeq !== undefined) await lockRun(client, runSeq);
      else if (!vast) this.#lastRun = locked;
      const taken = await takeMarks(client, locked, chosen, limit);
      onTaken(taken);
      return { steps: taken, run: taken.length > 0 ? await rebuildSteps(client, locked, taken) : null };
    });
    if (run) this.activity.rolled({ ...run, steps: steps.map(({ step }) => step) });
    return steps.length;
  }
}

/** In the transaction of `client`, which holds the run. Returns null if the run was erased, and its rollups with it. */
async function rebuildSteps(client: pg.PoolClient, runSeq: number, steps: readonly StepKey[]): Promise<BumpedRun | null> {
  await updateRewardScales(client, steps);
  const ruleOf = await selectSuccessRules(client, [runSeq]);
  const run = await bumpRun(client, runSeq);
  if (run === null) return null;
  for (const step of steps) {
    const [columns] = await selectStepColumns(client, [step]);
    await writeStepRollups(
      client,
      step,
      run.version,
      rollUpStep(step, columns!, (envId) => ruleOf(runSeq, envId)),
    );
    await writeToolRollups(client, step);
    await yieldToEventLoop();
  }
  return run;
}
