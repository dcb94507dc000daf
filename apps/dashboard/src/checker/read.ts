import {
  BatchShapeError,
  type NormalisedRollout,
  normaliseRollout,
  parseTolerant,
  type RawRollout,
  readBatch,
  type ReadBatch,
  type ReadEvent,
  type ReadMessage,
  type ReadStart,
  skeletonOf,
  type TolerantJson,
} from '@palestra/rollouts';

/** What was put around the pasted text so that it is a request body. */
export type Wrapping = 'none' | 'event' | 'list' | 'lines';

export interface Problem {
  /** As a client's answer names it: `body`, `events[3]`. */
  place: string;
  text: string;
}

export interface CheckedRollout {
  /** The start event; null when only messages or updates of it were pasted. */
  start: ReadStart | null;
  /** Events of it that would be kept. */
  events: number;
  result: NormalisedRollout;
}

export interface Checked {
  /** The status that the route answers. */
  status: 200 | 422;
  wrapping: Wrapping;
  /** Events that would be kept, each once. */
  kept: number;
  /** Messages whose id stood in the text before. */
  repeated: number;
  problems: readonly Problem[];
  rollouts: readonly CheckedRollout[];
}

type Json = Readonly<Record<string, unknown>>;
const isObject = (value: unknown): value is Json => typeof value === 'object' && value !== null && !Array.isArray(value);

/** One event, a list of events, or several of these in lines, as the body that a client would send. Throws SyntaxError. */
function readBody(text: string): TolerantJson & { wrapping: Wrapping } {
  let whole: TolerantJson;
  try {
    whole = parseTolerant(text);
  } catch (error) {
    const lines = text.split('\n').filter((line) => line.trim() !== '');
    if (lines.length < 2) throw error;
    let parsed: TolerantJson[];
    try {
      parsed = lines.map(parseTolerant);
    } catch {
      throw error;
    }
    const events = parsed.flatMap(({ value }) =>
      isObject(value) && Array.isArray(value['events']) ? (value['events'] as unknown[]) : [value],
    );
    return { value: { events }, dirty: parsed.some(({ dirty }) => dirty), wrapping: 'lines' };
  }
  const { value, dirty } = whole;
  if (Array.isArray(value)) return { value: { events: value }, dirty, wrapping: 'list' };
  if (isObject(value) && !('events' in value) && 'eventType' in value) return { value: { events: [value] }, dirty, wrapping: 'event' };
  return { value, dirty, wrapping: 'none' };
}

const bytesOf = new TextEncoder();
const lengthOf = (text: string | null): number => (text === null ? 0 : bytesOf.encode(text).length);

/** The rollout as the server would have it when these are all of its events. */
function rawOf(id: string, events: readonly ReadEvent[], now: number): RawRollout {
  const start = events.find((event): event is ReadStart => event.kind === 'start') ?? null;
  const messages = events.filter((event): event is ReadMessage => event.kind === 'message').toSorted((a, b) => a.index - b.index);
  const updates = events.filter((event) => event.kind === 'update').toSorted((a, b) => a.sentAt - b.sentAt);
  const first = (type: ReadMessage['type']) => messages.find((message) => message.type === type)?.content ?? '';
  return {
    id,
    start: start?.raw ?? null,
    rolloutInfo: Object.assign({}, ...updates.map(({ rolloutInfo }) => rolloutInfo)) as RawRollout['rolloutInfo'],
    messages: messages.map((event) => skeletonOf(event, lengthOf(event.content) + lengthOf(event.summary))),
    prompt: first('system_message') + first('user_message') || null,
    startedAt: start?.sentAt ?? null,
    receivedAt: now,
    lastReceivedAt: now,
    failureClass: null,
    nonfinite: start?.nonfinite === true,
  };
}

/** By rollout, in order of first mention; of messages with one id the first counts, as the server keeps it. */
function byRollout(events: readonly ReadEvent[]): [id: string, events: ReadEvent[]][] {
  const seen = new Set<string>();
  const groups = new Map<string, ReadEvent[]>();
  for (const event of events) {
    if (event.kind === 'message') {
      if (seen.has(event.eventId)) continue;
      seen.add(event.eventId);
    }
    const group = groups.get(event.rolloutId);
    if (group) group.push(event);
    else groups.set(event.rolloutId, [event]);
  }
  return [...groups];
}

/** What the ingest route would say to a pasted text, and what its rollouts resolve to. `now` in milliseconds since the epoch. */
export function check(text: string, now: number): Checked {
  let wrapping: Wrapping = 'none';
  let batch: ReadBatch;
  try {
    const body = readBody(text);
    wrapping = body.wrapping;
    batch = readBatch(body);
  } catch (error) {
    if (!(error instanceof SyntaxError) && !(error instanceof BatchShapeError)) throw error;
    const told = error instanceof SyntaxError ? `The request body is not valid JSON: ${error.message}` : error.message;
    return { status: 422, wrapping, kept: 0, repeated: 0, problems: [{ place: 'body', text: told }], rollouts: [] };
  }
  const groups = byRollout(batch.events);
  const kept = groups.reduce((sum, [, events]) => sum + events.length, 0);
  return {
    status: kept === 0 && batch.rejected.length > 0 ? 422 : 200,
    wrapping,
    kept,
    repeated: batch.events.length - kept,
    problems: batch.rejected.map(({ position, detail }) => ({ place: `events[${position}]`, text: detail })),
    rollouts: groups.map(([id, events]) => ({
      start: events.find((event): event is ReadStart => event.kind === 'start') ?? null,
      events: events.length,
      result: normaliseRollout(rawOf(id, events, now)),
    })),
  };
}
