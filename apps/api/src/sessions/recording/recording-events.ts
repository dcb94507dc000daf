import { type JsonObject, type JsonValue, parseJson, stringifyJson } from '@palestra/protocol';
import { parseTolerant, type ReadEvent, readBatch } from '@palestra/rollouts';
import type { Recording } from '@palestra/session';
import { v5 as uuidV5 } from 'uuid';
import type { RolloutFailure } from '../../store/ingest/ingest.sql.ts';
import type { RecordedCall, RecordedSession } from './recording.sql.ts';
import type { RecordedText } from '../text/recorded-text.sql.ts';
import { type Line, TextScript } from './text-script.ts';

/** The events of one session that have to be stored now. */
export interface SessionTranscript {
  events: ReadEvent[];
  failure: RolloutFailure | null;
  /** Where to continue: `seq` of the last call in it; -1 when nothing will follow; null when nothing is written. */
  seq: string | null;
  /** How many calls still run, or are so recent that an earlier call may still appear. */
  pending: number;
}

export const COMPLETE = '-1';
/** How long after the end of a session outcomes of its calls can still be written. */
const LATE_OUTCOME_MS = 15_000;

/**
 * The next events of a session's rollout. Every id follows from the session or the call, so writing twice changes nothing. Calls are written in
 * the ledger's order, each when it and all before it have ended. A text session also has the texts that the model read and wrote. A session that
 * never opened an episode has no events.
 */
export function transcribe(session: RecordedSession, calls: readonly RecordedCall[], text: RecordedText | null): SessionTranscript {
  const recording = JSON.parse(session.recording) as Recording;
  const nothing = { events: [], failure: null, pending: 0 };
  if (session.task === null && session.ended_at !== null) return { ...nothing, seq: COMPLETE };
  // Only an opened episode is a rollout: a refused create leads back to the reservation.
  if (session.state === 'reserved' || session.state === 'starting') return { ...nothing, seq: session.recorded_seq };
  const { settled, all } = settledCalls(session, calls);
  const events: object[] = session.recorded_seq === null ? [startEvent(session, recording)] : [];
  let ordinal = session.recorded_calls;
  const script = text === null ? null : new TextScript(text, ordinal);
  const toEvent = (line: Line) => lineEvent(session, recording, line);
  events.push(...(script?.prompt(session.created_at) ?? []).map(toEvent));
  for (const call of settled) {
    if (!call.counts) continue;
    events.push(...(script?.before(call, ordinal) ?? []).map(toEvent));
    events.push(...callEvents(session, recording, call, script?.indexOf(ordinal) ?? 2 * ordinal, script));
    ordinal += 1;
  }
  events.push(...(script?.rest(settled.at(-1)?.ended_at ?? session.created_at) ?? []).map(toEvent));
  const over = session.ended_at !== null || session.state === 'failed';
  const failureClass = over && all ? failureOf(session) : null;
  if (over && all) events.push(endEvent(session, recording, failureClass));
  return {
    events: read(events),
    failure: failureClass === null ? null : { rolloutId: recording.rolloutId, failureClass },
    pending: session.pending_calls - settled.length,
    seq: session.ended_at !== null && all ? COMPLETE : (settled.at(-1)?.seq ?? session.recorded_seq ?? '0'),
  };
}

/** The first calls that can no longer change. `all`: these are all calls. */
function settledCalls(session: RecordedSession, calls: readonly RecordedCall[]): { settled: RecordedCall[]; all: boolean } {
  const noMoreOutcomes = session.ended_ms !== null && session.ended_ms > LATE_OUTCOME_MS;
  const first = calls.findIndex((call) => (call.ended_at === null || call.fresh) && !noMoreOutcomes);
  const settled = first === -1 ? [...calls] : calls.slice(0, first);
  return { settled, all: settled.length === session.pending_calls };
}

/**
 * The failure class of an episode without a score; null when it came to its end or the client ended it. A client that closes the session after a
 * call that failed without fault of the policy gave up because of that. A call whose outcome was lost with its replica may have had a reward, so
 * the sum of the others is not the reward of the episode.
 */
function failureOf(session: RecordedSession): RolloutFailure['failureClass'] | null {
  if (session.open_calls > 0) return 'infrastructure';
  if (session.finished) return null;
  for (const failureClass of [session.failure_class, session.last_failure_class]) {
    if (failureClass === 'environment' || failureClass === 'infrastructure') return failureClass;
  }
  return null;
}

function startEvent(session: RecordedSession, recording: Recording): object {
  const task = parseJson(session.task!) as JsonObject;
  const index = recording.taskIndex ?? (task.kind === 'index' ? Number(task.index) : null);
  const spec = task.kind === 'spec' ? task.spec : null;
  return {
    eventType: 'rollout',
    eventId: recording.rolloutId,
    timestamp: Math.trunc(session.created_at),
    runName: recording.run,
    rolloutName: recording.name ?? undefined,
    environment: session.environment ?? undefined,
    variant: session.env ?? undefined,
    split: recording.split ?? (task.kind === 'index' ? task.split : undefined),
    step: recording.step ?? undefined,
    metadata: {
      ...recording.metadata,
      session_id: session.sid,
      ...(session.environment_version !== null && { environment_version: session.environment_version }),
    },
    task_spec: spec ?? undefined,
    rollout_info: index === null ? undefined : { task_index: index },
  };
}

/** A text of the model, of its prompt, or of the answer to a turn without a call. Such a reward is the trainer's, not the environment's. */
function lineEvent(session: RecordedSession, recording: Recording, { key, type, content, index, at, metadata }: Line): object {
  return {
    eventType: 'message',
    rolloutEventId: recording.rolloutId,
    eventId: uuidV5(`${session.sid}:${key}`, NAMESPACE),
    timestamp: Math.trunc(at),
    index,
    type,
    content,
    isFinished: false,
    metadata: { ...metadata, session_id: session.sid },
  };
}

function callEvents(
  session: RecordedSession,
  recording: Recording,
  call: RecordedCall,
  index: number,
  script: TextScript | null,
): object[] {
  const ids = { task_id: call.task_id, session_id: session.sid };
  const common = { eventType: 'message', rolloutEventId: recording.rolloutId, callId: call.task_id };
  const callEvent = {
    ...common,
    eventId: uuidV5(`${call.task_id}:call`, NAMESPACE),
    timestamp: Math.trunc(call.started_at),
    index,
    type: 'tool_call',
    name: call.tool,
    content: call.input,
    isFinished: false,
    metadata: ids,
  };
  // The outcome is unknown, so there is no result.
  if (call.ended_at === null) return [callEvent];
  const { content, reward } = resultOf(call);
  const shown = script?.answerTo(call) ?? null;
  const resultEvent = {
    ...common,
    eventId: uuidV5(`${call.task_id}:result`, NAMESPACE),
    timestamp: Math.trunc(call.ended_at),
    index: index + 1,
    type: 'tool_result',
    content: shown?.content ?? content,
    reward: reward ?? undefined,
    isFinished: call.finished === true,
    metadata: {
      ...ids,
      latency_ms: Math.round(call.ended_at - call.started_at),
      failure_class: call.failure_class,
      ...(shown !== null && { turn: shown.turn, step_reward: shown.step_reward, shown: shown.content !== null }),
    },
  };
  return [callEvent, resultEvent];
}

/** The result that the policy read. A failed call has no reward, which is not a reward of 0. */
function resultOf(call: RecordedCall): { content: string; reward: number | null } {
  const answer = parseAnswer(call.result);
  if (call.state === 'tool_failed') return { content: String(answer.message ?? ''), reward: null };
  if (call.state === 'refused') return { content: String(answer.detail ?? ''), reward: null };
  if (call.ok !== true) return { content: String(answer.error ?? ''), reward: null };
  const { blocks } = (answer.output ?? {}) as { blocks?: JsonValue };
  return { content: Array.isArray(blocks) ? blocks.map(textOf).join('\n') : '', reward: call.reward };
}

function textOf(block: JsonValue): string {
  const { type, text } = (block ?? {}) as { type?: string; text?: JsonValue };
  return typeof text === 'string' ? text : `[${type ?? 'block'}]`;
}

function parseAnswer(text: string | null): JsonObject {
  try {
    const value = parseJson(text ?? '{}');
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as JsonObject) : {};
  } catch {
    return {};
  }
}

const STOPS = { environment: 'env_error', infrastructure: 'infra_error' } as const;

function endEvent(session: RecordedSession, recording: Recording, failureClass: RolloutFailure['failureClass'] | null): object {
  const endedAt = session.ended_at ?? Date.now();
  const isClosed = session.state === 'closed' && !session.finished;
  const failure = session.failure === null ? null : (JSON.parse(session.failure) as { code: string; detail: string });
  return {
    eventType: 'rollout_update',
    eventId: recording.rolloutId,
    timestamp: Math.trunc(endedAt),
    rollout_info: {
      session_state: session.state,
      ...(session.ended_at === null ? {} : { duration_ms: Math.round(endedAt - session.created_at) }),
      ...(isClosed && recording.closedStop !== undefined ? { stop_reason: recording.closedStop } : {}),
      ...(failureClass === null ? {} : { stop_reason: STOPS[failureClass], failure_class: failureClass }),
      ...(failureClass === null || failure === null ? {} : { error: `${failure.code}: ${failure.detail}` }),
    },
  };
}

/** Reads the events as if they had been uploaded, with the same checks and the same replacement of what PostgreSQL cannot store. */
function read(events: object[]): ReadEvent[] {
  return readBatch(parseTolerant(stringifyJson({ events } as unknown as JsonObject))).events;
}

/** Namespace of the ids of recorded events. */
const NAMESPACE = '3f0c5a4e-8d5b-4b7e-9d0a-6c1f2e7b9a11';
