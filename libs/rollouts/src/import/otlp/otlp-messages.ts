import { isObject, type JsonObject } from '@palestra/protocol';
import { compact, first, listOf, numberOf, objectOf, textOf, textOrJson, unquoted } from '../json-fields.ts';
import type { Span } from './otlp-spans.ts';

/**
 * The conversation of a span as chat messages: the GenAI semantic conventions of OpenTelemetry (message attributes since 1.37, message
 * events before), the flat `gen_ai.prompt.0.role` of OpenLLMetry, which agent-lightning records, and OpenInference.
 */
export type SpanKind = 'model' | 'tool' | 'agent' | 'other';

const MODEL_OPERATIONS = new Set(['chat', 'text_completion', 'generate_content']);
const AGENT_OPERATIONS = new Set(['invoke_agent', 'create_agent', 'invoke_workflow']);

export function kindOf({ attributes }: Span): SpanKind {
  const operation = textOf(attributes['gen_ai.operation.name']);
  const kind = first(textOf, attributes['openinference.span.kind'], attributes['traceloop.span.kind'])?.toLowerCase();
  if (operation === 'execute_tool' || kind === 'tool') return 'tool';
  if (operation !== undefined && AGENT_OPERATIONS.has(operation)) return 'agent';
  if (operation !== undefined && MODEL_OPERATIONS.has(operation)) return 'model';
  if (kind === 'llm') return 'model';
  if (kind === 'agent') return 'agent';
  // Instrumentations older than `gen_ai.operation.name` set only a model.
  const isModel =
    operation === undefined &&
    (textOf(attributes['gen_ai.request.model']) !== undefined || textOf(attributes['llm.request.type']) !== undefined);
  return isModel ? 'model' : 'other';
}

export interface Conversation {
  /** Input of the model: the whole conversation so far. */
  input: JsonObject[];
  output: JsonObject[];
}

export function conversationOf(span: Span): Conversation {
  const attributes = withDetails(span);
  for (const read of [fromAttributes, fromFlat, fromOpenInference]) {
    const found = read(attributes);
    if (found.input.length + found.output.length > 0) return found;
  }
  return fromEvents(span);
}

/** The newest form can also be an event of the span. */
function withDetails({ attributes, events }: Span): JsonObject {
  const details = events.filter(({ name }) => name === 'gen_ai.client.inference.operation.details').map((event) => event.attributes);
  return Object.assign({}, ...details, attributes) as JsonObject;
}

function fromAttributes(attributes: JsonObject): Conversation {
  const list = (key: string) => listOf(unquoted(attributes[key])).filter(isObject);
  const system = list('gen_ai.system_instructions');
  return {
    input: [
      ...(system.length > 0 ? fromParts({ role: 'system', parts: system }) : []),
      ...list('gen_ai.input.messages').flatMap(fromParts),
    ],
    output: list('gen_ai.output.messages').flatMap((message) => fromParts({ role: 'assistant', ...message })),
  };
}

/** Converts `{role, parts}` to chat messages. Results of tools become separate messages. */
function fromParts({ role, parts, finish_reason: finish, ...rest }: JsonObject): JsonObject[] {
  const content: unknown[] = [];
  const calls: JsonObject[] = [];
  const results: JsonObject[] = [];
  for (const part of listOf(parts).filter(isObject)) {
    if (part.type === 'tool_call') calls.push({ id: part.id, function: { name: part.name, arguments: part.arguments } });
    else if (part.type === 'tool_call_response') {
      results.push({ role: 'tool', tool_call_id: part.id, content: textOrJson(part.response ?? part.result) ?? '' });
    } else content.push(chatPart(part));
  }
  const hasMessage = content.length > 0 || calls.length > 0 || results.length === 0;
  // A message without parts, of an older draft, has a content.
  const body = parts === undefined ? rest.content : content;
  return [...(hasMessage ? [compact({ role, content: body, tool_calls: calls, finish_reason: finish, name: rest.name })] : []), ...results];
}

function chatPart(part: JsonObject): JsonObject {
  if (part.type === 'text') return { type: 'text', text: part.content ?? part.text };
  if (part.type === 'reasoning') return { type: 'reasoning', text: part.content ?? part.text };
  const isImage = part.modality === 'image' || (textOf(part.mime_type) ?? '').startsWith('image/');
  if (part.type === 'blob' && isImage) return { type: 'image', mime_type: part.mime_type, data: part.content ?? part.data };
  return part.type === 'uri' && isImage ? { type: 'image_url', image_url: part.uri } : part;
}

function fromFlat(attributes: JsonObject): Conversation {
  const read = (prefix: string, role: string) =>
    listOf(unflatten(attributes, prefix)).map((message) => {
      const { content, ...rest } = objectOf(message);
      return compact({ role, ...rest, content: unquotedParts(content) });
    });
  return { input: read('gen_ai.prompt', 'user'), output: read('gen_ai.completion', 'assistant') };
}

function fromOpenInference(attributes: JsonObject): Conversation {
  const read = (prefix: string, role: string) =>
    listOf(unflatten(attributes, prefix)).map((item) => {
      const { contents, tool_calls: calls, content, ...rest } = objectOf(objectOf(item).message);
      const parts = listOf(contents).map((part) => {
        const { image, ...inner } = objectOf(objectOf(part).message_content);
        return image === undefined ? inner : { type: 'image_url', image_url: objectOf(objectOf(image).image).url };
      });
      return compact({ role, ...rest, content: content ?? parts, tool_calls: listOf(calls).map((call) => objectOf(call).tool_call) });
    });
  return { input: read('llm.input_messages', 'user'), output: read('llm.output_messages', 'assistant') };
}

/** Parses parts from JSON text. Text that only looks like JSON stays text. */
function unquotedParts(content: unknown): unknown {
  const value = unquoted(content);
  return Array.isArray(value) && value.every((part) => isObject(part) && typeof part.type === 'string') ? value : content;
}

const EVENT_ROLES: Record<string, string> = {
  'gen_ai.system.message': 'system',
  'gen_ai.user.message': 'user',
  'gen_ai.assistant.message': 'assistant',
  'gen_ai.tool.message': 'tool',
};

function fromEvents({ events }: Span): Conversation {
  const found: Conversation = { input: [], output: [] };
  for (const { name, attributes } of events) {
    const body = objectOf(unquoted(attributes['gen_ai.event.content'] ?? attributes.body) ?? attributes);
    const role = EVENT_ROLES[name];
    if (role !== undefined) found.input.push(eventMessage(role, body));
    if (name === 'gen_ai.choice') found.output.push(eventMessage('assistant', { ...body, ...objectOf(unquoted(body.message)) }));
    if (name === 'gen_ai.content.prompt') found.input.push(...listOf(unquoted(attributes['gen_ai.prompt'])).filter(isObject));
    if (name === 'gen_ai.content.completion') found.output.push(...listOf(unquoted(attributes['gen_ai.completion'])).filter(isObject));
  }
  return found;
}

function eventMessage(role: string, body: JsonObject): JsonObject {
  const calls = listOf(unquoted(body.tool_calls));
  return compact({
    role: textOf(body.role) ?? role,
    content: unquotedParts(body.content),
    reasoning_content: body.reasoning_content,
    tool_calls: calls,
    tool_call_id: role === 'tool' ? (body.tool_call_id ?? body.id) : undefined,
  });
}

/** Limits the indexes of a list, because a large index must not allocate memory. */
const MAX_LIST = 100_000;

/** Converts `{a.0.b: 1}` under `a` to `[{b: 1}]`; undefined without any such attribute. */
function unflatten(attributes: JsonObject, prefix: string): unknown {
  const root = new Map<string, unknown>();
  for (const [key, value] of Object.entries(attributes)) {
    if (!key.startsWith(`${prefix}.`)) continue;
    const path = key.slice(prefix.length + 1).split('.');
    let at = root;
    for (const step of path.slice(0, -1)) {
      const next = at.get(step);
      if (next instanceof Map) at = next as Map<string, unknown>;
      else {
        const fresh = new Map<string, unknown>();
        at.set(step, fresh);
        at = fresh;
      }
    }
    if (!at.has(path.at(-1)!)) at.set(path.at(-1)!, value);
  }
  return root.size > 0 ? plainOf(root) : undefined;
}

function plainOf(map: Map<string, unknown>): unknown {
  const entries = [...map].map(([key, value]): [string, unknown] => [
    key,
    value instanceof Map ? plainOf(value as Map<string, unknown>) : value,
  ]);
  const isList = entries.every(([key]) => /^\d{1,6}$/.test(key) && Number(key) < MAX_LIST);
  if (!isList) return Object.fromEntries(entries);
  return entries.toSorted(([a], [b]) => Number(a) - Number(b)).map(([, value]) => value);
}

export interface ToolUse {
  name: string;
  callId: string | undefined;
  input: string | undefined;
  output: string | undefined;
}

/**
 * `tool.parameters` of OpenInference is the schema of the tool if `input.value` exists. `tool_arguments` and `tool_response` are Pydantic
 * AI's up to its format 3.
 */
export function toolOf({ attributes, name }: Span): ToolUse {
  const read = (...keys: string[]) => keys.map((key) => attributes[key]).find((value) => value !== undefined && value !== null);
  const input = read('gen_ai.tool.call.arguments', 'tool_arguments', 'input.value', 'tool.parameters', 'traceloop.entity.input');
  const output = read('gen_ai.tool.call.result', 'tool_response', 'output.value', 'traceloop.entity.output');
  return {
    name: textOf(read('gen_ai.tool.name', 'tool.name', 'traceloop.entity.name')) ?? name,
    callId: textOf(read('gen_ai.tool.call.id', 'tool_call.id')),
    input: textOrJson(unwrapped(input, 'inputs', 'input_str')),
    output: textOrJson(unwrapped(output, 'output', 'kwargs')),
  };
}

/** OpenLLMetry wraps input and output of a LangChain tool together with the arguments of its callback. */
function unwrapped(value: unknown, member: string, beside: string): unknown {
  const call = unquoted(value);
  return isObject(call) && Object.hasOwn(call, beside) && Object.hasOwn(call, member) ? (call[member] ?? value) : value;
}

export interface SpanReward {
  value: number;
  /** All rewards by name, if there are several. */
  parts: JsonObject | null;
}

/** `palestra.reward`, or agent-lightning's rewards, of which the first counts. */
export function rewardOf({ attributes }: Span): SpanReward | null {
  const single = first(numberOf, attributes['palestra.reward'], attributes['agentlightning.reward']);
  if (single !== undefined) return { value: single, parts: null };
  const dimensions = listOf(unflatten(attributes, 'agentlightning.reward')).map(objectOf);
  const value = numberOf(dimensions[0]?.value);
  if (value === undefined) return null;
  const parts = Object.fromEntries(dimensions.map((one, index) => [textOf(one.name) ?? String(index), one.value]));
  return { value, parts: dimensions.length > 1 ? parts : null };
}

export function usageOf({ attributes, startedAt, endedAt, spanId }: Span): JsonObject {
  const read = (...keys: string[]) => first(numberOf, ...keys.map((key) => attributes[key]));
  const tokens = compact({
    prompt: read('gen_ai.usage.input_tokens', 'gen_ai.usage.prompt_tokens', 'llm.token_count.prompt'),
    output: read('gen_ai.usage.output_tokens', 'gen_ai.usage.completion_tokens', 'llm.token_count.completion'),
  });
  return compact({ span_id: spanId, duration_ms: endedAt - startedAt, model: modelOf(attributes), tokens });
}

export const modelOf = (attributes: JsonObject): string | undefined =>
  first(textOf, attributes['gen_ai.response.model'], attributes['gen_ai.request.model'], attributes['llm.model_name']);
