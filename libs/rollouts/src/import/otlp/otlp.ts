import { isUuid } from '@palestra/kit';
import type { JsonObject, RolloutEvent, RolloutMessageEvent, RolloutStartEvent, RolloutUpdateEvent } from '@palestra/protocol';
import { canonicalArgsHash } from '../../json/canonical-json.ts';
import { chatMessages } from '../chat-messages.ts';
import { type DraftMessage, importId } from '../imported.ts';
import { compact, first, intOf, textOf } from '../json-fields.ts';
import { conversationOf, kindOf, modelOf, rewardOf, toolOf, type ToolUse, usageOf } from './otlp-messages.ts';
import { readSpans, type Span } from './otlp-spans.ts';

export { OtlpShapeError } from './otlp-spans.ts';

/** The part of a rollout from the spans of one request. Its messages have no index yet, because earlier spans may be stored. */
export interface TracedRollout {
  rolloutId: string;
  /** Trace ids of its spans. */
  spans: number;
  start: RolloutStartEvent;
  update: RolloutUpdateEvent | null;
  messages: Omit<RolloutMessageEvent, 'index'>[];
  /** Its root span is included and has no error, so the rollout is complete. */
  ended: boolean;
}

export interface ReadTraces {
  rollouts: TracedRollout[];
  problems: string[];
  /** Spans without a conversation (HTTP requests, database queries); they are not kept. */
  ignored: number;
}

/**
 * Converts traces to rollouts. A rollout is identified by `palestra.rollout`, else by a conversation (`gen_ai.conversation.id`), else by
 * an attempt of agent-lightning, else by the trace. Every model call repeats the conversation so far: a message has the same id in every
 * span that shows it, so it is stored once, with its first time. Throws `OtlpShapeError`.
 *
 * `named`: the identities of traces from earlier requests; this request adds to it. Exporters send the spans that ended in the last
 * seconds, so the span of the whole episode comes after those of its model calls. An identity that only this last span has comes too
 * late: the rollout keeps the identity of its first spans.
 */
export function readTraces(request: unknown, named: NamedTraces = new Map()): ReadTraces {
  const { spans, problems } = readSpans(request);
  const keys = rolloutKeys(spans, named);
  const groups = groupBy(spans, (span) => keys.get(span.traceId)!.id);
  const rollouts = [...groups].flatMap(([rolloutId, group]) => {
    const sorted = group.toSorted((a, b) => a.startedAt - b.startedAt || a.endedAt - b.endedAt);
    const key = keys.get(sorted[0]!.traceId)!;
    const rollout = rolloutOf(rolloutId, sorted, key.kind === 'conversation');
    if (rollout !== null && key.kind === 'trace') named.set(sorted[0]!.traceId, key);
    return rollout ?? [];
  });
  const kept = rollouts.reduce((sum, rollout) => sum + rollout.spans, 0);
  return { rollouts, problems, ignored: spans.length - kept };
}

/** The stored part of a rollout: its largest index (-1 without messages), and which of the inputMessages messages exist. */
export interface StoredMessages {
  maxIndex: number;
  eventIds: ReadonlySet<string>;
}

/** The new events of a rollout: skips stored messages and appends new ones in the order of time. */
export function eventsOfTrace(rollout: TracedRollout, stored: StoredMessages = { maxIndex: -1, eventIds: new Set() }): RolloutEvent[] {
  const fresh = rollout.messages.filter(({ eventId }) => !stored.eventIds.has(eventId));
  const last = fresh.length - 1;
  const messages = fresh.map((message, position): RolloutMessageEvent => ({
    ...message,
    index: stored.maxIndex + 1 + position,
    isFinished: rollout.ended && position === last,
  }));
  return [rollout.start, ...(rollout.update ? [rollout.update] : []), ...messages];
}

/** Identities of rollouts by trace id; those identified by the trace alone when spans of them were kept. */
export type NamedTraces = Map<string, RolloutKey>;

interface RolloutKey {
  id: string;
  /** What identified it. A conversation may continue in other traces, so the end of a trace is not its end. */
  kind: 'rollout' | 'conversation' | 'attempt' | 'trace';
}

/** `Map.groupBy`, which Node 20 lacks. */
function groupBy<T>(items: readonly T[], keyOf: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const item of items) {
    const key = keyOf(item);
    const group = groups.get(key);
    if (group) group.push(item);
    else groups.set(key, [item]);
  }
  return groups;
}

/** One key per trace, because the attributes that identify the rollout may be on one span only. */
function rolloutKeys(spans: readonly Span[], named: NamedTraces): Map<string, RolloutKey> {
  const keys = new Map<string, RolloutKey>();
  for (const [traceId, trace] of groupBy(spans, (span) => span.traceId)) {
    const [name, earlier] = [nameOf(trace), named.get(traceId)];
    const key = name !== null && (earlier === undefined || earlier.kind === name.kind) ? name : earlier;
    if (key !== undefined) named.set(traceId, key);
    keys.set(traceId, key ?? { id: importId('otlp', 'trace', traceId), kind: 'trace' });
  }
  return keys;
}

function nameOf(trace: readonly Span[]): RolloutKey | null {
  const find = (key: string) => first(textOf, ...trace.flatMap(({ attributes, resource }) => [attributes[key], resource[key]]));
  const named = find('palestra.rollout');
  if (named !== undefined) return { id: isUuid(named) ? named.toLowerCase() : importId('otlp', 'named', named), kind: 'rollout' };
  const conversation = find('gen_ai.conversation.id');
  if (conversation !== undefined) return { id: importId('otlp', 'conversation', conversation), kind: 'conversation' };
  const attempt = find('agentlightning.rollout_id');
  if (attempt === undefined) return null;
  return { id: importId('otlp', 'attempt', attempt, find('agentlightning.attempt_id') ?? ''), kind: 'attempt' };
}

/** null if no span has a conversation. `spans` are in the order of their starts. */
function rolloutOf(rolloutId: string, spans: readonly Span[], isConversation: boolean): TracedRollout | null {
  const kinds = new Map(spans.map((span) => [span, kindOf(span)]));
  const hasModel = spans.some((span) => kinds.get(span) === 'model');
  const telling = spans.filter((span) => kinds.get(span) !== 'other' || rewardOf(span) !== null || conversationOf(span).output.length > 0);
  if (telling.length === 0) return null;
  const messages = new Map<string, TracedRollout['messages'][number]>();
  for (const { span, said } of messagesOfSpans(telling, hasModel)) {
    for (const { id, ...draft } of withReward(span, said)) {
      const eventId = importId('otlp-message', rolloutId, ...id);
      if (!messages.has(eventId)) messages.set(eventId, eventOf(draft, { eventId, rolloutId, at: span.startedAt }));
    }
  }
  const root = spans.find(({ parentId }) => parentId === null);
  return {
    rolloutId,
    spans: telling.length,
    start: startOf(rolloutId, telling, root),
    update: updateOf(rolloutId, telling, root),
    // A reward in the same millisecond as an answer belongs to the answer, whichever span started first.
    messages: [...messages.values()].toSorted((a, b) => a.timestamp - b.timestamp || Number(isNote(a)) - Number(isNote(b))),
    ended: root !== undefined && root.error === null && !isConversation,
  };
}

const isNote = ({ metadata }: TracedRollout['messages'][number]): boolean => metadata.annotation === true;

/** A message, and the key that identifies it in every span that shows it. */
type Keyed = DraftMessage & { id: readonly unknown[] };

function eventOf(
  { at, metadata, ...message }: DraftMessage,
  ids: { eventId: string; rolloutId: string; at: number },
): TracedRollout['messages'][number] {
  return {
    eventType: 'message',
    eventId: ids.eventId,
    rolloutEventId: ids.rolloutId,
    timestamp: at ?? ids.at,
    ...message,
    isFinished: false,
    metadata: metadata ?? {},
  };
}

/** The messages in the order of the spans. Spans of tools are read last, because the models tell which calls they answer. */
function messagesOfSpans(spans: readonly Span[], hasModel: boolean): { span: Span; said: Keyed[] }[] {
  const read = spans.map((span) => {
    const kind = kindOf(span);
    if (kind === 'tool') return { span, said: [] as Keyed[], tool: toolOf(span) };
    // The model calls of an agent show its input and output. Its attributes attributes count only without model calls.
    return { span, said: kind === 'agent' && hasModel ? [] : modelMessages(span, kind === 'model'), tool: null };
  });
  const openCalls = new OpenCalls(
    read.flatMap(({ said }) => said),
    new Set(read.flatMap(({ tool }) => tool?.callId ?? [])),
  );
  return read.map(({ span, said, tool }) => {
    if (tool === null) return { span, said };
    return { span, said: toolMessages(span, { ...tool, callId: tool.callId ?? openCalls.take(tool, span.startedAt) }) };
  });
}

/** Tool calls of models, to find the call of a tool span that does not name one: the same tool with the same arguments. */
class OpenCalls {
  readonly #open = new Map<string, { callId: string; at: number }[]>();

  /** `taken`: call ids that spans of tools name. */
  constructor(messages: readonly Keyed[], taken: ReadonlySet<string>) {
    const known = new Set(taken);
    for (const { type, name, callId, content, at } of messages) {
      if (type !== 'tool_call' || callId === undefined || known.has(callId)) continue;
      known.add(callId);
      const key = this.#keyOf(name, content);
      const open = this.#open.get(key) ?? [];
      this.#open.set(key, open);
      open.push({ callId, at: at ?? 0 });
    }
  }

  /** The latest such call before `at`; else a later repetition of it, because the span of the model may be in another request. */
  take({ name, input }: ToolUse, startedAt: number): string | undefined {
    const open = this.#open.get(this.#keyOf(name, input)) ?? [];
    const newest = open.findLast(({ at }) => at <= startedAt)?.at;
    const position = newest === undefined ? 0 : open.findIndex(({ at }) => at === newest);
    return open.splice(position, 1)[0]?.callId;
  }

  #keyOf(name: string | undefined, args: string | undefined): string {
    return `${canonicalArgsHash(args ?? null)} ${name ?? ''}`;
  }
}

function withReward(span: Span, said: Keyed[]): Keyed[] {
  const reward = rewardOf(span);
  if (reward === null) return said;
  const { value, parts } = reward;
  const last = said.at(-1);
  if (last !== undefined && last.at === span.endedAt) {
    return [...said.slice(0, -1), { ...last, reward: value, metadata: compact({ ...last.metadata, rewards: parts }) }];
  }
  // A span with only a reward becomes a message at its time.
  const note: Keyed = {
    id: ['reward', span.spanId],
    type: 'system_message',
    content: `reward ${value}`,
    reward: value,
    at: span.endedAt,
    metadata: compact({ annotation: true, span: span.name, span_id: span.spanId, rewards: parts }),
  };
  return [...said, note];
}

function modelMessages(span: Span, isModel: boolean): Keyed[] {
  const { input, output } = conversationOf(span);
  const inputMessages = chatMessages(input);
  const all = chatMessages([...input, ...output]);
  const said = all.slice(inputMessages.length);
  const drafts: DraftMessage[] = [
    ...inputMessages.map((message) => ({ ...message, at: span.startedAt })),
    ...said.map((message) => ({ ...message, at: span.endedAt })),
  ];
  const keyed = withIds(drafts);
  const usage = usageOf(span);
  if (said.length > 0) {
    const last = keyed.at(-1)!;
    return [...keyed.slice(0, -1), { ...last, metadata: { ...last.metadata, ...usage } }];
  }
  if (!isModel) return keyed;
  // The call ran, but its output was not recorded, or it failed.
  const failure = span.error === null ? { content_not_captured: true } : { is_error: true, error: span.error };
  return [
    ...keyed,
    { id: ['silent', span.spanId], type: 'assistant_message', content: '', at: span.endedAt, metadata: { ...usage, ...failure } },
  ];
}

/** Equal messages of a conversation are distinguished by their order, calls and results by the id of the call. */
function withIds(messages: readonly DraftMessage[]): Keyed[] {
  const seen = new Map<string, number>();
  return messages.map((message) => {
    const { type, callId, name, content } = message;
    const what = callId === undefined ? [type, name ?? null, content ?? null] : [type, callId];
    const key = JSON.stringify(what);
    const nth = seen.get(key) ?? 0;
    seen.set(key, nth + 1);
    return { ...message, id: [...what, nth] };
  });
}

function toolMessages(span: Span, { name, callId, input, output }: ToolUse): Keyed[] {
  const idOf = (type: string) => (callId === undefined ? [type, span.spanId] : [type, callId, 0]);
  const join = callId ?? span.spanId;
  const call: Keyed = {
    id: idOf('tool_call'),
    type: 'tool_call',
    name,
    callId: join,
    content: input === undefined || input.trim() === '' ? '{}' : input,
    at: span.startedAt,
    metadata: { span_id: span.spanId },
  };
  const content = output ?? span.error ?? undefined;
  if (content === undefined) return [call];
  const failure = span.error === null ? {} : { is_error: true, error: span.error };
  const metadata = { span_id: span.spanId, duration_ms: span.endedAt - span.startedAt, ...failure };
  return [call, { id: idOf('tool_result'), type: 'tool_result', name, callId: join, content, at: span.endedAt, metadata }];
}

/** Attributes with the prefix of Palestra, without it: those of the resource, then those of the spans. */
function palestraAttributes(spans: readonly Span[]): JsonObject {
  const all = [...spans.map(({ resource }) => resource), ...spans.map(({ attributes }) => attributes)];
  const entries = all.flatMap((attributes) => Object.entries(attributes).filter(([key]) => key.startsWith('palestra.')));
  return Object.fromEntries(entries.map(([key, value]) => [key.slice('palestra.'.length), value]));
}

/** Attributes of Palestra that do not become metadata. */
const NAMED = new Set(['run', 'rollout', 'reward', 'environment', 'split', 'variant', 'step', 'task_index']);

function startOf(rolloutId: string, spans: readonly Span[], root: Span | undefined): RolloutStartEvent {
  const attributes = palestraAttributes(spans);
  const span = root ?? spans[0]!;
  const find = (key: string) => first(textOf, ...spans.map(({ attributes }) => attributes[key]));
  const name = find('gen_ai.agent.name') ?? (root && textOf(root.name));
  const model = first(textOf, ...spans.map(({ attributes }) => modelOf(attributes)));
  const text = (key: string) => (textOf(attributes[key]) === undefined ? {} : { [key]: textOf(attributes[key]) });
  return {
    eventType: 'rollout',
    eventId: rolloutId,
    timestamp: span.startedAt,
    runName: textOf(attributes.run) ?? textOf(span.resource['service.name']) ?? 'otlp',
    ...(name === undefined ? {} : { rolloutName: name }),
    ...text('environment'),
    ...text('split'),
    ...text('variant'),
    ...(model === undefined ? {} : { run_info: { model_name: model } }),
    metadata: compact({
      ...Object.fromEntries(Object.entries(attributes).filter(([key]) => !NAMED.has(key))),
      trace_id: span.traceId,
      conversation_id: find('gen_ai.conversation.id'),
      agl_rollout_id: textOf(span.resource['agentlightning.rollout_id']),
      imported_from: 'otlp',
    }),
  };
}

/** Fields that a later span may add. */
function updateOf(rolloutId: string, spans: readonly Span[], root: Span | undefined): RolloutUpdateEvent | null {
  const attributes = palestraAttributes(spans);
  const info = compact({
    ...Object.fromEntries(Object.entries(attributes).filter(([key]) => key === 'rollout' || !NAMED.has(key))),
    current_step: intOf(attributes.step),
    task_index: intOf(attributes.task_index),
    duration_ms: root === undefined ? undefined : root.endedAt - root.startedAt,
    ...(root?.error == null ? {} : { stop_reason: 'infra_error', error: root.error }),
  });
  if (Object.keys(info).length === 0) return null;
  return { eventType: 'rollout_update', eventId: rolloutId, timestamp: (root ?? spans.at(-1)!).endedAt, rollout_info: info };
}
