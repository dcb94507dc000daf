import { Injectable } from '@nestjs/common';
import type pg from 'pg';
import { PalestraError } from '@palestra/protocol';
import { parseTolerant, type ReadEvent, readBatch } from '@palestra/rollouts';
import {
  eventsOfTrace,
  type NamedTraces,
  OtlpShapeError,
  readTraces,
  type ReadTraces,
  type StoredMessages,
  type TracedRollout,
} from '@palestra/rollouts/import';
import type { Caller } from '@palestra/session';
import { retryDatabase } from '../../platform/database/database-retry.ts';
import { Database } from '../../platform/database/database.ts';
import { IngestService } from './ingest.service.ts';
import { decodeTraceRequest } from './otlp-protobuf.ts';
import { storedMessages, withOrganisationLock } from './otlp.sql.ts';
import { SealedEvents } from './sealed-events.service.ts';

/** Waiting requests of an organisation; its exporter repeats a further one. */
const MAX_WAITING = 64;
/** How long a statement is repeated after a deadlock; PostgreSQL takes a second to detect one. */
const PATIENCE_MS = 5_000;
/** Problems that a response lists; the rest is counted. */
const MAX_LISTED = 5;
/** The latest traces of an organisation whose rollout names are remembered. */
const MAX_NAMED = 10_000;

/** `ExportTraceServiceResponse`; without `partialSuccess` everything was stored. */
export interface TraceReceipt {
  partialSuccess?: { rejectedSpans: string; errorMessage: string };
}

/**
 * Stores spans as rollouts, through the ingest of uploads. Two parts of one trace must not use the same message indexes, so requests of one
 * organisation are stored one after another: in this process through a queue, among replicas through a lock.
 */
@Injectable()
export class OtlpService {
  /** The last request of each organisation. Only one of its waiting requests holds a connection. */
  readonly #queues = new Map<string, { last: Promise<unknown>; waiting: number }>();
  /** In memory, because an exporter keeps its connection to one process, and spans that name their rollout do not need it. */
  readonly #named = new Map<string, NamedTraces>();

  constructor(
    private readonly database: Database,
    private readonly ingest: IngestService,
    private readonly sealed: SealedEvents,
  ) {}

  store(caller: Caller, body: Uint8Array, isProtobuf: boolean): Promise<TraceReceipt> {
    return this.ingest.admit(caller.orgId, body.length, async () => {
      const traces = read(body, isProtobuf, this.#namedOf(caller.orgId));
      const refused =
        traces.rollouts.length === 0
          ? { spans: 0, problems: [] }
          : await this.#enqueue(caller.orgId, () => this.#store(caller.orgId, traces.rollouts));
      return receiptOf(traces, refused);
    });
  }

  #namedOf(orgId: string): NamedTraces {
    const named: NamedTraces = this.#named.get(orgId) ?? new Map();
    this.#named.set(orgId, named);
    for (const oldest of named.keys()) {
      if (named.size <= MAX_NAMED) break;
      named.delete(oldest);
    }
    return named;
  }

  async #store(orgId: string, rollouts: readonly TracedRollout[]): Promise<Refused> {
    // A refused name must not create a run, so check before which rollouts can be stored.
    const { events } = readRollouts(rollouts, new Map());
    const names = events.flatMap((event) => (event.kind === 'start' ? event.runName : []));
    const runs = await this.ingest.runsOf(orgId, names);
    const storeLocked = () =>
      withOrganisationLock(this.database.pool, orgId, async (client) => {
        const { events: fresh, ...refused } = readRollouts(rollouts, await this.#stored(client, orgId, rollouts));
        if (fresh.length > 0) await this.ingest.store(orgId, { events: fresh, rejected: [], history: true }, { client, runs });
        return refused;
      });
    return retryDatabase(storeLocked, PATIENCE_MS);
  }

  /** Stored messages of these rollouts, in rows and transcripts. */
  async #stored(client: pg.PoolClient, orgId: string, rollouts: readonly TracedRollout[]): Promise<Map<string, StoredMessages>> {
    const eventIds = rollouts.flatMap(({ messages }) => messages.map(({ eventId }) => eventId));
    const rolloutIds = rollouts.map(({ rolloutId }) => rolloutId);
    const stored = await storedMessages(client, orgId, rolloutIds, eventIds);
    const seqs = [...stored.values()].flatMap(({ seq, sealed }) => (sealed ? seq : []));
    if (seqs.length === 0) return stored;
    const sealed = await this.sealed.ids(client, seqs, new Set(eventIds));
    return new Map(
      [...stored].map(([id, { seq, maxIndex, eventIds: live }]) => [
        id,
        { maxIndex, eventIds: new Set([...live, ...(sealed.get(seq) ?? [])]) },
      ]),
    );
  }

  async #enqueue<T>(orgId: string, work: () => Promise<T>): Promise<T> {
    const queue = this.#queues.get(orgId) ?? { last: Promise.resolve(), waiting: 0 };
    if (queue.waiting >= MAX_WAITING) throw new PalestraError('ingest_overloaded', { retryAfterSeconds: 1 });
    this.#queues.set(orgId, queue);
    queue.waiting += 1;
    const done = queue.last.then(work, work);
    queue.last = done.catch(() => {});
    try {
      return await done;
    } finally {
      queue.waiting -= 1;
      if (queue.waiting === 0) this.#queues.delete(orgId);
    }
  }
}

interface Refused {
  spans: number;
  problems: string[];
}

/** Skips a rollout if one of its events cannot be stored, because a part of it would be misleading. */
function readRollouts(rollouts: readonly TracedRollout[], stored: ReadonlyMap<string, StoredMessages>): Refused & { events: ReadEvent[] } {
  const kept: ReadEvent[] = [];
  const refused: Refused = { spans: 0, problems: [] };
  for (const rollout of rollouts) {
    const { events, rejected } = readBatch({ value: { events: eventsOfTrace(rollout, stored.get(rollout.rolloutId)) }, dirty: true });
    if (rejected.length === 0) kept.push(...events);
    else {
      refused.spans += rollout.spans;
      refused.problems.push(rejected[0]!.detail);
    }
  }
  return { ...refused, events: kept };
}

/** OTLP requires 400 for unreadable bodies; exporters do not repeat them. */
function read(body: Uint8Array, isProtobuf: boolean, named: NamedTraces): ReadTraces {
  try {
    return readTraces(isProtobuf ? decodeTraceRequest(body) : parseTolerant(Buffer.from(body).toString('utf8')).value, named);
  } catch (error) {
    const isInvalidBody = isProtobuf || error instanceof SyntaxError || error instanceof OtlpShapeError;
    if (!isInvalidBody) throw error;
    throw new PalestraError('invalid_request', {
      detail: `The body is not a valid ExportTraceServiceRequest: ${(error as Error).message}`,
      cause: error,
    });
  }
}

/** A message without rejected spans is a warning (OTLP 1.x, "Partial Success"). */
function receiptOf({ problems, ignored }: ReadTraces, refused: Refused): TraceReceipt {
  const rejected = problems.length + refused.spans;
  const all = [...problems, ...refused.problems];
  const texts = [
    ...all.slice(0, MAX_LISTED),
    ...(all.length > MAX_LISTED ? [`and ${all.length - MAX_LISTED} more`] : []),
    ...(ignored > 0 ? [`${ignored} spans without GenAI attributes were not stored`] : []),
  ];
  return texts.length === 0 ? {} : { partialSuccess: { rejectedSpans: String(rejected), errorMessage: texts.join('; ') } };
}
