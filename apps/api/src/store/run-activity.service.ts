import { Inject, Injectable, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import { EventEmitter } from 'node:events';
import pg from 'pg';
import type { Logger } from 'pino';
import { Database } from '../platform/database/database.ts';
import { LOGGER } from '../platform/tokens.ts';
import { type IngestCounts, notifyRolled, touchRuns } from './run-news.sql.ts';

const FLUSH_MS = 1_000;
const RECONNECT_MS = 1_000;
/** More changed steps than this are told as "all of them": a notification holds 8 000 bytes. */
const MAX_STEPS = 200;

/** News of a run: something arrived in it, or its rollups of some steps were made again. */
export interface RunNews {
  id: string;
  org: string;
  /** Version of its rollups. */
  v: string;
  /** Steps whose figures changed (-1 = not known); null = more than can be told; absent: none, only arrivals. */
  steps?: number[] | null;
}

interface RolledRun {
  id: string;
  org_id: string;
  version: string;
  steps: readonly number[];
}

const NOTHING: IngestCounts = { accepted: 0, duplicates: 0, conflicts: 0, late: 0, nonfinite: 0 };

/**
 * News about runs, merged to one a second per run and kind, told to every replica by LISTEN/NOTIFY. Nothing here is needed for correctness: a lost notification only makes a page refresh later.
 */
@Injectable()
export class RunActivity implements OnApplicationBootstrap, OnApplicationShutdown {
  #touched = new Map<number, IngestCounts>();
  #rolled = new Map<string, RolledRun>();
  readonly #events = new EventEmitter().setMaxListeners(0);
  #timer: NodeJS.Timeout | undefined;
  #listener: pg.Client | null = null;
  #stopped = false;
  #flushing: Promise<void> = Promise.resolve();

  constructor(
    private readonly database: Database,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {}

  /** Rows of these runs were stored; `counts` of a batch are those of its first run: a batch seldom names two. */
  received(runSeqs: readonly number[], counts: IngestCounts = NOTHING): void {
    runSeqs.forEach((seq, at) => this.#touched.set(seq, add(this.#touched.get(seq) ?? NOTHING, at === 0 ? counts : NOTHING)));
  }

  rolled(run: RolledRun): void {
    const before = this.#rolled.get(run.id);
    this.#rolled.set(run.id, { ...run, steps: [...new Set([...(before?.steps ?? []), ...run.steps])] });
  }

  /** Calls `listener` for every touched run of the organisation; the returned function ends it. */
  subscribe(orgId: string, listener: (run: RunNews) => void): () => void {
    this.#events.on(orgId, listener);
    return () => this.#events.off(orgId, listener);
  }

  onApplicationBootstrap(): void {
    this.#timer = setInterval(() => (this.#flushing = this.#flush()), FLUSH_MS);
    void this.#listen();
  }

  async onApplicationShutdown(): Promise<void> {
    this.#stopped = true;
    clearInterval(this.#timer);
    await this.#flushing;
    await this.#flush();
    await this.#listener?.end().catch(() => {});
  }

  async #flush(): Promise<void> {
    const [touched, rolled] = [this.#touched, this.#rolled];
    this.#touched = new Map();
    this.#rolled = new Map();
    try {
      if (touched.size > 0) await touchRuns(this.database.pool, touched);
      if (rolled.size > 0) await notifyRolled(this.database.pool, [...rolled.values()].map(newsOf));
    } catch (error) {
      for (const [seq, counts] of touched) this.received([seq], counts);
      for (const run of rolled.values()) this.rolled(run);
      this.logger.debug({ err: error }, 'run activity was not written; it will be');
    }
  }

  async #listen(): Promise<void> {
    while (!this.#stopped) {
      const client = new pg.Client({ connectionString: this.database.connectionString, connectionTimeoutMillis: 5_000, keepAlive: true });
      const ended = new Promise<void>((resolve) => client.once('end', resolve));
      client.on('error', () => {});
      client.on('notification', ({ payload }) => this.#tell(payload));
      try {
        await client.connect();
        await client.query('LISTEN palestra_runs');
        this.#listener = client;
        await ended;
      } catch {
        await client.end().catch(() => {});
      }
      this.#listener = null;
      if (!this.#stopped) await new Promise((resolve) => setTimeout(resolve, RECONNECT_MS).unref());
    }
  }

  #tell(payload: string | undefined): void {
    const run = JSON.parse(payload ?? 'null') as RunNews | null;
    if (run) this.#events.emit(run.org, run);
  }
}

const newsOf = ({ id, org_id, version, steps }: RolledRun): RunNews => ({
  id,
  org: org_id,
  v: version,
  steps: steps.length > MAX_STEPS ? null : steps.toSorted((a, b) => a - b),
});

const add = (a: IngestCounts, b: IngestCounts): IngestCounts => ({
  accepted: a.accepted + b.accepted,
  duplicates: a.duplicates + b.duplicates,
  conflicts: a.conflicts + b.conflicts,
  late: a.late + b.late,
  nonfinite: a.nonfinite + b.nonfinite,
});
