import type { Message, MessageBlock, OutputBlock } from '@palestra/protocol';
import { textBlock } from '../definition.ts';

const isPlain = (block: MessageBlock): block is OutputBlock => block.type === 'text' || block.type === 'image';

/** JSON with the spaces of Python, `{"zoom": 2}`. The text is part of prompts and must not depend on the server. */
function spacedJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(spacedJson).join(', ')}]`;
  if (value === null || typeof value !== 'object') return JSON.stringify(value) ?? 'null';
  const members = Object.entries(value).map(([key, member]) => `${JSON.stringify(key)}: ${spacedJson(member)}`);
  return `{${members.join(', ')}}`;
}

function flattenBlock(block: MessageBlock): OutputBlock[] {
  switch (block.type) {
    case 'reasoning':
      return [textBlock(`<think>${block.text}</think>`, { type: 'reasoning' })];
    case 'tool_call':
      return [textBlock(`[tool_call ${block.name}] ${spacedJson(block.input)}`, { type: 'tool_call', id: block.id })];
    case 'tool_result': {
      const header = block.is_error ? '[tool_result (error)]' : '[tool_result]';
      return [textBlock(header, { type: 'tool_result', tool_call_id: block.tool_call_id }), ...block.blocks];
    }
    default:
      return [block];
  }
}

/** The prompt of a conversation (docs/reference/ors.md#conversations): a single plain user message as it is, else with role headers. */
export function flattenMessages(messages: Message[]): OutputBlock[] {
  const [first] = messages;
  if (messages.length === 1 && first?.role === 'user' && first.blocks.every(isPlain)) return first.blocks as OutputBlock[];
  return messages.flatMap(({ role, blocks }) => [textBlock(`[${role}]`, { role }), ...blocks.flatMap(flattenBlock)]);
}
