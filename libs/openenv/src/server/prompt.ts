import type { JsonValue, Message, MessageBlock } from '@palestra/protocol';

/**
 * A prompt as one text. `isConversation`: it has images or roles, so the text loses something (a flattened conversation marks roles by
 * blocks, docs/reference/ors.md#conversations).
 */
export function promptOf(blocks: MessageBlock[]): { text: string; isConversation: boolean } {
  const texts: string[] = [];
  let isConversation = false;
  for (const block of blocks) {
    if (block.type === 'text') texts.push(block.text);
    if (block.type !== 'text' || block.detail?.['role'] !== undefined) isConversation = true;
  }
  return { text: texts.join('\n'), isConversation };
}

/** The conversation in the form of chat APIs: `content` is a string, or a list of `text` and `image_url` parts. */
export function chatOf(messages: Message[]): JsonValue[] {
  return messages.flatMap(({ role, blocks }) => {
    const chat: Record<string, JsonValue>[] = [];
    const parts: Record<string, JsonValue>[] = [];
    const calls: JsonValue[] = [];
    let reasoning: string | null = null;
    for (const block of blocks) {
      if (block.type === 'text') parts.push({ type: 'text', text: block.text });
      else if (block.type === 'image') parts.push(imagePart(block));
      else if (block.type === 'reasoning') reasoning = block.text;
      else if (block.type === 'tool_call')
        calls.push({ id: block.id, type: 'function', function: { name: block.name, arguments: JSON.stringify(block.input) } });
      else
        chat.push({
          role: 'tool',
          tool_call_id: block.tool_call_id,
          content: contentOf(block.blocks.map((inner) => (inner.type === 'text' ? { type: 'text', text: inner.text } : imagePart(inner)))),
        });
    }
    if (parts.length > 0 || calls.length > 0 || reasoning !== null) {
      chat.push({
        role,
        content: contentOf(parts),
        ...(reasoning !== null && { reasoning_content: reasoning }),
        ...(calls.length > 0 && { tool_calls: calls }),
      });
    }
    return chat;
  });
}

const imagePart = ({ data, mimeType }: { data: string; mimeType: string }) => ({
  type: 'image_url',
  image_url: { url: `data:${mimeType};base64,${data}` },
});

function contentOf(parts: Record<string, JsonValue>[]): JsonValue {
  if (parts.every(({ type }) => type === 'text')) return parts.map(({ text }) => text as string).join('\n');
  return parts;
}
