import {
  CALL_FAILURES,
  type CauseClass,
  type CauseKind,
  fingerprintOfHash,
  INTERRUPTED_STOPS,
  type JsonObject,
  type StopReason,
  type UnscoredFailure,
} from '@palestra/protocol';
import { MESSAGE_FLAGS } from '../events/message-flags.ts';
import { type MessageSkeleton, orderMessages } from '../events/message-skeleton.ts';
import { asObject, asText, memberOf } from '../json/fields.ts';
import { sha256Hex } from '../json/hash.ts';
import { cutText } from '../json/tolerant-json.ts';
import { classOfText } from './error-class.ts';
import { errorLine, normaliseError, readPart } from './error-text.ts';

/**
 * Why a rollout failed: one definition for derivation, the Failures page and the page of a rollout (docs/reference/failures.md).
 *
 * 1. An interrupted rollout: the error of its last call, else the error that the trainer reported, else its stop reason.
 * 2. Any other one: its last error that was not recovered. A later call of the same tool that succeeds recovers the error of a tool, any
 *    later call that of a parser.
 * 3. Else a limit, or no tool call.
 */

/** The place of a failure in a rollout, before its text is read. */
export interface FailurePoint {
  stop: StopReason;
  /** The rollout ended without fault of its policy, by this class. */
  interrupted: UnscoredFailure | null;
  /** The error that was not recovered, or that of the last call of an interrupted rollout. */
  error: { kind: 'call' | 'parse'; index: number; tool: string | null } | null;
  reported: string | null;
  /** Tool of a last call without a result. */
  unanswered: string | null;
  /** Index of the last message; null without messages. */
  lastIndex: number | null;
}

export interface FailureCause {
  class: CauseClass;
  kind: CauseKind;
  tool: string | null;
  /** The normalised text; for the kind `stop` the stop reason. */
  error: string;
  /** What was sent, one line; for the kind `stop` null. */
  text: string | null;
  /** Index of the message that shows it; null without messages. */
  index: number | null;
  /** 16 hexadecimal digits. Equal causes have equal fingerprints in all runs. The last two bits are the class. */
  fingerprint: string;
}

/** The message at `error.index`. */
export interface ErrorMessage {
  content: string | null;
  metadata: JsonObject | null;
}

const INTERRUPTED: ReadonlySet<StopReason> = new Set(INTERRUPTED_STOPS);
const LIMITS: ReadonlySet<StopReason> = new Set(['max_turns', 'max_tokens', 'context_length', 'no_tool_call', 'parse_error']);
const MAX_TOOL = 200;
const REPORTED = ['error', 'error_message', 'exception', 'failure_reason', 'failure_detail', 'failure_kind'];

export interface EndedRollout {
  stop: StopReason;
  failureClass: UnscoredFailure | null;
  /** Merged `rollout_info`. */
  rolloutInfo: JsonObject;
  /** Start event; null until it arrives. */
  start: JsonObject | null;
  messages: readonly MessageSkeleton[];
}

/** Null: nothing failed, as far as is known. Pure and total. */
export function failurePoint({ stop, failureClass, rolloutInfo, start, messages: unordered }: EndedRollout): FailurePoint | null {
  const messages = orderMessages(unordered);
  const calls = callsOf(messages);
  const interrupted = failureClass ?? (INTERRUPTED.has(stop) ? (stop === 'env_error' ? 'environment' : 'infrastructure') : null);
  const point = { stop, interrupted, reported: null, unanswered: null, lastIndex: messages.at(-1)?.index ?? null };
  if (interrupted === null) {
    const error = lastUnrecovered(messages, calls);
    return error === null && !LIMITS.has(stop) ? null : { ...point, error };
  }
  const last = messages.findLast(({ type, flags }) => type === 'tool_call' || type === 'tool_result' || flags & MESSAGE_FLAGS.parseError);
  return {
    ...point,
    error: last !== undefined && isError(last) ? errorAt(last, calls) : null,
    reported: reportedText(rolloutInfo, start),
    unanswered: last?.type === 'tool_call' ? toolName(last) : null,
  };
}

const isError = ({ flags }: MessageSkeleton) => (flags & (MESSAGE_FLAGS.error | MESSAGE_FLAGS.parseError)) !== 0;
const toolName = ({ name }: MessageSkeleton) => (name === null ? null : cutText(name, MAX_TOOL));

/** The latest call with the id of each result. */
function callsOf(messages: readonly MessageSkeleton[]): Map<MessageSkeleton, MessageSkeleton> {
  const byId = new Map<string, MessageSkeleton>();
  const calls = new Map<MessageSkeleton, MessageSkeleton>();
  for (const message of messages) {
    if (message.callId === null) continue;
    if (message.type === 'tool_call') byId.set(message.callId, message);
    const call = message.type === 'tool_result' ? byId.get(message.callId) : undefined;
    if (call !== undefined) calls.set(message, call);
  }
  return calls;
}

function errorAt(message: MessageSkeleton, calls: ReadonlyMap<MessageSkeleton, MessageSkeleton>): NonNullable<FailurePoint['error']> {
  const { index, flags } = message;
  if (flags & MESSAGE_FLAGS.parseError) return { kind: 'parse', index, tool: null };
  return { kind: 'call', index, tool: toolName(calls.get(message) ?? message) };
}

function lastUnrecovered(
  messages: readonly MessageSkeleton[],
  calls: ReadonlyMap<MessageSkeleton, MessageSkeleton>,
): FailurePoint['error'] {
  const worked = new Set<string | null>();
  let called = false;
  for (let at = messages.length - 1; at >= 0; at -= 1) {
    const message = messages[at]!;
    if (message.type === 'tool_call') called = true;
    if (message.flags & MESSAGE_FLAGS.parseError) {
      if (!called) return errorAt(message, calls);
    } else if (message.type === 'tool_result') {
      const { tool } = errorAt(message, calls);
      if (!isError(message)) worked.add(tool);
      else if (!worked.has(tool)) return errorAt(message, calls);
    }
  }
  return null;
}

/** The error that a trainer reported in `rollout_info`, else in the metadata of the start event; null: none. */
export function reportedText(info: JsonObject, start: JsonObject | null): string | null {
  for (const fields of [info, asObject(memberOf(start ?? {}, 'metadata'))]) {
    for (const key of REPORTED) {
      const value = memberOf(fields, key);
      const text = asText(value) ?? (Object.keys(asObject(value)).length > 0 ? JSON.stringify(value) : null);
      if (text !== null && text.trim() !== '') return readPart(text);
    }
  }
  return null;
}

/** Characters of a text that are looked at to see whether it is one word. */
const MAX_CODE = 200;

/** `message`: the one at `point.error`, if there is one. Pure, total, and linear in the text. */
export function failureCause(point: FailurePoint, message: ErrorMessage | null): FailureCause {
  const { error, interrupted, reported, stop, unanswered, lastIndex } = point;
  const text = error === null || message === null ? '' : textOfError(message);
  const said = error === null ? null : (classOf(message) ?? classOfText(text, error.tool));
  // A wrong call is not why the infrastructure ended the rollout.
  const isTheEnd = error !== null && (interrupted === null || (said !== 'policy' && (said !== null || reported === null)));
  if (isTheEnd) {
    const { kind, tool, index } = error;
    return causeOf({ kind, tool, index, class: interrupted ?? (kind === 'parse' ? 'policy' : (said ?? 'policy')), text });
  }
  const index = error?.index ?? lastIndex;
  if (reported !== null) return causeOf({ kind: 'reported', tool: null, index, class: interrupted ?? 'infrastructure', text: reported });
  return causeOf({ kind: 'stop', tool: unanswered, index, class: interrupted ?? 'policy', text: stop });
}

function causeOf({
  kind,
  tool,
  index,
  class: cause,
  text,
}: Omit<FailureCause, 'error' | 'text' | 'fingerprint'> & { text: string }): FailureCause {
  const error = kind === 'stop' ? text : normaliseError(text);
  const hash = sha256Hex(JSON.stringify([cause, kind === 'stop' ? 'stop' : 'error', tool, error])).slice(0, 16);
  const fingerprint = fingerprintOfHash(hash, cause);
  return { class: cause, kind, tool, error, text: kind === 'stop' ? null : errorLine(text), index, fingerprint };
}

/**
 * The text of a failed message: what the environment said beside the content, else the content. One word beside it, such as
 * `input_validation`, is a code, which says less than the content.
 */
export function textOfError({ content, metadata }: ErrorMessage): string {
  const error = metadata === null ? null : memberOf(metadata, 'error');
  const said = asText(error) ?? asText(memberOf(asObject(error), 'message'));
  if (said === null || said.length <= 1) return readPart(content ?? '');
  const isCode = !/\s/.test(said.slice(0, MAX_CODE));
  return readPart(isCode && content !== null && content.trim() !== '' ? content : said);
}

function classOf(message: ErrorMessage | null): CauseClass | null {
  const said = message?.metadata == null ? undefined : memberOf(message.metadata, 'failure_class');
  return CALL_FAILURES.find((one) => one === said) ?? null;
}
