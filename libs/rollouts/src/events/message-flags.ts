import { type JsonObject, type MessageType } from '@palestra/protocol';
import { memberOf } from '../json/fields.ts';

/**
 * Flags of a message, computed once at ingest. Numbers are stored: append only.
 *
 * - `error`: the metadata has `is_error`, `isError`, `error: true`, `ok: false` or `status: "error"`. For results also a non-empty
 *   `error`, a `failure_class` other than `ok` (sessions recorded here), or a text that starts with `Error: ` without reward or end, as
 *   SkyRL and firehorse write a call that raised.
 * - `nudge`: a user message of a recipe that asks for a tool call. `parseError`: a message that reports a call that could not be parsed.
 * - `image`: an image in the content (a `data:image/` URL or an image part) or in the metadata.
 * - `reasoning`: a reasoning event, or `<think>` in an assistant message.
 * - `nonfinite`: NaN or Infinity anywhere in the event, or a reward beyond single precision. `nonfiniteReward`: it was the reward.
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
// Ingest replaces an image in a text by the name of its object.
const IMAGE_TEXT =
  /data:image\/[a-z0-9.+-]{1,40}[;,]|palestra-object:[0-9a-f]{64}\.(?:png|jpeg|gif|webp)|"type"\s{0,8}:\s{0,8}"(?:image|image_url|input_image)"/;
const IMAGE_TYPES: ReadonlySet<unknown> = new Set(['image', 'image_url', 'input_image']);

/** Returns the bits of `MESSAGE_FLAGS`. Linear in the size of the message. */
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
  const says = (key: string) => memberOf(metadata, key);
  if (says('is_error') === true || says('isError') === true || says('error') === true) return true;
  if (says('ok') === false || says('status') === 'error') return true;
  if (type !== 'tool_result') return false;
  const failureClass = says('failure_class');
  if (typeof failureClass === 'string' && failureClass !== 'ok') return true;
  const error = says('error');
  if (error !== undefined && error !== null && error !== false && error !== '' && error !== 0) return true;
  return reward === null && !isFinished && (content ?? '').startsWith('Error: ');
}

/** Whether a JSON value contains an image part or a `data:` URL of an image. */
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
