import { z } from 'zod';
import type { JsonValue, Message, OutputBlock } from '@palestra/protocol';

/** Formats of a `prompt` column: a text, or messages as trainers write them (`content`) or as sessions return them (`blocks`). */
const text = z.object({ type: z.literal('text'), text: z.string() });
const image = z.object({ type: z.literal('image_url'), image_url: z.object({ url: z.string() }) });
const inline = z.object({ type: z.literal('image'), data: z.string(), mimeType: z.string() });
const part = z.union([text, image, inline], {
  error: 'expected a part {"type":"text","text"} or {"type":"image_url","image_url":{"url"}}',
});
const role = z.enum(['system', 'user', 'assistant'], { error: 'role must be system, user or assistant' });
const content = z.union([z.string(), z.array(part)], { error: 'content must be a text or a list of parts' });
const message = z.union([z.object({ role, content }), z.object({ role, blocks: z.array(part) })], {
  error: 'expected messages {"role","content"} with the role system, user or assistant, and a text or a list of parts',
});
const prompt = z.union([z.string(), z.array(message).min(1)], { error: 'expected a text or a list of messages {"role","content"}' });

const DATA_URL = /^data:([\w.+-]+\/[\w.+-]+);base64,([A-Za-z0-9+/=\s]+)$/;
const textBlock = (value: string): OutputBlock => ({ text: value, detail: null, type: 'text' });

/** The conversation of a `prompt` column. Throws an Error with the reason if it is invalid. */
export function readPrompt(value: JsonValue): Message[] {
  const read = prompt.safeParse(value);
  if (!read.success) throw new Error(`prompt: ${deepest(read.error.issues)}`);
  if (typeof read.data === 'string') return [{ role: 'user', blocks: [textBlock(read.data)], detail: null }];
  return read.data.map((one) => ({ role: one.role, blocks: blocksOf('content' in one ? one.content : one.blocks), detail: null }));
}

const blocksOf = (value: string | z.infer<typeof part>[]): OutputBlock[] =>
  typeof value === 'string' ? [textBlock(value)] : value.map(blockOf);

function blockOf(one: z.infer<typeof part>): OutputBlock {
  if (one.type === 'text') return textBlock(one.text);
  if (one.type === 'image') return { data: one.data, mimeType: one.mimeType, detail: null, type: 'image' };
  const [, mimeType, data] = DATA_URL.exec(one.image_url.url) ?? [];
  if (mimeType === undefined || data === undefined)
    throw new Error('prompt: an image_url must be a base64 data URL; images elsewhere are not fetched');
  return { data, mimeType, detail: null, type: 'image' };
}

/** The deepest issue of a union is the most specific one. */
const deepest = (issues: z.core.$ZodIssue[]): string =>
  issues.map(({ path, message: reason }) => (path.length === 0 ? reason : `${path.join('.')}: ${reason}`)).join('; ');
