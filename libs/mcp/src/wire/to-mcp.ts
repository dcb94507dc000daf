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

/** Keys of `_meta` by which MCP clients learn what their protocol has no word for (docs/mcp.md). */
export const META = {
  reward: 'palestra/reward',
  finished: 'palestra/finished',
  taskId: 'palestra/task_id',
  reason: 'palestra/reason',
  metadata: 'palestra/metadata',
} as const;

/** MCP knows no reasoning and no calls inside of a prompt: what is no text and no image is shown as JSON. */
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

/** One message a block, in order. */
export function promptMessages(blocks: MessageBlock[]): PromptMessage[] {
  return blocks.map((block) => ({ role: 'user', content: contentOf(block) }));
}

/** A prompt as `instructions`, which are text: the prompt `task` has its images. */
export function instructionsOf(blocks: MessageBlock[]): string {
  const texts = blocks.map((block) => {
    const content = contentOf(block);
    return content.type === 'text' ? content.text : '[An image: read the prompt "task" to see it.]';
  });
  return texts.join('\n\n');
}

/** MCP's schema of arguments is always one of an object, and its official clients take no booleans in place of a property's schema. */
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
 * Not `parseJson`: the SDK writes plain numbers only. Half of a surrogate pair (a text that was cut in an emoji) is no JSON to clients in Rust, as
 * pydantic's parser is: they would wait for the answer for ever.
 */
const readResult = (text: string): RunToolOutput =>
  (/\\u[dD][89a-fA-F]/.test(text) || !text.isWellFormed()
    ? JSON.parse(text, (_key, value: unknown) => (typeof value === 'string' ? value.toWellFormed() : value))
    : JSON.parse(text)) as RunToolOutput;

/** What the tool said, or what the policy did wrong; a `refused` call is no result. */
export function resultOf(outcome: CallOutcome & { type: 'result' | 'tool_failed' }, taskId: string | null): CallToolResult {
  const id = taskId === null ? {} : { [META.taskId]: taskId };
  if (outcome.type === 'tool_failed') return errorResult(outcome.message, id);
  const result = readResult(outcome.text);
  if (!result.ok) return errorResult(result.error, { ...id, [META.reason]: result.reason ?? null });
  const { blocks, metadata } = result.output;
  // No tool of ours declares an output schema, so any object is valid as structured content.
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
