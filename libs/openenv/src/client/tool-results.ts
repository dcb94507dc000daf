import {
  isObject,
  type JsonObject,
  type JsonValue,
  type MessageBlock,
  type OutputBlock,
  stringifyJson,
  toFiniteNumber,
} from '@palestra/protocol';
import type { NativeReply, ToolCallResult } from '@palestra/session';
import { mayHavePixels } from './pixels.ts';
import { hasOddEscapes, membersAt } from '../wire/json-slices.ts';
import { endsSession, type Reply, readRpc, type WireError, errorText } from '../wire/server-replies.ts';

/** Tool results from OpenEnv replies: an action's observation as one JSON text, a tool's result as its blocks. */

const textBlock = (text: string): OutputBlock => ({ text, detail: null, type: 'text' });

export function refused(reason: 'not_found' | 'input_validation', error: string): ToolCallResult {
  return { text: stringifyJson({ ok: false, error, reason }), ok: false, reason, reward: null, finished: false };
}

function output(blocks: OutputBlock[], metadata: JsonObject | null, reward: JsonValue = null, finished = false): ToolCallResult {
  // ORS rewards are numbers; `true` is 1.
  const value = typeof reward === 'boolean' ? Number(reward) : toFiniteNumber(reward) === null ? null : reward;
  const text = stringifyJson({ ok: true, output: { blocks, metadata, reward: value, finished } });
  return { text, ok: true, reason: null, reward: toFiniteNumber(value), finished };
}

/** Servers send metadata beside the observation, and inside it. */
function metadataOf(data: JsonObject): JsonObject | null {
  const inside = isObject(data['observation']) ? data['observation']['metadata'] : null;
  const found = isObject(data['metadata']) ? data['metadata'] : inside;
  return isObject(found) && Object.keys(found).length > 0 ? found : null;
}

function observationOf(data: JsonObject): JsonObject {
  const { metadata: _metadata, reward: _reward, done: _done, ...observation } = isObject(data['observation']) ? data['observation'] : {};
  return observation;
}

/** The result of a `step` or `reset`. `images`: those that were in the observation. */
export function resultOfStep(data: JsonObject, images: readonly OutputBlock[] = []): ToolCallResult {
  const observation = observationOf(data);
  const { tool_name: toolName, result, error } = observation;
  const [metadata, reward, finished] = [metadataOf(data), data['reward'], data['done'] === true];
  if (typeof toolName !== 'string' || !('result' in observation || 'error' in observation)) {
    return output([textBlock(stringifyJson(observation)), ...images], metadata, reward, finished);
  }
  if (isObject(error)) {
    const message = typeof error['message'] === 'string' ? error['message'] : stringifyJson(error);
    if (error['error_type'] === 'tool_not_found') return refused('not_found', unknownToolText(toolName, message));
    if (error['error_type'] === 'invalid_args') return refused('input_validation', `Tool input validation error: ${message}`);
    return output([textBlock(message)], metadata, reward, finished);
  }
  const structured = isObject(result) ? result['structured_content'] : null;
  const extended = structured === null || structured === undefined ? metadata : { ...metadata, structured_content: structured };
  return output(blocksOf(result), extended, reward, finished);
}

const OBSERVATION = '{"type":"observation","data":{';
/** Keys of the observation that are not shown to the policy. */
const ENVELOPE_KEYS = new Set(['metadata', 'reward', 'done']);
const isFilled = (value: string): boolean => value.startsWith('{') && value !== '{}';

/** A faster `resultOfStep` for the observations of actions as newer servers write them. null for any other frame, and for images. */
export function resultOfObservation(frame: string): ToolCallResult | null {
  if (!frame.startsWith(OBSERVATION) || hasOddEscapes(frame)) return null;
  let data: JsonObject;
  try {
    ({ data } = JSON.parse(frame) as { data: JsonObject });
  } catch {
    return null;
  }
  const { observation, reward } = data;
  if (!isObject(observation) || typeof observation['tool_name'] === 'string' || mayHavePixels(observation)) return null;
  const members = membersAt(frame, OBSERVATION.length - 1);
  const textOf = (key: string): string => members?.findLast((member) => member.key === key)?.value ?? 'null';
  const inside = members === null ? null : membersAt(textOf('observation'), 0);
  if (inside === null) return null;
  const kept = inside.filter(({ key }) => !ENVELOPE_KEYS.has(key)).map(({ key, value }) => `"${key}":${value}`);
  const outer = textOf('metadata');
  const metadata = outer.startsWith('{') ? outer : (inside.findLast(({ key }) => key === 'metadata')?.value ?? 'null');
  const finished = data['done'] === true;
  const value = Number.isFinite(reward) ? textOf('reward') : typeof reward === 'boolean' ? String(Number(reward)) : 'null';
  const block = `{"text":${JSON.stringify(`{${kept.join(',')}}`)},"detail":null,"type":"text"}`;
  return {
    text: `{"ok":true,"output":{"blocks":[${block}],"metadata":${isFilled(metadata) ? metadata : 'null'},"reward":${value},"finished":${finished}}}`,
    ok: true,
    reason: null,
    reward: value === 'null' ? null : Number(value),
    finished,
  };
}

/** Clients without reasons look for this text. */
const unknownToolText = (name: string, message: string): string =>
  message.includes('is not a valid tool') ? message : `'${name}' is not a valid tool (${message})`;

/** The blocks of a tool result: MCP's `content`, or any other JSON value. */
function blocksOf(result: JsonValue): OutputBlock[] {
  if (typeof result === 'string') return [textBlock(result)];
  const content = isObject(result) ? result['content'] : undefined;
  if (!Array.isArray(content)) return [textBlock(stringifyJson(result ?? null))];
  return content.map((block: JsonValue): OutputBlock => {
    if (isObject(block) && block['type'] === 'text' && typeof block['text'] === 'string') return textBlock(block['text']);
    if (isObject(block) && block['type'] === 'image' && typeof block['data'] === 'string') {
      return { data: block['data'], mimeType: String(block['mimeType'] ?? block['mime_type'] ?? 'image/png'), detail: null, type: 'image' };
    }
    return textBlock(stringifyJson(block));
  });
}

/** Fields in which tool environments put their question. */
const QUESTIONS = ['prompt', 'question', 'instruction', 'instructions'];

/** The prompt from a reset: the question of a tool environment if it has one, otherwise the JSON text; then the images. */
export function promptOfReset(data: JsonObject, toolActions: boolean, images: readonly OutputBlock[] = []): MessageBlock[] {
  return [textBlock(promptText(data, toolActions)), ...images];
}

function promptText(data: JsonObject, toolActions: boolean): string {
  const observation = observationOf(data);
  const metadata = metadataOf(data);
  if (!toolActions) return stringifyJson(observation);
  for (const source of [observation, metadata ?? {}]) {
    for (const key of QUESTIONS) {
      const value = source[key];
      if (typeof value === 'string' && value.trim() !== '') return value;
    }
  }
  return stringifyJson(metadata === null ? observation : { ...observation, metadata });
}

/** The result of a call that an error frame answers. The session goes on unless `endsSession`. */
export function resultOfError(error: WireError): ToolCallResult | { failed: string } {
  if (error.code === 'VALIDATION_ERROR') return refused('input_validation', `Tool input validation error: ${errorText(error)}`);
  return { failed: error.message };
}

/** The result of a `tools/call`, which has no reward and no end. */
function resultOfRpc(data: JsonObject): ToolCallResult {
  const response = readRpc(data);
  if ('error' in response) {
    const { code, message } = response.error;
    if (/unknown tool/i.test(message)) return refused('not_found', message);
    if (code === -32_602 || code === -32_600) return refused('input_validation', message);
    return output([textBlock(message)], null);
  }
  const structured = response.result['structured_content'] ?? response.result['structuredContent'];
  return output(blocksOf(response.result), structured === undefined || structured === null ? null : { structured_content: structured });
}

/** The result that the ledger and the trace store. `images`: those that were in an observation. */
export function resultOfReply(reply: Reply, images: readonly OutputBlock[] = []): NativeReply['result'] {
  switch (reply.type) {
    case 'error':
      return endsSession(reply) ? { failed: reply.message } : resultOfError(reply);
    case 'observation':
      return resultOfStep(reply.data, images);
    case 'state':
      return output([textBlock(stringifyJson(reply.data))], null);
    case 'mcp':
      return resultOfRpc(reply.data);
  }
}
