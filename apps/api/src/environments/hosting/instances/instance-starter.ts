import { Inject, Injectable } from '@nestjs/common';
import { HostingError } from '@palestra/hosting';
import { systemClock } from '@palestra/kit';
import { type Config, CONFIG } from '../../../platform/config.ts';
import { Database } from '../../../platform/database/database.ts';
import { limitError } from '../../../platform/limits.ts';
import { inTransaction } from '../../../platform/database/transaction.ts';
import { wakeReconciler } from '../hosting-events.ts';
import { lockPlacement, wakeVersion } from './instance.sql.ts';
import { selectStatuses } from './instance-status.sql.ts';

const POLL_MS = 100;

/** Adds instances that the reconciler then starts, which may run in another process. */
@Injectable()
export class InstanceStarter {
  constructor(
    private readonly database: Database,
    @Inject(CONFIG) private readonly config: Config,
  ) {}

  /**
   * Starts one more instance of a version and waits for its first answer, at most for the environment's `start_timeout_s`. It stays as the
   * version's first instance, unless instances serve one session. Rejects with `HostingError` `instance_failed`, with the last lines of its log, and with `limit_reached`.
   */
  async start(versionId: string, signal: AbortSignal): Promise<{ id: string; endpoint: string }> {
    const id = await this.#add(versionId, false);
    for (;;) {
      const [status] = id === null ? [] : await selectStatuses(this.database.pool, [id]);
      if (status === undefined) throw new HostingError('instance_failed', 'The instance was removed.');
      if (status.state === 'ready' && status.endpoint !== null) return { id: status.id, endpoint: status.endpoint };
      // The reconciler adds the last lines of its log before it removes what is left.
      const isOver = status.state === 'failed' || status.state === 'stopped';
      if (isOver && status.stopped) throw new HostingError('instance_failed', status.detail ?? 'The instance ended before it answered.');
      await systemClock.sleep(POLL_MS, signal);
    }
  }

  /** Starts an instance of a version that has none. Does nothing otherwise. Throws `limit_reached`. */
  async wake(versionId: string): Promise<void> {
    await this.#add(versionId, true);
  }

  async #add(versionId: string, alone: boolean): Promise<string | null> {
    const { org: ceiling } = this.config.limits.instances;
    const added = await inTransaction(this.database.pool, async (client) => {
      await lockPlacement(client, [versionId]);
      return wakeVersion(client, versionId, alone, ceiling);
    });
    if (added === 'full') throw limitError('instances', 'org', ceiling);
    if (added === null) return null;
    await wakeReconciler(this.database.pool);
    return added.id;
  }
}
