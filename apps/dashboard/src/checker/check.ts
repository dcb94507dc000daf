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

/** How the pasted text was wrapped to become a request body. */
export type Wrapping = 'none' | 'event' | 'list' | 'lines';

export interface Problem {
  /** The rejected part, as the server names it: `body`, `events[3]`. */
  target: string;
  text: string;
}

export interface CheckedRollout {
  /** The start event; null if the text has only messages or updates. */
  start: ReadStart | null;
  /** Number of events that the server would accept. */
  events: number;
  normalised: NormalisedRollout;
}

export interface CheckResult {
  /** The status of the response. */
  status: 200 | 422;
  wrapping: Wrapping;
  /** Number of events that the server would accept, without repeats. */
  accepted: number;
  /** Number of messages whose id occurs earlier in the text. */
  repeated: number;
  problems: readonly Problem[];
  rollouts: readonly CheckedRollout[];
}

type Json = Readonly<Record<string, unknown>>;
const isObject = (value: unknown): value is Json => typeof value === 'object' && value !== null && !Array.isArray(value);

/** Wraps one event, a list of events, or several lines into the body that a client would send. Throws SyntaxError. */
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

const encoder = new TextEncoder();
const byteLength = (text: string | null): number => (text === null ? 0 : encoder.encode(text).length);

/** The rollout as the server would store it if these are all of its events. */
function rawOf(id: string, events: readonly ReadEvent[], now: number): RawRollout {
  const start = events.find((event): event is ReadStart => event.kind === 'start') ?? null;
  const messages = events.filter((event): event is ReadMessage => event.kind === 'message').toSorted((a, b) => a.index - b.index);
  const updates = events.filter((event) => event.kind === 'update').toSorted((a, b) => a.sentAt - b.sentAt);
  const first = (type: ReadMessage['type']) => messages.find((message) => message.type === type)?.content ?? '';
  return {
    id,
    start: start?.raw ?? null,
    rolloutInfo: Object.assign({}, ...updates.map(({ rolloutInfo }) => rolloutInfo)) as RawRollout['rolloutInfo'],
    messages: messages.map((event) => skeletonOf(event, byteLength(event.content) + byteLength(event.summary))),
    prompt: first('system_message') + first('user_message') || null,
    startedAt: start?.sentAt ?? null,
    receivedAt: now,
    lastReceivedAt: now,
    failureClass: null,
    nonfinite: start?.nonfinite === true,
  };
}

/** Groups events by rollout, in order of first mention. Of messages with the same id the first one counts, as on the server. */
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

/** Checks a pasted text like `POST /v1/rollouts` and normalises its rollouts. `now` in milliseconds since the epoch. */
export function check(text: string, now: number): CheckResult {
  let wrapping: Wrapping = 'none';
  let batch: ReadBatch;
  try {
    const body = readBody(text);
    wrapping = body.wrapping;
    batch = readBatch(body);
  } catch (error) {
    if (!(error instanceof SyntaxError) && !(error instanceof BatchShapeError)) throw error;
    const message = error instanceof SyntaxError ? `The request body is not valid JSON: ${error.message}` : error.message;
    return { status: 422, wrapping, accepted: 0, repeated: 0, problems: [{ target: 'body', text: message }], rollouts: [] };
  }
  const groups = byRollout(batch.events);
  const accepted = groups.reduce((sum, [, events]) => sum + events.length, 0);
  return {
    status: accepted === 0 && batch.rejected.length > 0 ? 422 : 200,
    wrapping,
    accepted,
    repeated: batch.events.length - accepted,
    problems: batch.rejected.map(({ position, detail }) => ({ target: `events[${position}]`, text: detail })),
    rollouts: groups.map(([id, events]) => ({
      start: events.find((event): event is ReadStart => event.kind === 'start') ?? null,
      events: events.length,
      normalised: normaliseRollout(rawOf(id, events, now)),
    })),
  };
}
