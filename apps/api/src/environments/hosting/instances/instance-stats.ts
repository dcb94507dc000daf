import type { Provider } from '@palestra/hosting';
import pMap from 'p-map';
import type { Logger } from 'pino';
import type pg from 'pg';
import { saveStats } from './instance.sql.ts';

const EVERY_MS = 10_000;
const CONCURRENCY = 8;
const READ_MS = 5_000;

/** Reads what instances use, in rounds: the next one begins ten seconds after the last one, or when it has ended. */
export class InstanceStatsReader {
  readonly #stop = new AbortController();
  #round: Promise<void> | null = null;
  #dueAt = 0;

  constructor(
    private readonly pool: pg.Pool,
    private readonly logger: Logger,
  ) {}

  read(instances: readonly { id: string; provider: Provider | undefined }[]): void {
    if (this.#round !== null || Date.now() < this.#dueAt || this.#stop.signal.aborted) return;
    this.#dueAt = Date.now() + EVERY_MS;
    this.#round = this.#read(instances)
      .catch((error: unknown) => this.logger.debug({ err: error }, 'the usage of instances was not stored; the next round stores it'))
      .finally(() => (this.#round = null));
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#round;
  }

  async #read(instances: readonly { id: string; provider: Provider | undefined }[]): Promise<void> {
    const { signal } = this.#stop;
    const found = await pMap(
      instances,
      async ({ id, provider }) => {
        if (signal.aborted) return null;
        const stats = await provider?.stats(id, AbortSignal.any([signal, AbortSignal.timeout(READ_MS)])).catch(() => null);
        if (stats == null) return null;
        return { id, stats: { cpus: stats.cpus, memory_mb: stats.memoryMb, pids: stats.pids } };
      },
      { concurrency: CONCURRENCY },
    );
    await saveStats(
      this.pool,
      found.filter((one) => one !== null),
    );
  }
}
