import { PalestraError } from '@palestra/protocol';
import type { Database } from './database.ts';

/**
 * How long `/health` stays 200 while PostgreSQL does not answer. Requests wait as long (database-retry.ts), so that a restart of PostgreSQL
 * does not fail them.
 */
const PATIENCE_MS = 20_000;

/** Whether this process can serve requests. */
export class Readiness {
  constructor(
    private readonly database: Database,
    private readonly draining: AbortSignal,
  ) {}

  get isDraining(): boolean {
    return this.draining.aborted;
  }

  /** For load balancers. Throws `shutting_down`, `storage_full` or `database_unavailable` when this process should get no requests. */
  check(): { status: 'ready' } {
    if (this.draining.aborted) throw new PalestraError('shutting_down', { retryAfterSeconds: 1 });
    this.#checkDatabase(0);
    return { status: 'ready' };
  }

  /** For ORS clients. Throws as `check` does, but only when an outage lasts longer than requests wait, and not while draining. */
  checkForClients(): { status: 'ok' } {
    this.#checkDatabase(PATIENCE_MS);
    return { status: 'ok' };
  }

  /** Whether the disk of the database was full at the last probe. */
  get isDiskFull(): boolean {
    return this.database.monitor?.state().diskFull ?? false;
  }

  #checkDatabase(patienceMs: number): void {
    const { outageMs, diskFull, migrated } = this.database.monitor?.state() ?? { outageMs: 0, diskFull: false, migrated: true };
    if (outageMs > patienceMs) throw diskFull ? databaseDiskFull() : new PalestraError('database_unavailable', { retryAfterSeconds: 1 });
    if (!migrated)
      throw new PalestraError('database_unavailable', { detail: 'Migrations of the database are pending.', retryAfterSeconds: 5 });
  }
}

/** The answer while the database has no disk space. */
export function databaseDiskFull(cause?: unknown): PalestraError {
  const detail = 'The disk of the database is full. Nothing was stored. Send the request again when the operator has freed space.';
  return new PalestraError('storage_full', { detail, retryAfterSeconds: 10, cause });
}
