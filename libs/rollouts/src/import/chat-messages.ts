import { isObject, type JsonObject } from '@palestra/protocol';
import type { DraftMessage } from './imported.ts';
import { compact, first, listOf, objectOf, rewardNumber, textOf, textOrJson, timeOf, unquoted } from './json-fields.ts';

/**
 * Converts messages of chat completions to upload messages. An assistant message becomes up to three kinds: reasoning, text, tool calls,
 * in this order. Images become Markdown with their URL, so that ingest stores `data:` URLs as objects. Other parts stay in the metadata.
 */
export function chatMessages(messages: readonly unknown[]): DraftMessage[] {
  const names = new Map<string, string>();
  return messages.flatMap((message) => (isObject(message) ? readMessage(message, names) : []));
}

/** Why a value is not a list of chat messages; null if it is one. */
export function chatProblem(messages: unknown): string | null {
  if (!Array.isArray(messages)) return 'messages must be a list.';
  const at = messages.findIndex((message) => !isObject(message) || typeof message.role !== 'string');
  return at === -1 ? null : `message ${at} has no role.`;
}

function readMessage(message: JsonObject, names: Map<string, string>): DraftMessage[] {
  const common = commonFields(message);
  const { text, parts, reasoning } = readContent(message.content);
  const withParts = (metadata: JsonObject = {}) => compact({ ...common.metadata, ...metadata, parts });
  const plain = (type: DraftMessage['type'], metadata: JsonObject = {}): DraftMessage => ({
    type,
    content: text ?? '',
    ...common.timing,
    metadata: withParts(metadata),
  });
  switch (message.role) {
    case 'system':
    case 'developer':
      return [plain('system_message', message.role === 'developer' ? { role: 'developer' } : {})];
    case 'assistant':
      return assistantMessages(message, { text, reasoning, metadata: withParts(), timing: common.timing, names });
    case 'tool':
    case 'function': {
      const callId = textOf(message.tool_call_id);
      return [
        {
          ...plain('tool_result', toolError(message)),
          ...(callId ? { callId } : {}),
          ...nameOf(textOf(message.name) ?? names.get(callId ?? '')),
        },
      ];
    }
    default:
      return [plain('user_message', message.role === 'user' ? {} : { role: message.role })];
  }
}

const nameOf = (name: string | undefined) => (name === undefined ? {} : { name });

/** Fields of every role beside the content. */
function commonFields(message: JsonObject): { metadata: JsonObject; timing: Pick<DraftMessage, 'at' | 'reward'> } {
  const at = first(timeOf, message.timestamp, message.created_at);
  const reward = rewardNumber(message.reward);
  const speaker = message.role === 'tool' || message.role === 'function' ? undefined : textOf(message.name);
  return {
    metadata: compact({ ...objectOf(message.metadata), speaker, refusal: textOf(message.refusal) }),
    timing: { ...(at === undefined ? {} : { at }), ...(reward === undefined ? {} : { reward }) },
  };
}

interface AssistantParts {
  text: string | undefined;
  reasoning: DraftMessage[];
  metadata: JsonObject;
  timing: Pick<DraftMessage, 'at' | 'reward'>;
  names: Map<string, string>;
}

function assistantMessages(message: JsonObject, { text, reasoning, metadata, timing, names }: AssistantParts): DraftMessage[] {
  const { reward, ...at } = timing;
  const thought = first(textOf, message.reasoning_content, message.reasoning);
  const thoughts: DraftMessage[] = [...(thought === undefined ? [] : [{ type: 'reasoning' as const, content: thought }]), ...reasoning];
  const calls = [...listOf(message.tool_calls), ...(isObject(message.function_call) ? [{ function: message.function_call }] : [])];
  const called = calls.flatMap((call) => toolCall(unquoted(call), names));
  const said = text !== undefined && text !== '' ? text : textOf(message.refusal);
  // An assistant message without content is still a turn.
  const spoken = said !== undefined || (called.length === 0 && thoughts.length === 0) ? [{ content: said ?? '', metadata }] : [];
  const all: DraftMessage[] = [
    ...thoughts.map((item) => ({ ...item, ...at })),
    ...spoken.map((item): DraftMessage => ({ type: 'assistant_message', ...item, ...at })),
    ...called.map((item) => ({ ...item, ...at })),
  ];
  // The reward of a message is on its last event only.
  if (reward !== undefined) all[all.length - 1] = { ...all.at(-1)!, reward };
  return all;
}

function toolCall(call: unknown, names: Map<string, string>): DraftMessage[] {
  if (!isObject(call)) return [];
  const inner = isObject(call.function) ? call.function : isObject(call.custom) ? call.custom : call;
  const name = textOf(inner.name) ?? textOf(call.function) ?? 'unknown';
  const callId = textOf(call.id);
  if (callId !== undefined) names.set(callId, name);
  const args = textOrJson(inner.arguments ?? inner.input);
  const failed = textOf(call.parse_error);
  return [
    {
      type: 'tool_call',
      name,
      content: args === undefined || args.trim() === '' ? '{}' : args,
      ...(callId === undefined ? {} : { callId }),
      ...(failed === undefined ? {} : { metadata: { parse_error: failed } }),
    },
  ];
}

/** Marks a result as an error with the keys that the normaliser reads. */
function toolError(message: JsonObject): JsonObject {
  const { error } = message;
  const details = isObject(error)
    ? compact({ error_type: textOf(error.type), error: first(textOf, error.message, error.type) })
    : { error: textOf(error) };
  const isError =
    message.is_error === true || message.status === 'error' || (error !== undefined && error !== null && error !== false && error !== '');
  return isError ? compact({ is_error: true, ...details }) : {};
}

interface Content {
  text: string | undefined;
  /** Parts that text cannot represent. */
  parts: unknown[];
  reasoning: DraftMessage[];
}

function readContent(content: unknown): Content {
  if (typeof content === 'string') return { text: content, parts: [], reasoning: [] };
  if (!Array.isArray(content)) return { text: textOrJson(content), parts: [], reasoning: [] };
  const texts: string[] = [];
  const parts: unknown[] = [];
  const reasoning: DraftMessage[] = [];
  for (const part of content as unknown[]) {
    const read = typeof part === 'string' ? part : isObject(part) ? textOfPart(part) : undefined;
    if (read !== undefined) texts.push(read);
    else if (isObject(part) && (part.type === 'reasoning' || part.type === 'thinking')) reasoning.push(reasoningPart(part));
    else parts.push(part);
  }
  return { text: texts.length > 0 ? texts.join('\n') : undefined, parts, reasoning };
}

function textOfPart(part: JsonObject): string | undefined {
  switch (part.type) {
    case 'text':
    case 'input_text':
    case 'output_text':
      return typeof part.text === 'string' ? part.text : undefined;
    case 'refusal':
      return textOf(part.refusal);
    case 'image':
    case 'image_url':
    case 'input_image': {
      const url = imageUrl(part);
      return url === undefined ? undefined : `![image](${url})`;
    }
    default:
      return undefined;
  }
}

/** OpenAI nests the URL; its Responses API and Inspect do not; Anthropic and MCP send base64 with a type. */
function imageUrl(part: JsonObject): string | undefined {
  const url = first(textOf, objectOf(part.image_url).url, part.image_url, part.image, part.url);
  if (url !== undefined) return url;
  const source = isObject(part.source) ? part.source : part;
  const data = textOf(source.data);
  const type = first(textOf, source.media_type, source.mimeType, source.mime_type);
  return data === undefined || type === undefined ? undefined : `data:${type};base64,${data}`;
}

function reasoningPart(part: JsonObject): DraftMessage {
  const summary = textOf(part.summary);
  const signature = textOf(part.signature);
  const text = first(textOf, part.reasoning, part.thinking, part.text);
  return {
    type: 'reasoning',
    // Redacted reasoning is an opaque block without text.
    content: part.redacted === true ? '' : (text ?? ''),
    ...(summary === undefined ? {} : { summary }),
    ...(signature === undefined ? {} : { contentReference: `reasoning:${signature}` }),
    ...(part.redacted === true ? { metadata: { redacted: true } } : {}),
  };
}
