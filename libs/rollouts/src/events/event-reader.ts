import { isObject, type JsonObject, MESSAGE_TYPES, type MessageType, type RolloutMessageEvent } from '@palestra/protocol';
import { isUuid } from '@palestra/kit';
import { rewardInRange } from '../json/fields.ts';
import { clean, type TolerantJson } from '../json/tolerant-json.ts';

/**
 * Reads events of `POST /v1/rollouts` (docs/reference/ors.md#rollout-events) tolerantly: cleans and checks each one on its own. The shape
 * that clients should send is `RolloutEvent` of libs/protocol.
 */

interface ReadBase {
  rolloutId: string;
  /** Milliseconds since the epoch; timestamp of the client. */
  sentAt: number;
}
export interface ReadStart extends ReadBase {
  kind: 'start';
  runName: string;
  /** The event without `eventType`, `eventId` and `runName`, cleaned. */
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
  /** Keys outside of `RolloutMessageEvent`; null if there are none. */
  extra: JsonObject | null;
  nonfinite: boolean;
  /** The reward was NaN or infinite, so `reward` is null. */
  rewardNonfinite: boolean;
}
export interface ReadUpdate extends ReadBase {
  kind: 'update';
  rolloutInfo: JsonObject;
  nonfinite: boolean;
}
export type ReadEvent = ReadStart | ReadMessage | ReadUpdate;

/** An event that was rejected, and why. The other events of the batch are kept. */
export interface RejectedEvent {
  /** Position in the batch. */
  position: number;
  eventId: string | null;
  detail: string;
}

export interface ReadBatch {
  events: ReadEvent[];
  /** An import of old events: their age is no delay. */
  history?: true;
  rejected: RejectedEvent[];
}

/** The body is not `{"events": [...]}`. */
export class BatchShapeError extends Error {}

const MAX_RUN_NAME_CHARS = 16_384;

/** The keys of a message event; clients before `isFinished` sent `is_finished`. */
const MESSAGE_KEYS: Record<keyof RolloutMessageEvent | 'is_finished', true> = {
  eventType: true,
  eventId: true,
  timestamp: true,
  rolloutEventId: true,
  index: true,
  environment_id: true,
  type: true,
  content: true,
  contentReference: true,
  summary: true,
  name: true,
  callId: true,
  reward: true,
  isFinished: true,
  is_finished: true,
  metadata: true,
};

/** Reads a batch and rejects bad events one by one. Throws `BatchShapeError` if the body is no batch. */
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

/** Returns the event, or why it is rejected. */
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
  // The head and the run of a rollout have these three.
  const { eventType: _type, eventId: _id, runName, ...raw } = event;
  if (typeof runName !== 'string' || runName.trim() === '') return 'runName must be a non-empty string.';
  if (runName.length > MAX_RUN_NAME_CHARS) return `runName is longer than ${MAX_RUN_NAME_CHARS} characters.`;
  return { kind: 'start', rolloutId: id.toLowerCase(), sentAt, runName, raw, nonfinite };
}

function readMessage(event: JsonObject, id: string, sentAt: number, nonfinite: boolean): ReadMessage | string {
  const { rolloutEventId, index, type, reward, metadata } = event;
  if (typeof rolloutEventId !== 'string' || !isUuid(rolloutEventId)) return 'rolloutEventId must be a UUID.';
  if (typeof index !== 'number' || !Number.isInteger(index) || index < 0 || index > 2_147_483_647)
    return 'index must be an integer from 0.';
  if (!(MESSAGE_TYPES as readonly unknown[]).includes(type)) return `type must be one of ${MESSAGE_TYPES.join(', ')}.`;
  if (reward !== undefined && reward !== null && typeof reward !== 'number') return 'reward must be a number.';
  if (metadata !== undefined && metadata !== null && !isObject(metadata)) return 'metadata must be an object.';
  const outOfRange = typeof reward === 'number' && rewardInRange(reward) === null;
  const extra = Object.entries(event).filter(([key]) => !Object.hasOwn(MESSAGE_KEYS, key));
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
    nonfinite: nonfinite || outOfRange,
    // The SDK leaves out fields that are None, so a null reward in an event with a NaN was NaN.
    rewardNonfinite: outOfRange || (nonfinite && reward === null),
  };
}

/** Keeps strings; other values become their JSON text. */
function textOrJson(value: unknown): string | null {
  if (value === undefined || value === null) return null;
  return typeof value === 'string' ? value : JSON.stringify(value);
}

const idOf = (event: unknown): string | null => (isObject(event) && typeof event.eventId === 'string' ? event.eventId : null);
