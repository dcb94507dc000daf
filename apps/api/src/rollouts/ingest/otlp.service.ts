import { Injectable } from '@nestjs/common';
import { PalestraError } from '@palestra/protocol';
import { parseTolerant, type ReadEvent, readBatch } from '@palestra/rollouts';
import {
  eventsOfTrace,
  OtlpShapeError,
  readTraces,
  type ReadTraces,
  type StoredMessages,
  type TracedRollout,
} from '@palestra/rollouts/import';
import type { Caller } from '@palestra/session';
import { Database } from '../../platform/database.ts';
import { IngestService } from './ingest.service.ts';
import { decodeTraceRequest } from './otlp-protobuf.ts';
import { storedMessages } from './otlp.sql.ts';

/** Requests of an organisation that wait for one another; a further one is sent again by its exporter. */
const MAX_WAITING = 64;
/** Problems that an answer names; the rest is counted. */
const MAX_TOLD = 5;

/** `ExportTraceServiceResponse`; without `partialSuccess` everything was kept. */
export interface TraceReceipt {
  partialSuccess?: { rejectedSpans: string; errorMessage: string };
}

/** Spans as rollouts, by the ingest of every upload. */
@Injectable()
export class OtlpService {
  /** The last request of each organisation: two pieces of one trace must not take the same places in it. */
  readonly #turns = new Map<string, { last: Promise<unknown>; waiting: number }>();

  constructor(
    private readonly database: Database,
    private readonly ingest: IngestService,
  ) {}

  async store(caller: Caller, body: Uint8Array, isProtobuf: boolean): Promise<TraceReceipt> {
    const traces = read(body, isProtobuf);
    const refused =
      traces.rollouts.length === 0
        ? { spans: 0, problems: [] }
        : await this.#inTurn(caller.orgId, () => this.#keep(caller.orgId, traces.rollouts));
    return receiptOf(traces, refused);
  }

  async #keep(orgId: string, rollouts: readonly TracedRollout[]): Promise<Refused> {
    const eventIds = rollouts.flatMap(({ messages }) => messages.map(({ eventId }) => eventId));
    const stored = await storedMessages(
      this.database.pool,
      orgId,
      rollouts.map(({ rolloutId }) => rolloutId),
      eventIds,
    );
    const { events, ...refused } = readRollouts(rollouts, stored);
    if (events.length > 0) await this.ingest.store(orgId, { events, rejected: [] });
    return refused;
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
function read(body: Uint8Array, isProtobuf: boolean): ReadTraces {
  try {
    return readTraces(isProtobuf ? decodeTraceRequest(body) : parseTolerant(Buffer.from(body).toString('utf8')).value);
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
