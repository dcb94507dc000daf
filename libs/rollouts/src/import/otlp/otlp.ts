import { isUuid } from '@palestra/kit';
import type { JsonObject, RolloutEvent, RolloutMessageEvent, RolloutStartEvent, RolloutUpdateEvent } from '@palestra/protocol';
import { canonicalArgsHash } from '../../json/canonical-json.ts';
import { chatMessages } from '../chat-messages.ts';
import { type DraftMessage, importId } from '../imported.ts';
import { compact, first, intOf, textOf } from '../json-fields.ts';
import { conversationOf, kindOf, modelOf, rewardOf, toolOf, type ToolUse, usageOf } from './otlp-messages.ts';
import { readSpans, type Span } from './otlp-spans.ts';

export { OtlpShapeError } from './otlp-spans.ts';

/** What spans of one rollout came to. Its messages have no index yet: spans of it may be stored already. */
export interface TracedRollout {
  rolloutId: string;
  /** Of the spans that it was made from. */
  spans: number;
  start: RolloutStartEvent;
  update: RolloutUpdateEvent | null;
  messages: Omit<RolloutMessageEvent, 'index'>[];
  /** Its root span is among them, without an error: nothing more will come. */
  ended: boolean;
}

export interface ReadTraces {
  rollouts: TracedRollout[];
  problems: string[];
  /** Spans that say nothing of a conversation (HTTP requests, queries); they are not kept. */
  ignored: number;
}

/**
 * Traces as rollouts. A rollout is what `palestra.rollout` names, else a conversation (`gen_ai.conversation.id`), else an attempt of
 * agent-lightning, else a trace. Every model call repeats the conversation so far: a message has the same id whichever span shows
 * it, so it is stored once, with the time at which it was first seen. Throws `OtlpShapeError`.
 *
 * `named`: what earlier requests said of their traces, and this one adds to. Exporters send what ended in the last seconds: the span
 * of the whole episode comes after those of its model calls, and need not repeat what they were named by. What it alone is named by comes
 * too late: the rollout stays where its first spans were put.
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

/** What is stored of a rollout: its largest index (-1 for none), and which of the asked messages are there. */
export interface StoredMessages {
  maxIndex: number;
  eventIds: ReadonlySet<string>;
}

/** The events of a rollout to be stored: messages that are there are left out, new ones are put behind them in the order of time. */
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

/** Rollouts of traces by trace id; those that only the trace names when spans of them were kept. */
export type NamedTraces = Map<string, RolloutKey>;

interface RolloutKey {
  id: string;
  /** What named it. A conversation goes on in other traces: the end of one is not its own. */
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

/** One key a trace: attributes that name the rollout need not stand on every span. */
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

/** Null when no span of it says anything. `spans` in the order of their starts. */
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
    // A reward that was given in the millisecond of an answer is for the answer, whichever span began first.
    messages: [...messages.values()].toSorted((a, b) => a.timestamp - b.timestamp || Number(isNote(a)) - Number(isNote(b))),
    ended: root !== undefined && root.error === null && !isConversation,
  };
}

const isNote = ({ metadata }: TracedRollout['messages'][number]): boolean => metadata.annotation === true;

/** A message, and what makes it the same message in every span that shows it. */
type Keyed = DraftMessage & { id: readonly unknown[] };

function eventOf(
  { at, metadata, ...message }: DraftMessage,
  place: { eventId: string; rolloutId: string; at: number },
): TracedRollout['messages'][number] {
  return {
    eventType: 'message',
    eventId: place.eventId,
    rolloutEventId: place.rolloutId,
    timestamp: at ?? place.at,
    ...message,
    isFinished: false,
    metadata: metadata ?? {},
  };
}

/** In the order of the spans. Those of tools come last to be read: which calls they answer is told by the models. */
function messagesOfSpans(spans: readonly Span[], hasModel: boolean): { span: Span; said: Keyed[] }[] {
  const read = spans.map((span) => {
    const kind = kindOf(span);
    if (kind === 'tool') return { span, said: [] as Keyed[], tool: toolOf(span) };
    // What an agent was asked and answered is told by its model calls, if there are any.
    return { span, said: kind === 'agent' && hasModel ? [] : modelMessages(span, kind === 'model'), tool: null };
  });
  const asked = new AskedCalls(
    read.flatMap(({ said }) => said),
    new Set(read.flatMap(({ tool }) => tool?.callId ?? [])),
  );
  return read.map(({ span, said, tool }) => {
    if (tool === null) return { span, said };
    return { span, said: toolMessages(span, { ...tool, callId: tool.callId ?? asked.take(tool, span.startedAt) }) };
  });
}

/** Calls that models asked for, for spans of tools that do not say which of them they are: the same tool with the same arguments. */
class AskedCalls {
  readonly #open = new Map<string, { callId: string; at: number }[]>();

  /** `taken`: ids that spans of tools name themselves. */
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

  /** The newest that was asked for by then; else one that a later call repeats: the span of the model that asked came in another request. */
  take({ name, input }: ToolUse, startedAt: number): string | undefined {
    const open = this.#open.get(this.#keyOf(name, input)) ?? [];
    const newest = open.findLast(({ at }) => at <= startedAt)?.at;
    const place = newest === undefined ? 0 : open.findIndex(({ at }) => at === newest);
    return open.splice(place, 1)[0]?.callId;
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
  // A span that only gives a reward is a message of its own, where it belongs in time.
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
  const given = chatMessages(input);
  const all = chatMessages([...input, ...output]);
  const said = all.slice(given.length);
  const drafts: DraftMessage[] = [
    ...given.map((message) => ({ ...message, at: span.startedAt })),
    ...said.map((message) => ({ ...message, at: span.endedAt })),
  ];
  const keyed = withIds(drafts);
  const usage = usageOf(span);
  if (said.length > 0) {
    const last = keyed.at(-1)!;
    return [...keyed.slice(0, -1), { ...last, metadata: { ...last.metadata, ...usage } }];
  }
  if (!isModel) return keyed;
  // The call was made; what it said was not recorded, or it failed.
  const failure = span.error === null ? { content_not_captured: true } : { is_error: true, error: span.error };
  return [
    ...keyed,
    { id: ['silent', span.spanId], type: 'assistant_message', content: '', at: span.endedAt, metadata: { ...usage, ...failure } },
  ];
}

/** Equal messages of a conversation are told apart by their order; calls and results by the call's id. */
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

/** Attributes of ours, without their prefix: those of the resource, then those of the spans. */
function ownAttributes(spans: readonly Span[]): JsonObject {
  const all = [...spans.map(({ resource }) => resource), ...spans.map(({ attributes }) => attributes)];
  const entries = all.flatMap((attributes) => Object.entries(attributes).filter(([key]) => key.startsWith('palestra.')));
  return Object.fromEntries(entries.map(([key, value]) => [key.slice('palestra.'.length), value]));
}

/** Attributes of ours that become something else than metadata. */
const NAMED = new Set(['run', 'rollout', 'reward', 'environment', 'split', 'variant', 'step', 'task_index']);

function startOf(rolloutId: string, spans: readonly Span[], root: Span | undefined): RolloutStartEvent {
  const own = ownAttributes(spans);
  const span = root ?? spans[0]!;
  const find = (key: string) => first(textOf, ...spans.map(({ attributes }) => attributes[key]));
  const name = find('gen_ai.agent.name') ?? (root && textOf(root.name));
  const model = first(textOf, ...spans.map(({ attributes }) => modelOf(attributes)));
  const text = (key: string) => (textOf(own[key]) === undefined ? {} : { [key]: textOf(own[key]) });
  return {
    eventType: 'rollout',
    eventId: rolloutId,
    timestamp: span.startedAt,
    runName: textOf(own.run) ?? textOf(span.resource['service.name']) ?? 'otlp',
    ...(name === undefined ? {} : { rolloutName: name }),
    ...text('environment'),
    ...text('split'),
    ...text('variant'),
    ...(model === undefined ? {} : { run_info: { model_name: model } }),
    metadata: compact({
      ...Object.fromEntries(Object.entries(own).filter(([key]) => !NAMED.has(key))),
      trace_id: span.traceId,
      conversation_id: find('gen_ai.conversation.id'),
      agl_rollout_id: textOf(span.resource['agentlightning.rollout_id']),
      imported_from: 'otlp',
    }),
  };
}

/** What may be known only by a later span. */
function updateOf(rolloutId: string, spans: readonly Span[], root: Span | undefined): RolloutUpdateEvent | null {
  const own = ownAttributes(spans);
  const info = compact({
    ...Object.fromEntries(Object.entries(own).filter(([key]) => key === 'rollout' || !NAMED.has(key))),
    current_step: intOf(own.step),
    task_index: intOf(own.task_index),
    duration_ms: root === undefined ? undefined : root.endedAt - root.startedAt,
    ...(root?.error == null ? {} : { stop_reason: 'infra_error', error: root.error }),
  });
  if (Object.keys(info).length === 0) return null;
  return { eventType: 'rollout_update', eventId: rolloutId, timestamp: (root ?? spans.at(-1)!).endedAt, rollout_info: info };
}
