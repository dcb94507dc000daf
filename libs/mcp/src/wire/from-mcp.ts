import {
  isObject,
  type JsonObject,
  type JsonValue,
  type OutputBlock,
  stringifyJson,
  type ToolErrorReason,
  type ToolSpec,
} from '@palestra/protocol';
import type { ToolCallResult } from '@palestra/session';

/** Converts MCP objects to ORS. Reads them without schemas, so that additions of newer protocols cause no error. */

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');

const textBlock = (text: string): OutputBlock => ({ text, detail: null, type: 'text' });

/** Converts a content block. Content that is not text or image is named, because the policy cannot use it. */
export function blockOf(content: unknown): OutputBlock {
  if (!isObject(content)) return textBlock(stringifyJson(content as JsonValue));
  switch (content['type']) {
    case 'text':
      return textBlock(textOf(content['text']));
    case 'image':
      return { data: textOf(content['data']), mimeType: textOf(content['mimeType']), detail: null, type: 'image' };
    case 'audio':
      return textBlock(`[audio, ${textOf(content['mimeType'])}: not shown]`);
    case 'resource':
      return resourceBlock(content['resource']);
    case 'resource_link':
      return textBlock(`[${textOf(content['name'])}: ${textOf(content['uri'])}]`);
    default:
      return textBlock(stringifyJson(content));
  }
}

function resourceBlock(resource: JsonValue): OutputBlock {
  if (!isObject(resource)) return textBlock('');
  const { text, blob, mimeType, uri } = resource;
  if (typeof text === 'string') return textBlock(text);
  if (typeof blob === 'string' && textOf(mimeType).startsWith('image/')) {
    return { data: blob, mimeType: textOf(mimeType), detail: null, type: 'image' };
  }
  return textBlock(`[resource ${textOf(uri)}, ${textOf(mimeType)}: not shown]`);
}

export function toolSpecOf(tool: {
  name: string;
  title?: string | undefined;
  description?: string | undefined;
  inputSchema: unknown;
}): ToolSpec {
  return { name: tool.name, description: tool.description ?? tool.title ?? '', input_schema: tool.inputSchema as JsonObject };
}

/**
 * Converts the result of a `tools/call`. Reward and end of the episode come from `_meta` (docs/mcp.md). A tool error is a result whose text
 * the policy sees.
 */
export function resultOf(result: JsonObject): ToolCallResult {
  const meta = isObject(result['_meta']) ? result['_meta'] : {};
  const reason = meta['palestra/reason'];
  const content = Array.isArray(result['content']) ? result['content'] : [];
  const structured = result['structuredContent'];
  const blocks = content.map(blockOf);
  if (result['isError'] === true && typeof reason === 'string') return refusal(reason, blocks.map(textIn).join('\n'));
  if (blocks.length === 0 && structured !== undefined) blocks.push(textBlock(stringifyJson(structured)));
  const metaReward = meta['palestra/reward'];
  const reward = typeof metaReward === 'number' && Number.isFinite(metaReward) ? metaReward : null;
  const finished = meta['palestra/finished'] === true;
  const metadata = metadataOf(meta['palestra/metadata'], structured);
  const output = { blocks, metadata, reward, finished } as unknown as JsonObject;
  return { text: stringifyJson({ ok: true, output }), ok: true, reason: null, reward, finished };
}

const textIn = (block: OutputBlock): string => (block.type === 'text' ? block.text : '');

function metadataOf(metadata: JsonValue, structured: JsonValue): JsonObject | null {
  if (isObject(metadata)) return metadata;
  return isObject(structured) ? { structured_content: structured } : null;
}

/** A refusal in ORS form. */
export function refusal(reason: ToolErrorReason, error: string): ToolCallResult {
  return { text: stringifyJson({ ok: false, error, reason }), ok: false, reason, reward: null, finished: false };
}
