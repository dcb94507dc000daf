import { Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import type pg from 'pg';
import { type EventResult, type IngestReceipt, PalestraError } from '@palestra/protocol';
import { BatchShapeError, type ReadEvent, parseTolerant, readBatch, type ReadBatch } from '@palestra/rollouts';
import type { Caller } from '@palestra/session';
import { retryDatabase } from '../../platform/database/database-retry.ts';
import { Database } from '../../platform/database/database.ts';
import { Metrics } from '../../platform/telemetry/metrics.ts';
import { RunActivity } from '../run-activity.service.ts';
import { Backlog } from './backlog.service.ts';
import { ensureRun } from './ensure-run.sql.ts';
import { type IngestResult, type ResolvedStart, type RolloutFailure, storeBatch } from './ingest.sql.ts';
import { MessageObjects } from './message-objects.service.ts';
import { SealedEvents } from './sealed-events.service.ts';
import { startsIn, storeTolerantly, uniqueEvents, withoutRefused } from './tolerant-store.ts';

/** Bodies that are being stored at the same time, bytes; beyond it a batch is refused with 503 (never 429: clients drop those). */
const MAX_IN_FLIGHT_BYTES = 256 * 1024 * 1024;
/** What was rolled back by a deadlock is done again within this; PostgreSQL takes a second to notice one. */
const PATIENCE_MS = 5_000;
const CACHED_NAMES = 10_000;
const RUN_TTL_MS = 5_000;
/** An event is late when its client stamped it this long before it came. Imports and traces tell when it happened: none of theirs is. */
const LATE_MS = 60_000;

interface StoreOptions {
  perEvent?: boolean;
  client?: Pick<pg.Pool, 'query'>;
  runs?: ReadonlyMap<string, number>;
}

/** `POST /v1/rollouts`: read tolerantly, resolve run names, store in one statement, acknowledge after the commit. */
@Injectable()
export class IngestService {
  #inFlightBytes = 0;
  readonly #runs = new LRUCache<string, Promise<number>>({ max: CACHED_NAMES, ttl: RUN_TTL_MS });

  constructor(
    private readonly database: Database,
    private readonly activity: RunActivity,
    private readonly metrics: Metrics,
    private readonly objects: MessageObjects,
    private readonly sealed: SealedEvents,
    private readonly backlog: Backlog,
  ) {}

  ingest(caller: Caller, body: Buffer, perEvent = false): Promise<IngestReceipt> {
    return this.admit(body.length, () => this.store(caller.orgId, readBody(body), { perEvent }));
  }

  /** Does `work` on a body of so many bytes; throws `ingest_overloaded` when too many are in work already, or too many rollouts wait for derivation. */
  async admit<T>(bytes: number, work: () => Promise<T>): Promise<T> {
    if (this.#inFlightBytes > 0 && this.#inFlightBytes + bytes > MAX_IN_FLIGHT_BYTES) {
      throw new PalestraError('ingest_overloaded', { retryAfterSeconds: 1 });
    }
    this.#inFlightBytes += bytes;
    try {
      await this.backlog.waitForRoom();
      return await work();
    } finally {
      this.#inFlightBytes -= bytes;
    }
  }

  /**
   * The path of every upload and import: `batch` as it was read. Throws `invalid_body` when nothing of it could be kept. With a `client`
   * inside of its transaction, and with `runs` from `runsOf`: nothing asks for a second connection then, and what PostgreSQL rolls back
   * is the caller's to repeat.
   */
  async store(orgId: string, batch: ReadBatch, { perEvent = false, client, runs }: StoreOptions = {}): Promise<IngestReceipt> {
    const events = uniqueEvents(batch.events);
    if (events.length === 0 && batch.rejected.length > 0) throw this.#nothingKept(batch);
    const starts = await this.#resolve(orgId, events, runs);
    const detached = await this.objects.detach(orgId, events);
    const storeIn = (queryable: Pick<pg.Pool, 'query'>, some: readonly ReadEvent[]) =>
      storeBatch(queryable, orgId, some.length === events.length ? starts : startsIn(starts, some), some, [], this.sealed.find);
    if (client) return this.#receipt(batch, events, await storeIn(client, detached.events), perEvent);

    const { stored, refused } = await storeTolerantly(detached.events, (some) =>
      retryDatabase(() => storeIn(this.database.pool, some), PATIENCE_MS),
    );
    if (refused.size === 0) return this.#receipt(batch, events, stored, perEvent);
    const kept = withoutRefused(batch, refused);
    if (kept.events.length === 0) throw this.#nothingKept(kept);
    return this.#receipt(kept, uniqueEvents(kept.events), stored, perEvent);
  }

  /** Says in the status, which is all that the SDK looks at, that nothing was kept. */
  #nothingKept({ rejected }: ReadBatch): PalestraError {
    this.#count(0, 0, rejected.length);
    const detail = rejected.map(({ position, detail: msg }) => ({ type: 'value_error', loc: ['body', 'events', position], msg }));
    return new PalestraError('invalid_body', { detail });
  }

  /** `batch`: what was sent; `events`: each of its events once. */
  #receipt(batch: ReadBatch, events: readonly ReadEvent[], stored: IngestResult, perEvent: boolean): IngestReceipt {
    const accepted = events.filter((event) => isNew(event, stored)).length;
    const duplicates = batch.events.length - accepted;
    this.#count(accepted, duplicates, batch.rejected.length);
    this.activity.received(stored.runSeqs, {
      accepted,
      duplicates,
      conflicts: stored.conflicts.length,
      late: batch.history ? 0 : events.filter((event) => event.sentAt < Date.now() - LATE_MS).length,
      nonfinite: events.filter((event) => event.nonfinite).length,
    });
    const rejected = batch.rejected.map(({ position, eventId, detail }) => ({ position, event_id: eventId, detail }));
    const receipt = { accepted, duplicates, conflicts: stored.conflicts.length, rejected };
    return perEvent ? { ...receipt, results: resultsOf(batch, stored) } : receipt;
  }

  #count(accepted: number, duplicates: number, rejected: number): void {
    const { ingestEvents } = this.metrics;
    ingestEvents.inc({ outcome: 'accepted' }, accepted);
    ingestEvents.inc({ outcome: 'duplicate' }, duplicates);
    ingestEvents.inc({ outcome: 'rejected' }, rejected);
  }

  /**
   * Stores what this service itself saw of an organisation's episodes, by the statement of uploads and inside of the transaction of
   * `client`.
   */
  async record(
    client: Pick<pg.Pool, 'query'>,
    orgId: string,
    events: readonly ReadEvent[],
    failures: readonly RolloutFailure[],
  ): Promise<void> {
    const { runSeqs } = await storeBatch(client, orgId, await this.#resolve(orgId, events), events, failures, this.sealed.find);
    this.activity.received(runSeqs);
  }

  /** Runs by their names; made where there are none. */
  async runsOf(orgId: string, names: Iterable<string>): Promise<Map<string, number>> {
    return new Map(await Promise.all(Array.from(new Set(names), async (name) => [name, await this.#runSeq(orgId, name)] as const)));
  }

  async #resolve(orgId: string, events: readonly ReadEvent[], known?: ReadonlyMap<string, number>): Promise<ResolvedStart[]> {
    const starts = events.filter((event) => event.kind === 'start');
    const runs =
      known ??
      (await this.runsOf(
        orgId,
        starts.map(({ runName }) => runName),
      ));
    return starts.map((event) => ({ event, runSeq: runs.get(event.runName)! }));
  }

  #runSeq(orgId: string, name: string): Promise<number> {
    const key = `${orgId}:${name}`;
    const known = this.#runs.get(key);
    if (known !== undefined) return known;
    const seq = ensureRun(this.database.pool, orgId, name);
    this.#runs.set(key, seq);
    seq.catch(() => this.#runs.delete(key));
    return seq;
  }

  /** A deleted run must not be written to under its old id; other replicas forget it within `RUN_TTL_MS`. */
  forgetRuns(): void {
    this.#runs.clear();
  }
}

/** Whether it was not there already: of a start event or an update, whether it said something that its rollout did not know. */
function isNew(event: ReadEvent, { inserted, started, informed }: IngestResult): boolean {
  if (event.kind === 'message') return inserted.has(event.eventId);
  if (event.kind === 'update') return informed.has(event.rolloutId);
  return started.has(event.rolloutId) || (event.raw.rollout_info !== undefined && informed.has(event.rolloutId));
}

function resultsOf(batch: ReadBatch, stored: IngestResult): EventResult[] {
  const conflicts = new Set(stored.conflicts);
  const told = new Set<string>();
  const statusOf = (event: ReadEvent): EventResult['status'] => {
    if (event.kind !== 'message') return isNew(event, stored) ? 'accepted' : 'duplicate';
    if (conflicts.has(event.eventId)) return 'conflict';
    if (!isNew(event, stored) || told.has(event.eventId)) return 'duplicate';
    told.add(event.eventId);
    return 'accepted';
  };
  const rejected = new Map(batch.rejected.map((event) => [event.position, event]));
  let next = 0;
  return Array.from({ length: batch.events.length + rejected.size }, (_, position): EventResult => {
    const bad = rejected.get(position);
    if (bad) return { position, event_id: bad.eventId, status: 'rejected', detail: bad.detail };
    const event = batch.events[next++]!;
    return { position, event_id: event.kind === 'message' ? event.eventId : event.rolloutId, status: statusOf(event) };
  });
}

function readBody(body: Buffer): ReadBatch {
  try {
    return readBatch(parseTolerant(body.toString('utf8')));
  } catch (error) {
    if (error instanceof SyntaxError) {
      throw new PalestraError('invalid_json', { detail: `The request body is not valid JSON: ${error.message}`, cause: error });
    }
    if (error instanceof BatchShapeError) throw new PalestraError('invalid_body', { detail: error.message, cause: error });
    throw error;
  }
}
