import { Injectable } from '@nestjs/common';
import { Database } from '../../platform/database/database.ts';
import { inTransaction } from '../../platform/database/transaction.ts';
import {
  deleteRunRow,
  type ErasableRollout,
  eraseRollouts,
  eraseRunRows,
  hideRun,
  type HiddenRun,
  selectErasable,
  selectErasableOfRun,
  selectHiddenRuns,
} from './erase.sql.ts';
import { exportPrefix } from './export-prefix.ts';
import { ObjectGarbage } from './garbage.service.ts';
import { declareObjects } from './garbage.sql.ts';
import { eraseEndedLedgers } from './ledger-retention.sql.ts';
import { rolloutPrefix } from './object-keys.ts';

const BATCH = 500;
/** A run of at most so many batches is gone when its deletion is answered; of a larger one the rest goes in the background. */
const BATCHES_AT_ONCE = 2;
/** Replicas remember a run's number for seconds, and a statement may take some more: until then rollouts may still come to it. */
const SETTLED_MS = 60_000;

/**
 * Erasing for good: rows of every table of the store, and the objects. Rows go first, and in the same transaction the prefixes of
 * their objects are written down as garbage, so that a crash at any point leaves work, never an unknown object.
 */
@Injectable()
export class EraseService {
  constructor(
    private readonly database: Database,
    private readonly garbage: ObjectGarbage,
  ) {}

  /** False when the organisation has none of that id. */
  async eraseRollout(orgId: string, id: string): Promise<boolean> {
    const rollout = await selectErasable(this.database.pool, orgId, id);
    if (!rollout) return false;
    await this.erase([rollout]);
    return true;
  }

  /**
   * Hides the run at once, so that it is in no read and its name makes a new one, and erases what is in it, of a large one in the
   * background (`eraseHidden`). False when there is no such run.
   */
  async eraseRun(orgId: string, runId: string): Promise<boolean> {
    const seq = await hideRun(this.database.pool, orgId, runId);
    if (seq === null) return false;
    await this.#eraseSome({ seq, org_id: orgId, age_ms: 0 }, BATCHES_AT_ONCE);
    return true;
  }

  /** Goes on with every hidden run, whoever hid it and whatever was in between. Answers how many are gone for good. */
  async eraseHidden(signal?: AbortSignal): Promise<number> {
    let gone = 0;
    for (const run of await selectHiddenRuns(this.database.pool)) {
      if (!signal?.aborted && (await this.#eraseSome(run, Infinity, signal))) gone += 1;
    }
    return gone;
  }

  /** Ledgers of sessions that still ran when their rollouts were erased. Answers how many are gone. */
  async eraseEnded(signal?: AbortSignal): Promise<number> {
    let gone = 0;
    for (let some = BATCH; some === BATCH && !signal?.aborted; gone += some) some = await eraseEndedLedgers(this.database.pool, BATCH);
    return gone;
  }

  /** Rollouts of one run with their objects; the steps that they leave are made again, unless the run itself goes. */
  async erase(rollouts: readonly ErasableRollout[], { steps = true } = {}): Promise<void> {
    const prefixes = rollouts.map(({ seq, id, org_id }) => ({ blob_key: rolloutPrefix(org_id, id), rollout_seq: seq }));
    await inTransaction(this.database.pool, async (client) => {
      await eraseRollouts(
        client,
        rollouts.map(({ seq }) => seq),
        steps,
      );
      await declareObjects(client, prefixes, true);
    });
    await this.garbage.deleteDoomed(prefixes.map(({ blob_key }) => blob_key));
  }

  /** True when nothing is left of the run. */
  async #eraseSome({ seq, org_id, age_ms }: HiddenRun, batches: number, signal?: AbortSignal): Promise<boolean> {
    for (let batch = 0; ; batch += 1) {
      const rollouts = await selectErasableOfRun(this.database.pool, seq, BATCH);
      if (rollouts.length === 0) break;
      if (batch === batches || signal?.aborted) return false;
      await this.erase(rollouts, { steps: false });
    }
    const prefixes = await inTransaction(this.database.pool, async (client) => {
      const exports = await eraseRunRows(client, seq);
      const keys = exports.map((id) => ({ blob_key: exportPrefix(org_id, id), rollout_seq: '0' }));
      await declareObjects(client, keys, true);
      if (age_ms > SETTLED_MS) await deleteRunRow(client, seq);
      return keys.map(({ blob_key }) => blob_key);
    });
    await this.garbage.deleteDoomed(prefixes);
    return age_ms > SETTLED_MS;
  }
}
