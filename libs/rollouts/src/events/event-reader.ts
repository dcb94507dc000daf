import { isObject, type JsonObject, MESSAGE_TYPES, type MessageType } from '@palestra/protocol';
import { isUuid } from '@palestra/kit';
import { clean, type TolerantJson } from '../json/tolerant-json.ts';

/** Events of `POST /v1/rollouts` as they are stored (openreward-wire.md section 4), cleaned and checked one by one. */

interface ReadBase {
  rolloutId: string;
  /** Milliseconds since the epoch, as the client stamped it. */
  sentAt: number;
}
export interface ReadStart extends ReadBase {
  kind: 'start';
  runName: string;
  /** The whole event, cleaned. */
  raw: JsonObject;
  nonfinite: boolean;
}
export interface ReadMessage extends ReadBase {
  kind: 'message';
  eventId: string;
  index: number;
  type: MessageType;
  content: string | null;
  contentReference: string | null;
  summary: string | null;
  name: string | null;
  callId: string | null;
  reward: number | null;
  isFinished: boolean;
  metadata: JsonObject;
  /** Keys that the contract does not know; null without any. */
  extra: JsonObject | null;
  nonfinite: boolean;
  /** The reward was NaN or infinite; `reward` is null. */
  rewardNonfinite: boolean;
}
export interface ReadUpdate extends ReadBase {
  kind: 'update';
  rolloutInfo: JsonObject;
  nonfinite: boolean;
}
export type ReadEvent = ReadStart | ReadMessage | ReadUpdate;

/** An event that was not kept, and why; its neighbours are. */
export interface RejectedEvent {
  /** Position in the batch. */
  position: number;
  eventId: string | null;
  detail: string;
}

export interface ReadBatch {
  events: ReadEvent[];
  /** It was recorded before, elsewhere: times of long ago are no delay (an import). */
  history?: true;
  rejected: RejectedEvent[];
}

/** The body is no `{"events": [...]}`. */
export class BatchShapeError extends Error {}

const MAX_RUN_NAME_CHARS = 16_384;

const MESSAGE_KEYS = new Set(
  'eventType eventId timestamp rolloutEventId index environment_id type content contentReference summary name callId reward isFinished is_finished metadata'.split(
    ' ',
  ),
);

/** Reads a batch. Throws `BatchShapeError` when it is none; a bad event is rejected by itself. */
export function readBatch({ value, dirty }: TolerantJson): ReadBatch {
  const events = (value as { events?: unknown } | null)?.events;
  if (!Array.isArray(events)) throw new BatchShapeError('The body must be an object with a list "events".');
  const isHistory = (value as { history?: unknown }).history === true;
  const batch: ReadBatch = { events: [], rejected: [], ...(isHistory ? { history: true } : {}) };
  events.forEach((event: unknown, position) => {
    const cleaned = dirty ? clean(event) : { value: event, nonfinite: false };
    const read = readEvent(cleaned.value, cleaned.nonfinite);
    if (typeof read === 'string') batch.rejected.push({ position, eventId: idOf(cleaned.value), detail: read });
    else batch.events.push(read);
  });
  return batch;
}

/** The event, or why it cannot be kept. */
function readEvent(event: unknown, nonfinite: boolean): ReadEvent | string {
  if (!isObject(event)) return 'An event must be an object.';
  if (typeof event.eventId !== 'string' || !isUuid(event.eventId)) return 'eventId must be a UUID.';
  const timestamp = event.timestamp ?? Date.now();
  if (typeof timestamp !== 'number' || Math.abs(timestamp) > 8.64e15) return 'timestamp must be milliseconds since the epoch.';
  const sentAt = Math.trunc(timestamp);
  switch (event.eventType) {
    case 'rollout':
      return readStart(event, event.eventId, sentAt, nonfinite);
    case 'message':
      return readMessage(event, event.eventId, sentAt, nonfinite);
    case 'rollout_update':
      if (!isObject(event.rollout_info)) return 'rollout_info must be an object.';
      return { kind: 'update', rolloutId: event.eventId.toLowerCase(), sentAt, rolloutInfo: event.rollout_info, nonfinite };
    default:
      return 'eventType must be "rollout", "message" or "rollout_update".';
  }
}

function readStart(event: JsonObject, id: string, sentAt: number, nonfinite: boolean): ReadStart | string {
  const { runName } = event;
  if (typeof runName !== 'string' || runName.trim() === '') return 'runName must be a non-empty string.';
  if (runName.length > MAX_RUN_NAME_CHARS) return `runName is longer than ${MAX_RUN_NAME_CHARS} characters.`;
  return { kind: 'start', rolloutId: id.toLowerCase(), sentAt, runName, raw: event, nonfinite };
}

function readMessage(event: JsonObject, id: string, sentAt: number, nonfinite: boolean): ReadMessage | string {
  const { rolloutEventId, index, type, reward, metadata } = event;
  if (typeof rolloutEventId !== 'string' || !isUuid(rolloutEventId)) return 'rolloutEventId must be a UUID.';
  if (typeof index !== 'number' || !Number.isInteger(index) || index < 0 || index > 2_147_483_647)
    return 'index must be an integer from 0.';
  if (!(MESSAGE_TYPES as readonly unknown[]).includes(type)) return `type must be one of ${MESSAGE_TYPES.join(', ')}.`;
  if (reward !== undefined && reward !== null && typeof reward !== 'number') return 'reward must be a number.';
  if (metadata !== undefined && metadata !== null && !isObject(metadata)) return 'metadata must be an object.';
  const extra = Object.entries(event).filter(([key]) => !MESSAGE_KEYS.has(key));
  return {
    kind: 'message',
    eventId: id.toLowerCase(),
    rolloutId: rolloutEventId.toLowerCase(),
    sentAt,
    index,
    type: type as MessageType,
    content: textOrJson(event.content),
    contentReference: textOrJson(event.contentReference),
    summary: textOrJson(event.summary),
    name: textOrJson(event.name),
    callId: textOrJson(event.callId),
    reward: (reward as number | null | undefined) ?? null,
    isFinished: (event.isFinished ?? event.is_finished) === true,
    metadata: metadata ?? {},
    extra: extra.length > 0 ? Object.fromEntries(extra) : null,
    nonfinite,
    // The SDK leaves out what is None: a null in an event with a NaN was one.
    rewardNonfinite: nonfinite && reward === null,
  };
}

/** Strings stay as they are; anything else that a client put there is kept as its JSON text. */
function textOrJson(value: unknown): string | null {
  if (value === undefined || value === null) return null;
  return typeof value === 'string' ? value : JSON.stringify(value);
}

const idOf = (event: unknown): string | null => (isObject(event) && typeof event.eventId === 'string' ? event.eventId : null);
