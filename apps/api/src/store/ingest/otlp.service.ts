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
import { storedMessages, withOrganisationTurn } from './otlp.sql.ts';
import { SealedEvents } from './sealed-events.service.ts';

/** Requests of an organisation that wait for one another; a further one is sent again by its exporter. */
const MAX_WAITING = 64;
/** What was rolled back by a deadlock is done again within this; PostgreSQL takes a second to notice one. */
const PATIENCE_MS = 5_000;
/** Problems that an answer names; the rest is counted. */
const MAX_TOLD = 5;
/** Traces of an organisation, the latest, of which is remembered what named their rollout. */
const MAX_NAMED = 10_000;

/** `ExportTraceServiceResponse`; without `partialSuccess` everything was kept. */
export interface TraceReceipt {
  partialSuccess?: { rejectedSpans: string; errorMessage: string };
}

/**
 * Spans as rollouts, by the ingest of every upload. Two pieces of one trace must not take the same places in it: requests of one
 * organisation are stored one after the other, in this process by a queue, among replicas by a lock.
 */
@Injectable()
export class OtlpService {
  /** The last request of each organisation: of the waiting ones only one holds a connection. */
  readonly #turns = new Map<string, { last: Promise<unknown>; waiting: number }>();
  /** In this process: an exporter keeps its connection, and spans that name their rollout themselves need none of it. */
  readonly #named = new Map<string, NamedTraces>();

  constructor(
    private readonly database: Database,
    private readonly ingest: IngestService,
    private readonly sealed: SealedEvents,
  ) {}

  store(caller: Caller, body: Uint8Array, isProtobuf: boolean): Promise<TraceReceipt> {
    return this.ingest.admit(body.length, async () => {
      const traces = read(body, isProtobuf, this.#namedOf(caller.orgId));
      const refused =
        traces.rollouts.length === 0
          ? { spans: 0, problems: [] }
          : await this.#inTurn(caller.orgId, () => this.#keep(caller.orgId, traces.rollouts));
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

  async #keep(orgId: string, rollouts: readonly TracedRollout[]): Promise<Refused> {
    // A name that is refused makes no run: what can be kept is known before.
    const { events } = readRollouts(rollouts, new Map());
    const names = events.flatMap((event) => (event.kind === 'start' ? event.runName : []));
    const runs = await this.ingest.runsOf(orgId, names);
    const storeInTurn = () =>
      withOrganisationTurn(this.database.pool, orgId, async (client) => {
        const { events: fresh, ...refused } = readRollouts(rollouts, await this.#stored(client, orgId, rollouts));
        if (fresh.length > 0) await this.ingest.store(orgId, { events: fresh, rejected: [], history: true }, { client, runs });
        return refused;
      });
    return retryDatabase(storeInTurn, PATIENCE_MS);
  }

  /** What is stored of these rollouts, in rows and in transcripts. */
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

  async #inTurn<T>(orgId: string, work: () => Promise<T>): Promise<T> {
    const turn = this.#turns.get(orgId) ?? { last: Promise.resolve(), waiting: 0 };
    if (turn.waiting >= MAX_WAITING) throw new PalestraError('ingest_overloaded', { retryAfterSeconds: 1 });
    this.#turns.set(orgId, turn);
    turn.waiting += 1;
    const done = turn.last.then(work, work);
    turn.last = done.catch(() => {});
    try {
      return await done;
    } finally {
      turn.waiting -= 1;
      if (turn.waiting === 0) this.#turns.delete(orgId);
    }
  }
}

interface Refused {
  spans: number;
  problems: string[];
}

/** A rollout of which one event cannot be kept is left out whole: half of it would read as something else. */
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

/** OTLP answers 400 to whatever cannot be read, and no exporter sends that again. */
function read(body: Uint8Array, isProtobuf: boolean, named: NamedTraces): ReadTraces {
  try {
    return readTraces(isProtobuf ? decodeTraceRequest(body) : parseTolerant(Buffer.from(body).toString('utf8')).value, named);
  } catch (error) {
    const isTheirs = isProtobuf || error instanceof SyntaxError || error instanceof OtlpShapeError;
    if (!isTheirs) throw error;
    throw new PalestraError('invalid_request', {
      detail: `The body is no ExportTraceServiceRequest: ${(error as Error).message}`,
      cause: error,
    });
  }
}

/** A message without rejected spans is a warning (OTLP 1.x, "Partial Success"). */
function receiptOf({ problems, ignored }: ReadTraces, refused: Refused): TraceReceipt {
  const rejected = problems.length + refused.spans;
  const all = [...problems, ...refused.problems];
  const told = [
    ...all.slice(0, MAX_TOLD),
    ...(all.length > MAX_TOLD ? [`and ${all.length - MAX_TOLD} more`] : []),
    ...(ignored > 0 ? [`${ignored} spans without GenAI attributes were not kept`] : []),
  ];
  return told.length === 0 ? {} : { partialSuccess: { rejectedSpans: String(rejected), errorMessage: told.join('; ') } };
}
