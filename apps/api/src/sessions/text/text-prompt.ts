import { type JsonObject, type JsonValue, parseJson, stringifyJson } from '@palestra/protocol';

/** A chat message of a prompt, as recordings contain it. */
export interface PromptLine {
  type: 'system_message' | 'user_message' | 'assistant_message';
  content: string;
  metadata: JsonObject;
}

/**
 * The chat messages of a prompt, one line each. Calls and results in them are examples and not part of the episode, so they stay text. What does
 * not fit into text is in the metadata, unchanged.
 */
export function promptLines(prompt: string): PromptLine[] {
  return (parseJson(prompt) as JsonValue[]).map((message) => {
    const { role, content = null, ...rest } = isObject(message) ? message : { content: message };
    const more = typeof content !== 'string' || Object.keys(rest).length > 0;
    const shown = typeof content === 'string' ? content : (textOfParts(content) ?? stringifyJson(message));
    return { type: typeOf(role), content: shown, metadata: { prompt: true, ...((more || !isPlain(role)) && { message }) } };
  });
}

const isObject = (value: JsonValue): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && Object.getPrototypeOf(value) === Object.prototype;

const isPlain = (role: JsonValue): boolean => role === 'system' || role === 'user' || role === 'assistant';

function typeOf(role: JsonValue): PromptLine['type'] {
  if (role === 'system' || role === 'developer') return 'system_message';
  return role === 'assistant' ? 'assistant_message' : 'user_message';
}

/** The text of a list of content parts; null unless all of them are text. */
function textOfParts(content: JsonValue): string | null {
  if (!Array.isArray(content) || content.length === 0) return null;
  const texts = content.map((part) => (isObject(part) && typeof part['text'] === 'string' ? part['text'] : null));
  return texts.includes(null) ? null : texts.join('\n');
}
