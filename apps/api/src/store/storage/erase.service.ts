import { Injectable } from '@nestjs/common';
import { Database } from '../../platform/database/database.ts';
import { retryDatabase } from '../../platform/database/database-retry.ts';
import { inTransaction } from '../../platform/database/transaction.ts';
import { eachItem } from '../each-item.ts';
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
/** A run of at most this many batches is erased before its deletion is answered. The rest of a larger run is erased in the background. */
const BATCHES_AT_ONCE = 2;
/** Replicas cache a run's number for seconds, and a statement may take longer: until then rollouts may still be added to it. */
const SETTLED_MS = 60_000;

/**
 * Erases rows of every table of the store, and objects. The transaction that deletes the rows also stores the prefixes of their objects as
 * garbage, so that a crash leaves known work and never an unknown object. It marks packs that also have other rollouts: `CompactService`
 * copies those without the erased bytes.
 */
@Injectable()
export class EraseService {
  constructor(
    private readonly database: Database,
    private readonly garbage: ObjectGarbage,
  ) {}

  /** False when the organisation has no rollout with that id. */
  async eraseRollout(orgId: string, id: string): Promise<boolean> {
    const rollout = await selectErasable(this.database.pool, orgId, id);
    if (!rollout) return false;
    await this.erase([rollout]);
    return true;
  }

  /**
   * Hides the run at once from all reads and frees its name, then erases its rollouts; the rest of a large run in the background
   * (`eraseHidden`). False when there is no such run.
   */
  async eraseRun(orgId: string, runId: string): Promise<boolean> {
    const seq = await hideRun(this.database.pool, orgId, runId);
    if (seq === null) return false;
    await this.#eraseSome({ seq, org_id: orgId, age_ms: 0 }, BATCHES_AT_ONCE);
    return true;
  }

  /** Continues with every hidden run; one that fails stops no other. Returns how many are erased completely. */
  async eraseHidden(signal?: AbortSignal): Promise<number> {
    let erased = 0;
    await eachItem(await selectHiddenRuns(this.database.pool), signal, async (run) => {
      if (await this.#eraseSome(run, Infinity, signal)) erased += 1;
    });
    return erased;
  }

  /** Erases ledgers of sessions that still ran when their rollouts were erased. Returns their number. */
  async eraseEnded(signal?: AbortSignal): Promise<number> {
    let erased = 0;
    for (let count = BATCH; count === BATCH && !signal?.aborted; erased += count)
      count = await eraseEndedLedgers(this.database.pool, BATCH);
    return erased;
  }

  /** Erases rollouts of one run with their objects. Their steps are computed again, unless the run itself is erased. */
  async erase(rollouts: readonly ErasableRollout[], { steps = true } = {}): Promise<void> {
    const prefixes = rollouts.map(({ seq, id, org_id }) => ({ blob_key: rolloutPrefix(org_id, id), rollout_seq: seq }));
    const packs = await this.#inTransaction(async (client) => {
      const empty = await eraseRollouts(
        client,
        rollouts.map(({ seq }) => seq),
        steps,
      );
      await declareObjects(client, prefixes, true);
      return empty;
    });
    await this.garbage.deleteDoomed([...prefixes.map(({ blob_key }) => blob_key), ...packs]);
  }

  /** Background work on the same rows can end in a deadlock. A run is hidden by then, so its client could not ask again. */
  #inTransaction<T>(work: Parameters<typeof inTransaction<T>>[1]): Promise<T> {
    return retryDatabase(() => inTransaction(this.database.pool, work));
  }

  /** True when the run is erased completely. */
  async #eraseSome({ seq, org_id, age_ms }: HiddenRun, batches: number, signal?: AbortSignal): Promise<boolean> {
    for (let batch = 0; ; batch += 1) {
      const rollouts = await selectErasableOfRun(this.database.pool, seq, BATCH);
      if (rollouts.length === 0) break;
      if (batch === batches || signal?.aborted) return false;
      await this.erase(rollouts, { steps: false });
    }
    const prefixes = await this.#inTransaction(async (client) => {
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
