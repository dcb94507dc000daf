import { ChatError, chatUrl, postChat, retryChat } from '@palestra/kit/chat-completions';
import { isObject, type JsonObject, type Message, type OutputBlock, parseJson, stringifyJson, type ToolSpec } from '@palestra/protocol';

/** A message in OpenAI's format. */
export type ChatMessage = Record<string, unknown> & { role: string };

export interface ModelOptions {
  baseUrl: string;
  model: string;
  apiKey: string | undefined;
  temperature: number | undefined;
  /** Of one reply. */
  maxTokens: number | undefined;
  /** Further fields of the request. */
  extraBody: object | undefined;
  /** Deadline of one reply. */
  timeoutMs: number;
}

/** A call that the model asks for, or why it cannot be sent. */
export interface RequestedCall {
  id: string;
  name: string;
  /** The arguments as text, as they are recorded. */
  text: string;
  arguments: JsonObject;
  /** Null: it can be sent. */
  problem: string | null;
}

export interface ModelReply {
  text: string;
  reasoning: string | null;
  calls: RequestedCall[];
  /** For the next request. */
  message: ChatMessage;
  /** The reply was cut at the maximum of tokens. */
  isCut: boolean;
  /** Null: the API does not say. */
  tokens: { prompt: number; output: number } | null;
}

export type Model = (
  messages: readonly ChatMessage[],
  tools: readonly ToolSpec[],
  turn: number,
  signal: AbortSignal,
) => Promise<ModelReply>;

const RETRIES = 5;
const MIN_DELAY_MS = 500;
const MAX_REPLY_BYTES = 4_000_000;
/** Of one reply. Further calls are ignored. */
const MAX_CALLS = 100;
const MAX_NAME = 256;

export class ModelTimeoutError extends ChatError {
  constructor(timeoutMs: number) {
    super(`no reply of the model within ${timeoutMs / 1_000} s`, null, false);
  }
}

/** Errors of servers about a conversation that is too long. The same as in integrations/python/src/palestra/chat.py. */
const CONTEXT_LENGTH = new RegExp(
  [
    'context_length_exceeded',
    'exceeds the context window',
    'maximum context length',
    "longer than the model's context length",
    'exceeds max_total_tokens',
    'prompt is too long',
    'exceeds the maximum number of tokens allowed',
    'maximum prompt length is',
  ].join('|'),
  'i',
);

/** The conversation does not fit into the context of the model. */
export const isContextLength = (error: unknown): boolean => error instanceof ChatError && CONTEXT_LENGTH.test(error.detail);

/**
 * A model behind an OpenAI-compatible API, with the semantics of `palestra.play` of the Python package. Requests are repeated after 408, 429, 5xx
 * and broken connections. Throws `ChatError`, or what `fetch` throws.
 */
export function openModel({ baseUrl, model, apiKey, temperature, maxTokens, extraBody, timeoutMs }: ModelOptions): Model {
  const url = chatUrl(baseUrl);
  const settings = { ...(temperature !== undefined && { temperature }), ...(maxTokens !== undefined && { max_tokens: maxTokens }) };
  return (messages, tools, turn, signal) => {
    const offered = tools.length > 0 && { tools: tools.map(toOpenAi) };
    const body = { model, messages, ...offered, ...settings, ...extraBody };
    const ask = async () => {
      try {
        return readReply(await postChat({ url, apiKey, body, timeoutMs, signal, maxBytes: MAX_REPLY_BYTES }), turn);
      } catch (error) {
        // Not repeated here: a stalled server would take the deadline each time.
        throw error instanceof Error && error.name === 'TimeoutError' ? new ModelTimeoutError(timeoutMs) : error;
      }
    };
    return retryChat(ask, { retries: RETRIES, minDelayMs: MIN_DELAY_MS, signal });
  };
}

const toOpenAi = ({ name, description, input_schema }: ToolSpec) => ({
  type: 'function',
  function: { name, description, parameters: input_schema ?? { type: 'object', properties: {} } },
});

/**
 * Reads a chat completion. Throws a `ChatError`, after which the request is repeated, if the text is no chat completion. A call without an id gets
 * one that contains `turn`.
 */
export function readReply(text: string, turn: number): ModelReply {
  const completion = objectOf(text);
  const [choice] = Array.isArray(completion['choices']) ? (completion['choices'] as unknown[]) : [];
  const message = isObject(choice) ? choice['message'] : undefined;
  if (!isObject(choice) || !isObject(message)) throw new ChatError('the reply has no choices[0].message', null, true);
  const content = textOfContent(message['content']);
  const calls = requestedCalls(message['tool_calls'], turn);
  const reasoning = [message['reasoning_content'], message['reasoning']].find((one) => typeof one === 'string' && one !== '');
  return {
    text: content,
    reasoning: typeof reasoning === 'string' ? reasoning : null,
    calls,
    message: {
      role: 'assistant',
      content: content === '' && calls.length > 0 ? null : content,
      ...(typeof message['reasoning_content'] === 'string' && { reasoning_content: message['reasoning_content'] }),
      ...(calls.length > 0 && { tool_calls: calls.map(callMessage) }),
    },
    isCut: choice['finish_reason'] === 'length',
    tokens: tokensOf(completion['usage']),
  };
}

function objectOf(text: string): JsonObject {
  try {
    const value = parseJson(text);
    if (isObject(value)) return value;
  } catch {
    // The error below says what is wrong.
  }
  throw new ChatError('the reply is not a JSON object', null, true);
}

function textOfContent(content: unknown): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  return content.map((part) => (isObject(part) && typeof part['text'] === 'string' ? part['text'] : '')).join('');
}

function requestedCalls(calls: unknown, turn: number): RequestedCall[] {
  if (!Array.isArray(calls)) return [];
  const ids = new Set<string>();
  return calls.slice(0, MAX_CALLS).map((call: unknown, position) => {
    const { id, function: called } = isObject(call) ? call : {};
    const { name, arguments: given } = isObject(called) ? called : {};
    const isUsable = typeof id === 'string' && /^[\x21-\x7e]{1,64}$/.test(id) && !ids.has(id);
    const usedId = isUsable ? id : `call_${turn}_${position}`;
    ids.add(usedId);
    return { id: usedId, name: typeof name === 'string' ? name.slice(0, MAX_NAME) : '', ...readArguments(given) };
  });
}

function readArguments(given: unknown): Pick<RequestedCall, 'text' | 'arguments' | 'problem'> {
  const text = typeof given === 'string' ? given : given === undefined || given === null ? '' : stringifyJson(given as JsonObject);
  if (text.trim() === '') return { text: '{}', arguments: {}, problem: null };
  try {
    const value = parseJson(text);
    if (isObject(value)) return { text, arguments: value, problem: null };
    return { text, arguments: {}, problem: 'expected a JSON object' };
  } catch (error) {
    return { text, arguments: {}, problem: error instanceof Error ? error.message : String(error) };
  }
}

/** Servers that parse the arguments of earlier calls refuse a conversation with arguments that are not JSON. */
const callMessage = ({ id, name, text, problem }: RequestedCall) => ({
  id,
  type: 'function',
  function: { name, arguments: problem === null ? text : '{}' },
});

function tokensOf(usage: unknown): ModelReply['tokens'] {
  if (!isObject(usage)) return null;
  const [prompt, output] = [countOf(usage['prompt_tokens']), countOf(usage['completion_tokens'])];
  return prompt === null || output === null ? null : { prompt, output };
}

const countOf = (value: unknown): number | null => (Number.isSafeInteger(value) && Number(value) >= 0 ? Number(value) : null);

/** The text blocks, joined as the clients of this project join them. */
export const textOfBlocks = (blocks: readonly { type: string; text?: string }[]): string =>
  blocks.map((block) => (block.type === 'text' ? (block.text ?? '') : '')).join('');

/** Text as a string; with images a list of parts with data URLs. */
function contentOf(blocks: readonly OutputBlock[]): string | object[] {
  if (blocks.every(({ type }) => type === 'text')) return textOfBlocks(blocks);
  return blocks.map((block) =>
    block.type === 'text'
      ? { type: 'text', text: block.text }
      : { type: 'image_url', image_url: { url: `data:${block.mimeType};base64,${block.data}` } },
  );
}

/** The conversation of a task in OpenAI's format. Earlier calls become `tool_calls`, and their results `tool` messages. */
export function toChat(messages: readonly Message[]): ChatMessage[] {
  return messages.flatMap(({ role, blocks }) => {
    const results = blocks.flatMap((block) => (block.type === 'tool_result' ? toolMessages(block.tool_call_id, block.blocks) : []));
    const shown = blocks.filter((block) => block.type === 'text' || block.type === 'image') as OutputBlock[];
    if (role !== 'assistant') return shown.length > 0 || blocks.length === 0 ? [...results, { role, content: contentOf(shown) }] : results;
    const calls = blocks.flatMap((block) =>
      block.type === 'tool_call'
        ? [{ id: block.id, type: 'function', function: { name: block.name, arguments: stringifyJson(block.input) } }]
        : [],
    );
    const content = contentOf(shown);
    return [...results, { role, content: content === '' ? null : content, ...(calls.length > 0 && { tool_calls: calls }) }];
  });
}

/** The result of a call. A `tool` message holds text only, so images follow in a message of the user. */
export function toolMessages(id: string, blocks: readonly OutputBlock[]): ChatMessage[] {
  const images = blocks.filter(({ type }) => type === 'image');
  const answer = { role: 'tool', tool_call_id: id, content: textOfBlocks(blocks) };
  return images.length === 0 ? [answer] : [answer, { role: 'user', content: contentOf(images) }];
}
