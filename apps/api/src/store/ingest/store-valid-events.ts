import type { ReadBatch, ReadEvent } from '@palestra/rollouts';
import { isRefusedValue } from '../../platform/database/database-errors.ts';
import { bisectBatch } from '../bisect-batch.ts';
import type { IngestResult, ResolvedStart } from './ingest.sql.ts';

/** Reasons, by `keyOf`: one entry stands for all equal messages. */
type RefusedEvents = Map<string | ReadEvent, string>;

/** Stores all events except those with a value that PostgreSQL refuses. */
export async function storeValidEvents(
  events: readonly ReadEvent[],
  store: (part: readonly ReadEvent[]) => Promise<IngestResult>,
): Promise<{ stored: IngestResult; refused: RefusedEvents }> {
  let stored: IngestResult = { inserted: new Set(), started: new Set(), informed: new Set(), conflicts: [], runSeqs: [] };
  const refused: RefusedEvents = new Map();
  if (events.length === 0) return { stored, refused };
  await bisectBatch(
    events,
    async (part) => {
      const { inserted, started, informed, conflicts, runSeqs } = await store(part);
      stored = {
        inserted: new Set([...stored.inserted, ...inserted]),
        started: new Set([...stored.started, ...started]),
        informed: new Set([...stored.informed, ...informed]),
        conflicts: [...stored.conflicts, ...conflicts],
        runSeqs: [...new Set([...stored.runSeqs, ...runSeqs])],
      };
    },
    (event, error) => void refused.set(keyOf(event), `This event cannot be stored: ${(error as Error).message}.`),
    isRefusedValue,
  );
  return { stored, refused };
}

export const startsIn = (starts: readonly ResolvedStart[], events: readonly ReadEvent[]): ResolvedStart[] => {
  const wanted = new Set(events);
  return starts.filter(({ event }) => wanted.has(event));
};

/** Returns the batch without these events, as if parsing had rejected them. */
export function rejectEvents(batch: ReadBatch, refused: RefusedEvents): ReadBatch {
  const rejectedPositions = new Set(batch.rejected.map(({ position }) => position));
  const rejected = [...batch.rejected];
  let position = 0;
  const events = batch.events.filter((event) => {
    while (rejectedPositions.has(position)) position += 1;
    const detail = refused.get(keyOf(event));
    if (detail !== undefined) rejected.push({ position, eventId: event.kind === 'message' ? event.eventId : event.rolloutId, detail });
    position += 1;
    return detail === undefined;
  });
  return { ...batch, events, rejected: rejected.toSorted((a, b) => a.position - b.position) };
}

/** Keeps the first of several messages with the same id. */
export function uniqueEvents(events: ReadEvent[]): ReadEvent[] {
  const seen = new Set<string | ReadEvent>();
  return events.filter((event) => {
    if (event.kind !== 'message') return true;
    const key = keyOf(event);
    const fresh = !seen.has(key);
    seen.add(key);
    return fresh;
  });
}

const keyOf = (event: ReadEvent): string | ReadEvent => (event.kind === 'message' ? `${event.rolloutId}:${event.eventId}` : event);
