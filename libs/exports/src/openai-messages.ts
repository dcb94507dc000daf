import type { ImageBlock, JsonObject, Message, MessageBlock, TextBlock, ToolSpec } from '@palestra/protocol';
import { pythonJson } from './python-json.ts';

/** The conversation of a task and its tools in OpenAI's format, as `palestra.messages` of the Python package writes them. */

/** Calls become `tool_calls`, each result a `tool` message, reasoning `reasoning_content`, images content parts with data URLs. */
export function openaiMessages(messages: Message[]): JsonObject[] {
  return messages.flatMap(({ role, blocks }) => {
    const rest = blocks.filter((block) => block.type === 'text' || block.type === 'image');
    const results = blocks.flatMap((block) => (block.type === 'tool_result' ? resultMessages(block.tool_call_id, block.blocks) : []));
    if (role === 'assistant') return [...results, assistantMessage(blocks, rest)];
    return rest.length > 0 || blocks.length === 0 ? [...results, { role, content: contentOf(rest) }] : results;
  });
}

function assistantMessage(blocks: MessageBlock[], rest: (TextBlock | ImageBlock)[]): JsonObject {
  const reasoning = blocks.map((block) => (block.type === 'reasoning' ? block.text : '')).join('');
  const calls = blocks.flatMap((block) =>
    block.type === 'tool_call'
      ? [{ id: block.id, type: 'function', function: { name: block.name, arguments: pythonJson(block.input) } }]
      : [],
  );
  const content = contentOf(rest);
  return {
    role: 'assistant',
    content: content === '' ? null : content,
    ...(reasoning === '' ? {} : { reasoning_content: reasoning }),
    ...(calls.length === 0 ? {} : { tool_calls: calls }),
  };
}

/** `tool` messages hold text only, so images follow in a user message. */
function resultMessages(callId: string, blocks: (TextBlock | ImageBlock)[]): JsonObject[] {
  const images = blocks.filter((block) => block.type === 'image');
  const message = { role: 'tool', tool_call_id: callId, content: textOf(blocks) };
  return images.length === 0 ? [message] : [message, { role: 'user', content: contentOf(images) }];
}

function contentOf(blocks: (TextBlock | ImageBlock)[]): string | JsonObject[] {
  if (!blocks.some(({ type }) => type === 'image')) return textOf(blocks);
  return blocks.map((block) =>
    block.type === 'text'
      ? { type: 'text', text: block.text }
      : { type: 'image_url', image_url: { url: `data:${block.mimeType};base64,${block.data}` } },
  );
}

/** The text blocks, joined without a separator. */
export const textOf = (blocks: MessageBlock[]): string => blocks.map((block) => (block.type === 'text' ? block.text : '')).join('');

interface FunctionTool {
  type: 'function';
  function: { name: string; description: string; parameters: JsonObject };
}

export const openaiTools = (tools: ToolSpec[]): FunctionTool[] =>
  tools.map(({ name, description, input_schema }) => ({
    type: 'function',
    function: { name, description, parameters: input_schema ?? { type: 'object', properties: {} } },
  }));
