import { Inject, Injectable, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import { EventEmitter } from 'node:events';
import type { Logger } from 'pino';
import { Database } from '../platform/database/database.ts';
import { DatabaseListener } from '../platform/database/listener.ts';
import { LOGGER } from '../platform/tokens.ts';
import { type IngestCounts, notifyChanges, touchRuns } from './run-changes.sql.ts';

const FLUSH_MS = 1_000;
/** With more changed steps a notification means all steps, because it has at most 8 000 bytes. */
const MAX_STEPS = 200;

/** A change of a run: new events, or new figures of some steps. */
export interface RunChange {
  id: string;
  org: string;
  /** Version of its roll-ups. */
  v: string;
  /** Steps with new figures (-1 = not known); null = too many to list; absent = only new events. */
  steps?: number[] | null;
}

interface RolledRun {
  id: string;
  org_id: string;
  version: string;
  steps: readonly number[];
}

const NO_EVENTS: IngestCounts = { accepted: 0, duplicates: 0, conflicts: 0, late: 0, nonfinite: 0 };

/**
 * Tells every replica about changes of runs by LISTEN/NOTIFY, at most once a second per run and kind. Correctness does not depend on it:
 * after a lost notification a page refreshes later.
 */
@Injectable()
export class RunActivity implements OnApplicationBootstrap, OnApplicationShutdown {
  #touched = new Map<number, IngestCounts>();
  #rolled = new Map<string, RolledRun>();
  readonly #events = new EventEmitter().setMaxListeners(0);
  readonly #listener: DatabaseListener;
  #timer: NodeJS.Timeout | undefined;
  #flushing: Promise<void> = Promise.resolve();

  constructor(
    private readonly database: Database,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {
    this.#listener = new DatabaseListener(database.connectionString, ['palestra_runs'], (payload) => this.#emit(payload));
  }

  /** Reports stored rows of these runs. `counts` of a batch are added to its first run, because a batch seldom has two. */
  received(runSeqs: readonly number[], counts: IngestCounts = NO_EVENTS): void {
    runSeqs.forEach((seq, at) => this.#touched.set(seq, add(this.#touched.get(seq) ?? NO_EVENTS, at === 0 ? counts : NO_EVENTS)));
  }

  rolled(run: RolledRun): void {
    const previous = this.#rolled.get(run.id);
    this.#rolled.set(run.id, { ...run, steps: [...new Set([...(previous?.steps ?? []), ...run.steps])] });
  }

  /** Calls `listener` for every changed run of the organisation. Returns a function that unsubscribes. */
  subscribe(orgId: string, listener: (run: RunChange) => void): () => void {
    this.#events.on(orgId, listener);
    return () => this.#events.off(orgId, listener);
  }

  onApplicationBootstrap(): void {
    this.#timer = setInterval(() => (this.#flushing = this.#flush()), FLUSH_MS);
    this.#listener.start();
  }

  async onApplicationShutdown(): Promise<void> {
    clearInterval(this.#timer);
    await this.#flushing;
    await this.#flush();
    await this.#listener.stop();
  }

  async #flush(): Promise<void> {
    const [touched, rolled] = [this.#touched, this.#rolled];
    this.#touched = new Map();
    this.#rolled = new Map();
    try {
      if (touched.size > 0) await touchRuns(this.database.pool, touched);
      // Only what was not written is repeated: counts are added.
      touched.clear();
      if (rolled.size > 0) await notifyChanges(this.database.pool, [...rolled.values()].map(changeOf));
    } catch (error) {
      for (const [seq, counts] of touched) this.received([seq], counts);
      for (const run of rolled.values()) this.rolled(run);
      this.logger.debug({ err: error }, 'run activity was not written; it is repeated');
    }
  }

  #emit(payload: string): void {
    const run = JSON.parse(payload || 'null') as RunChange | null;
    if (run) this.#events.emit(run.org, run);
  }
}

const changeOf = ({ id, org_id, version, steps }: RolledRun): RunChange => ({
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
