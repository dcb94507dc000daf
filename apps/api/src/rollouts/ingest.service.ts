import { Inject, Injectable } from '@nestjs/common';
import type pg from 'pg';
import { PalestraError } from '@palestra/protocol';
import { BatchShapeError, type ReadEvent, parseTolerant, readBatch, type ReadBatch, type ReadStart } from '@palestra/rollouts';
import type { Caller, EnvironmentDirectory } from '@palestra/session';
import { ENVIRONMENT_DIRECTORY } from '../environments/directory.token.ts';
import { Database } from '../platform/database.ts';
import { Metrics } from '../platform/metrics.ts';
import { RunActivity } from '../runs/run-activity.service.ts';
import { ensureRun } from '../runs/run.sql.ts';
import { type ResolvedStart, type RolloutFailure, storeBatch } from './ingest.sql.ts';

/** Bodies that are being stored at the same time, bytes; beyond it a batch is refused with 503 (never 429: clients drop those). */
const MAX_IN_FLIGHT_BYTES = 256 * 1024 * 1024;
const CACHED_NAMES = 10_000;
const RUN_ID_TTL_MS = 5_000;
const ENVIRONMENT_ID_TTL_MS = 60_000;

/** What a batch came to. Kept = accepted + duplicates. */
export interface IngestReceipt {
  accepted: number;
  duplicates: number;
  rejected: { position: number; event_id: string | null; detail: string }[];
}

/** `POST /v1/rollouts`: read tolerantly, resolve names, store in one statement, acknowledge after the commit. */
@Injectable()
export class IngestService {
  #inFlightBytes = 0;
  readonly #runIds = new Map<string, { id: Promise<string>; until: number }>();
  readonly #environmentIds = new Map<string, { id: Promise<string | null>; until: number }>();

  constructor(
    private readonly database: Database,
    private readonly activity: RunActivity,
    private readonly metrics: Metrics,
    @Inject(ENVIRONMENT_DIRECTORY) private readonly directory: EnvironmentDirectory,
  ) {}

  async ingest(caller: Caller, body: Buffer): Promise<IngestReceipt> {
    if (this.#inFlightBytes > 0 && this.#inFlightBytes + body.length > MAX_IN_FLIGHT_BYTES) {
      throw new PalestraError('ingest_overloaded', { retryAfterSeconds: 1 });
    }
    this.#inFlightBytes += body.length;
    try {
      return await this.#store(caller, readBody(body));
    } finally {
      this.#inFlightBytes -= body.length;
    }
  }

  async #store(caller: Caller, batch: ReadBatch): Promise<IngestReceipt> {
    const events = uniqueEvents(batch.events);
    const starts = await Promise.all(events.filter((event) => event.kind === 'start').map((event) => this.#resolve(caller, event)));
    if (events.length === 0 && batch.rejected.length > 0) {
      this.#count(0, 0, batch.rejected.length);
      // Nothing was kept: say so in the status, which is all that the SDK looks at.
      const detail = batch.rejected.map(({ position, detail: msg }) => ({ type: 'value_error', loc: ['body', 'events', position], msg }));
      throw new PalestraError('invalid_body', { detail });
    }
    const messages = events.filter((event) => event.kind === 'message').length;
    const stored = events.length > 0 ? await storeBatch(this.database.pool, caller.orgId, starts, events) : { inserted: 0, runIds: [] };
    this.activity.touch(stored.runIds);
    const accepted = events.length - messages + stored.inserted;
    const duplicates = batch.events.length - accepted;
    this.#count(accepted, duplicates, batch.rejected.length);
    return {
      accepted,
      duplicates,
      rejected: batch.rejected.map(({ position, eventId, detail }) => ({ position, event_id: eventId, detail })),
    };
  }

  #count(accepted: number, duplicates: number, rejected: number): void {
    const { ingestEvents } = this.metrics;
    ingestEvents.inc({ outcome: 'accepted' }, accepted);
    ingestEvents.inc({ outcome: 'duplicate' }, duplicates);
    ingestEvents.inc({ outcome: 'rejected' }, rejected);
  }

  /**
   * Stores what this service itself saw of an organisation's episodes, by the statement of uploads and inside of the transaction of
   * `client`. `environmentIds`: by rollout.
   */
  async record(
    client: Pick<pg.Pool, 'query'>,
    orgId: string,
    events: readonly ReadEvent[],
    failures: readonly RolloutFailure[],
    environmentIds: ReadonlyMap<string, string | null>,
  ): Promise<void> {
    const starts = events.filter((event) => event.kind === 'start');
    const resolved = await Promise.all(
      starts.map(async (event) => {
        const runId = await this.#runId(orgId, event.runName);
        return { event, runId, environmentId: environmentIds.get(event.rolloutId) ?? null };
      }),
    );
    const { runIds } = await storeBatch(client, orgId, resolved, events, failures);
    this.activity.touch(runIds);
  }

  async #resolve(caller: Caller, event: ReadStart): Promise<ResolvedStart> {
    const [runId, environmentId] = await Promise.all([this.#runId(caller.orgId, event.runName), this.#environmentId(caller, event)]);
    return { event, runId, environmentId };
  }

  #runId(orgId: string, name: string): Promise<string> {
    const key = `${orgId}:${name}`;
    const known = this.#runIds.get(key);
    if (known && known.until > Date.now()) return known.id;
    if (this.#runIds.size >= CACHED_NAMES) this.#runIds.clear();
    const id = ensureRun(this.database.pool, orgId, name);
    this.#runIds.set(key, { id, until: Date.now() + RUN_ID_TTL_MS });
    id.catch(() => this.#runIds.delete(key));
    return id;
  }

  /** A deleted run must not be written to under its old id; other replicas forget it within `RUN_ID_TTL_MS`. */
  forgetRuns(): void {
    this.#runIds.clear();
  }

  /** The environment that the event names, under the caller's own rights; null for one that is not hosted here. */
  #environmentId(caller: Caller, event: ReadStart): Promise<string | null> {
    const name = event.raw.environment;
    if (typeof name !== 'string' || name === '') return Promise.resolve(null);
    const key = `${caller.orgId}:${name}`;
    const known = this.#environmentIds.get(key);
    if (known && known.until > Date.now()) return known.id;
    if (this.#environmentIds.size >= CACHED_NAMES) this.#environmentIds.clear();
    const id = this.directory.resolve(name, caller).then(
      (hosted) => (`${hosted.owner}/${hosted.name}` === name || hosted.name === name ? hosted.environmentId : null),
      // Whatever the reason, the rollout is kept without the link.
      () => null,
    );
    this.#environmentIds.set(key, { id, until: Date.now() + ENVIRONMENT_ID_TTL_MS });
    return id;
  }
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

/** Of equal message ids in one batch the first is kept. */
function uniqueEvents(events: ReadEvent[]): ReadEvent[] {
  const seen = new Set<string>();
  return events.filter((event) => {
    if (event.kind !== 'message') return true;
    const fresh = !seen.has(event.eventId);
    seen.add(event.eventId);
    return fresh;
  });
}
