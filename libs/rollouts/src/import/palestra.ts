import { isObject, type JsonObject, MESSAGE_TYPES, type MessageType, type RolloutEvent } from '@palestra/protocol';
import { isUuid } from '@palestra/kit';
import { type DraftMessage, digestOf, eventsOf, importId, type Imported, type ImportOptions, type RolloutDraft } from './imported.ts';
import { compact, first, intOf, listOf, objectOf, rewardNumber, textOf, textOrJson, timeOf } from './json-fields.ts';
import { eachLine, RecordError } from './json-lines.ts';

export interface PalestraOptions extends Omit<ImportOptions, 'runName'> {
  /** Default: the rollouts return to their recordedName run and keep their ids. */
  runName?: string;
}

/**
 * Palestra's recordedName JSON lines: rollouts of `GET /v1/rollouts/{id}`, upload events, or batches `{"events": [...]}`. In another run the
 * rollouts get new ids, so that the originals stay.
 */
export function importPalestra(bytes: AsyncIterable<Uint8Array>, options: PalestraOptions): AsyncGenerator<Imported> {
  return eachLine(bytes, (record, { number, text }) => {
    const where = `line ${number}`;
    if (Array.isArray(record.events)) return [{ where, events: record.events.map((event: unknown) => moved(event, options.runName)) }];
    if (record.eventType !== undefined) return [{ where, events: [moved(record, options.runName)] }];
    return [{ where, events: rollout(record, ['palestra', number, digestOf(text)], options) }];
  });
}

/** An upload event, unchanged or for another run. Rollout and message ids change together. */
function moved(event: unknown, runName: string | undefined): RolloutEvent {
  if (!isObject(event) || typeof event.eventId !== 'string' || !isUuid(event.eventId)) throw new RecordError('eventId must be a UUID.');
  if (runName === undefined) return event as unknown as RolloutEvent;
  const id = (old: unknown) => importId('rollout', runName, 'palestra', String(old).toLowerCase());
  if (event.eventType === 'message') {
    const rolloutEventId = id(event.rolloutEventId);
    return {
      ...event,
      rolloutEventId,
      eventId: importId('message', rolloutEventId, event.eventId.toLowerCase()),
    } as unknown as RolloutEvent;
  }
  return { ...event, eventId: id(event.eventId), ...(event.eventType === 'rollout' ? { runName } : {}) } as unknown as RolloutEvent;
}

function rollout(record: JsonObject, key: readonly unknown[], options: PalestraOptions): RolloutEvent[] {
  if (!Array.isArray(record.messages)) throw new RecordError('The line is neither a rollout with its messages nor an upload event.');
  const recordedName = first(textOf, objectOf(record.run).name, record.run, record.run_name, record.runName);
  const runName = options.runName ?? recordedName;
  if (runName === undefined) throw new RecordError('The rollout names no run; give one.');
  const id = first(textOf, record.id, record.rollout_id);
  const draft = draftOf(record, id === undefined ? key : ['palestra', id.toLowerCase()]);
  const [start, ...messages] = eventsOf(draft, { runName, at: options.at });
  const kept = id !== undefined && isUuid(id) && runName === recordedName ? id : start.eventId;
  const views = listOf(record.messages).map(objectOf);
  return [
    { ...start, eventId: kept },
    ...messages.map((message, position) => {
      const view = views[position]!;
      const eventId = textOf(view.eventId);
      return {
        ...message,
        rolloutEventId: kept,
        ...(kept === id && eventId !== undefined && isUuid(eventId) ? { eventId } : {}),
        index: intOf(view.index) ?? position,
        isFinished: view.isFinished === true || (message.isFinished && !views.some((one) => 'isFinished' in one)),
      };
    }),
  ];
}

function draftOf(record: JsonObject, key: readonly unknown[]): RolloutDraft {
  const messages = listOf(record.messages).map((view, index) => readMessage(view, index));
  const info = objectOf(record.rollout_info);
  const step = first(intOf, record.step);
  const taskIndex = first(intOf, info.task_index, record.task_index);
  const text = (name: string) => (textOf(record[name]) === undefined ? {} : { [name]: textOf(record[name]) });
  return {
    key,
    at: first(timeOf, record.created_at, record.received_at, record.timestamp),
    start: {
      ...text('rolloutName'),
      ...text('environment'),
      ...text('variant'),
      ...text('split'),
      ...(step === undefined ? {} : { step }),
      ...(isObject(record.task_spec) ? { task_spec: record.task_spec } : {}),
      ...(isObject(record.run_info) ? { run_info: record.run_info } : {}),
      rollout_info: compact({ ...info, task_index: taskIndex }),
      metadata: compact({ ...objectOf(record.metadata), stop_reason: first(textOf, objectOf(record.metadata).stop_reason, record.stop) }),
    },
    messages,
    reward: textOf(record.failure_class) === undefined ? (rewardNumber(record.reward) ?? null) : null,
    finished: record.finished === true,
  };
}

function readMessage(value: unknown, index: number): DraftMessage {
  const view = objectOf(value);
  if (!(MESSAGE_TYPES as readonly unknown[]).includes(view.type)) throw new RecordError(`message ${index} has no type of ours.`);
  const text = (name: string) => {
    const read = textOrJson(view[name]);
    return read === undefined ? {} : { [name]: read };
  };
  const reward = rewardNumber(view.reward);
  const at = timeOf(view.timestamp);
  return {
    type: view.type as MessageType,
    ...text('content'),
    ...text('contentReference'),
    ...text('summary'),
    ...text('name'),
    ...text('callId'),
    ...(reward === undefined ? {} : { reward }),
    ...(at === undefined ? {} : { at }),
    metadata: objectOf(view.metadata),
  };
}
