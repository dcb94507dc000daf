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
import { startsIn, storeValidEvents, uniqueEvents, rejectEvents } from './store-valid-events.ts';

/** Maximum of bodies that are stored at the same time, bytes. Beyond it a batch gets 503 (never 429: clients drop those). */
const MAX_IN_FLIGHT_BYTES = 256 * 1024 * 1024;
/** How long a statement is repeated after a deadlock; PostgreSQL takes a second to detect one. */
const PATIENCE_MS = 5_000;
const CACHED_NAMES = 10_000;
const RUN_TTL_MS = 5_000;
/** An event is late when its client's time stamp is this much older than its arrival. Events of imports and traces are never late. */
const LATE_MS = 60_000;

interface StoreOptions {
  perEvent?: boolean;
  client?: Pick<pg.Pool, 'query'>;
  runs?: ReadonlyMap<string, number>;
}

/** `POST /v1/rollouts`: parses tolerantly, resolves run names, stores in one statement, acknowledges after the commit. */
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
    return this.admit(caller.orgId, body.length, () => this.store(caller.orgId, readBody(body), { perEvent }));
  }

  /**
   * Runs `work` on a body of that size. Throws `ingest_overloaded` when too many bytes are in progress, or too many rollouts wait for
   * derivation.
   */
  async admit<T>(orgId: string, bytes: number, work: () => Promise<T>): Promise<T> {
    if (this.#inFlightBytes > 0 && this.#inFlightBytes + bytes > MAX_IN_FLIGHT_BYTES) {
      throw new PalestraError('ingest_overloaded', { retryAfterSeconds: 1 });
    }
    this.#inFlightBytes += bytes;
    try {
      await this.backlog.waitForRoom(orgId);
      return await work();
    } finally {
      this.#inFlightBytes -= bytes;
    }
  }

  /**
   * Stores a parsed batch, for every upload and import. Throws `invalid_body` if no event can be stored. With a `client` it runs in the
   * caller's transaction, with `runs` from `runsOf`: then it needs no second connection, and the caller repeats what PostgreSQL rolls back.
   */
  async store(orgId: string, batch: ReadBatch, { perEvent = false, client, runs }: StoreOptions = {}): Promise<IngestReceipt> {
    const events = uniqueEvents(batch.events);
    if (events.length === 0 && batch.rejected.length > 0) throw this.#noneStored(batch);
    const starts = await this.#resolve(orgId, events, runs);
    const detached = await this.objects.detach(orgId, events);
    const storeIn = (queryable: Pick<pg.Pool, 'query'>, part: readonly ReadEvent[]) =>
      storeBatch(queryable, orgId, part.length === events.length ? starts : startsIn(starts, part), part, [], this.sealed.find);
    if (client) return this.#receipt(batch, events, await storeIn(client, detached.events), perEvent);

    const { stored, refused } = await storeValidEvents(detached.events, (part) =>
      retryDatabase(() => storeIn(this.database.pool, part), PATIENCE_MS),
    );
    if (refused.size === 0) return this.#receipt(batch, events, stored, perEvent);
    const kept = rejectEvents(batch, refused);
    if (kept.events.length === 0) throw this.#noneStored(kept);
    return this.#receipt(kept, uniqueEvents(kept.events), stored, perEvent);
  }

  /** The SDK reads only the status, so it must show that nothing was stored. */
  #noneStored({ rejected }: ReadBatch): PalestraError {
    this.#count(0, 0, rejected.length);
    const detail = rejected.map(({ position, detail: msg }) => ({ type: 'value_error', loc: ['body', 'events', position], msg }));
    return new PalestraError('invalid_body', { detail });
  }

  /** `batch`: the sent events; `events`: each of them once. */
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

  /** Stores events that this service recorded itself, with the statement of uploads, in the transaction of `client`. */
  async record(
    client: Pick<pg.Pool, 'query'>,
    orgId: string,
    events: readonly ReadEvent[],
    failures: readonly RolloutFailure[],
  ): Promise<void> {
    const { runSeqs } = await storeBatch(client, orgId, await this.#resolve(orgId, events), events, failures, this.sealed.find);
    this.activity.received(runSeqs);
  }

  /** Runs by their names. Creates missing ones. */
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

  /** Events must not be stored under the old id of a deleted run. Other replicas forget it within `RUN_TTL_MS`. */
  forgetRuns(): void {
    this.#runs.clear();
  }
}

/** Whether the event is new. A start event or an update is new if it adds a value to its rollout. */
function isNew(event: ReadEvent, { inserted, started, informed }: IngestResult): boolean {
  if (event.kind === 'message') return inserted.has(event.eventId);
  if (event.kind === 'update') return informed.has(event.rolloutId);
  return started.has(event.rolloutId) || (event.raw.rollout_info !== undefined && informed.has(event.rolloutId));
}

function resultsOf(batch: ReadBatch, stored: IngestResult): EventResult[] {
  const conflicts = new Set(stored.conflicts);
  const accepted = new Set<string>();
  const statusOf = (event: ReadEvent): EventResult['status'] => {
    if (event.kind !== 'message') return isNew(event, stored) ? 'accepted' : 'duplicate';
    if (conflicts.has(event.eventId)) return 'conflict';
    if (!isNew(event, stored) || accepted.has(event.eventId)) return 'duplicate';
    accepted.add(event.eventId);
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
