import { type JsonObject, type MessageType } from '@palestra/protocol';
import { own } from '../json/fields.ts';

/**
 * What is worth knowing about a message without reading it again; computed once, at ingest. Numbers are stored: append only.
 *
 * - `error`: the metadata says `is_error`, `isError`, `error: true`, `ok: false` or `status: "error"`; for results also any other
 *   `error` that is not empty, a `failure_class` other than `ok` (sessions recorded here), or a text that begins with `Error: `, without
 *   reward or end: the words in which SkyRL and firehorse show a call that raised, with no mark in the metadata.
 * - `nudge`: a user message by which a recipe asks for a tool call. `parseError`: one that tells that a call could not be parsed.
 * - `image`: an image in the content (a `data:image/` URL, or a content part of an image type) or in the metadata.
 * - `reasoning`: reasoning, as its own event or in `<think>` inside an assistant message.
 * - `nonfinite`: a NaN or Infinity stood somewhere in the event. `nonfiniteReward`: it was the reward, which is therefore no number.
 */
export const MESSAGE_FLAGS = {
  error: 1,
  nudge: 2,
  parseError: 4,
  image: 8,
  reasoning: 16,
  nonfinite: 32,
  nonfiniteReward: 64,
} as const;

export interface FlaggedMessage {
  type: MessageType;
  content: string | null;
  metadata: JsonObject;
  reward?: number | null;
  isFinished?: boolean;
  nonfinite?: boolean;
  rewardNonfinite?: boolean;
}

const NUDGE = 'No tool call detected. Please use the provided tools to complete the task.';
const PARSE_ERROR = /^\s*(?:<tool_response>\s*)?(?:Tool call parse error:|Error parsing tool call:)/;
// An image that was taken out of the text before it was stored leaves the name of its object.
const IMAGE_TEXT =
  /data:image\/[a-z0-9.+-]{1,40}[;,]|palestra-object:[0-9a-f]{64}\.(?:png|jpeg|gif|webp)|"type"\s{0,8}:\s{0,8}"(?:image|image_url|input_image)"/;
const IMAGE_TYPES: ReadonlySet<unknown> = new Set(['image', 'image_url', 'input_image']);

/** The bits of `MESSAGE_FLAGS`. Linear in the size of the message. */
export function messageFlags(message: FlaggedMessage): number {
  const { type, content, metadata } = message;
  const text = content ?? '';
  let flags = 0;
  if (isError(message)) flags |= MESSAGE_FLAGS.error;
  if (type === 'user_message' && text.trim() === NUDGE) flags |= MESSAGE_FLAGS.nudge;
  if ((type === 'user_message' || type === 'tool_result') && PARSE_ERROR.test(text)) flags |= MESSAGE_FLAGS.parseError;
  if (IMAGE_TEXT.test(text) || hasImage(metadata)) flags |= MESSAGE_FLAGS.image;
  if (type === 'reasoning' || (type === 'assistant_message' && text.includes('<think>'))) flags |= MESSAGE_FLAGS.reasoning;
  if (message.nonfinite === true) flags |= MESSAGE_FLAGS.nonfinite;
  if (message.rewardNonfinite === true) flags |= MESSAGE_FLAGS.nonfinite | MESSAGE_FLAGS.nonfiniteReward;
  return flags;
}

function isError({ type, content, metadata, reward = null, isFinished = false }: FlaggedMessage): boolean {
  const says = (key: string) => own(metadata, key);
  if (says('is_error') === true || says('isError') === true || says('error') === true) return true;
  if (says('ok') === false || says('status') === 'error') return true;
  if (type !== 'tool_result') return false;
  const failureClass = says('failure_class');
  if (typeof failureClass === 'string' && failureClass !== 'ok') return true;
  const error = says('error');
  if (error !== undefined && error !== null && error !== false && error !== '' && error !== 0) return true;
  return reward === null && !isFinished && (content ?? '').startsWith('Error: ');
}

/** An image part, or a string that is an image as a `data:` URL, anywhere in a JSON value. */
function hasImage(root: unknown): boolean {
  const open: unknown[] = [root];
  while (open.length > 0) {
    const value = open.pop();
    if (typeof value === 'string' && value.startsWith('data:image/')) return true;
    if (typeof value !== 'object' || value === null) continue;
    if (!Array.isArray(value) && IMAGE_TYPES.has((value as { type?: unknown }).type)) return true;
    for (const item of Object.values(value)) open.push(item);
  }
  return false;
}
