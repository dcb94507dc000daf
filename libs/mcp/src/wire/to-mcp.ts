import type { CallToolResult, ContentBlock, PromptMessage, Tool } from '@modelcontextprotocol/sdk/types.js';
import {
  isObject,
  type JsonObject,
  type JsonValue,
  type MessageBlock,
  type RunToolOutput,
  stringifyJson,
  type ToolSpec,
} from '@palestra/protocol';
import type { CallOutcome } from '@palestra/session';

/** Keys of `_meta` for values that MCP has no field for (docs/mcp.md). */
export const META = {
  reward: 'palestra/reward',
  finished: 'palestra/finished',
  taskId: 'palestra/task_id',
  reason: 'palestra/reason',
  metadata: 'palestra/metadata',
} as const;

/** MCP content is text or image; other blocks become JSON text. */
function contentOf(block: MessageBlock): ContentBlock {
  switch (block.type) {
    case 'text':
    case 'reasoning':
      return { type: 'text', text: block.text.toWellFormed() };
    case 'image':
      return { type: 'image', data: block.data, mimeType: block.mimeType };
    default:
      return { type: 'text', text: stringifyJson(block as unknown as JsonObject) };
  }
}

/** One message per block, in order. */
export function promptMessages(blocks: MessageBlock[]): PromptMessage[] {
  return blocks.map((block) => ({ role: 'user', content: contentOf(block) }));
}

/** A prompt as `instructions`, which are text. The prompt `task` has the images. */
export function instructionsOf(blocks: MessageBlock[]): string {
  const texts = blocks.map((block) => {
    const content = contentOf(block);
    return content.type === 'text' ? content.text : '[An image: read the prompt "task" to see it.]';
  });
  return texts.join('\n\n');
}

/** MCP requires an object schema, and official clients reject booleans as property schemas. */
export function toolOf({ name, description, input_schema: schema }: ToolSpec): Tool {
  const inputSchema: JsonObject = { ...schema, type: 'object' };
  if (isObject(inputSchema['properties'])) {
    const properties = Object.entries(inputSchema['properties']).map(([key, value]) => [key, schemaOf(value)]);
    inputSchema['properties'] = Object.fromEntries(properties) as JsonObject;
  }
  return { name, description, inputSchema: JSON.parse(stringifyJson(inputSchema)) as Tool['inputSchema'] };
}

function schemaOf(schema: JsonValue): JsonValue {
  if (schema === true) return {};
  return schema === false ? { not: {} } : schema;
}

/**
 * `JSON.parse`, because the SDK serialises plain numbers only. Replaces lone surrogates: pydantic's parser rejects them, and its client
 * would wait forever.
 */
const readResult = (text: string): RunToolOutput =>
  (/\\u[dD][89a-fA-F]/.test(text) || !text.isWellFormed()
    ? JSON.parse(text, (_key, value: unknown) => (typeof value === 'string' ? value.toWellFormed() : value))
    : JSON.parse(text)) as RunToolOutput;

/** Converts an outcome; a `refused` call has no result. */
export function resultOf(outcome: CallOutcome & { type: 'result' | 'tool_failed' }, taskId: string | null): CallToolResult {
  const id = taskId === null ? {} : { [META.taskId]: taskId };
  if (outcome.type === 'tool_failed') return errorResult(outcome.message, id);
  const result = readResult(outcome.text);
  if (!result.ok) return errorResult(result.error, { ...id, [META.reason]: result.reason ?? null });
  const { blocks, metadata } = result.output;
  // Our tools declare no output schema, so any object is valid structured content.
  const structured = isObject(metadata) && isObject(metadata['structured_content']) ? metadata['structured_content'] : null;
  return {
    content: blocks.map(contentOf),
    ...(structured !== null && { structuredContent: structured as Record<string, unknown> }),
    _meta: {
      ...id,
      [META.reward]: outcome.reward,
      [META.finished]: outcome.finished,
      ...(metadata !== null && { [META.metadata]: metadata }),
    },
  };
}

function errorResult(text: string, meta: Record<string, unknown>): CallToolResult {
  return {
    content: [{ type: 'text', text: text.toWellFormed() }],
    isError: true,
    _meta: { ...meta, [META.reward]: null, [META.finished]: false },
  };
}
