import type { OutputBlock, ToolErrorReason, ToolOutput } from '@palestra/protocol';
import { textBlock, type ToolReturn } from '../definition.ts';

/** The result of a call; `text` is the JSON of its `RunToolOutput`. */
export interface CallResult {
  text: string;
  ok: boolean;
  reason: ToolErrorReason | null;
  reward: number | null;
  finished: boolean;
}

/** Validates the content, because environments run without type checks, and reports invalid content to their author. */
export function toBlocks(content: string | OutputBlock | OutputBlock[]): OutputBlock[] {
  if (typeof content === 'string') return [textBlock(content)];
  const blocks = Array.isArray(content) ? content : [content];
  for (const block of blocks)
    if (!isBlock(block)) throw new TypeError(`content must be a text, or blocks of text or image, not ${nameOf(block)}`);
  return blocks;
}

function isBlock(block: Partial<OutputBlock> | null | undefined): boolean {
  if (block?.type === 'text') return typeof block.text === 'string';
  return block?.type === 'image' && typeof block.data === 'string' && typeof block.mimeType === 'string';
}

function nameOf(value: unknown): string {
  if (typeof value !== 'object' || value === null) return String(value);
  return Array.isArray(value) ? 'a list' : `an object with ${Object.keys(value).join(', ') || 'nothing'}`;
}

function toToolOutput(returned: ToolReturn): ToolOutput {
  if (typeof returned !== 'string' && (typeof returned !== 'object' || returned === null)) {
    throw new TypeError(`a tool must return a text, blocks, or { content, reward, finished, metadata }, not ${nameOf(returned)}`);
  }
  if (typeof returned === 'string' || Array.isArray(returned) || 'type' in returned) {
    return { blocks: toBlocks(returned), metadata: null, reward: null, finished: false };
  }
  const { content = [], reward = null, finished = false, metadata = null } = returned;
  if (reward !== null && !Number.isFinite(reward)) throw new TypeError(`a reward must be a finite number, not ${nameOf(reward)}`);
  if (typeof finished !== 'boolean') throw new TypeError(`finished must be true or false, not ${nameOf(finished)}`);
  if (typeof metadata !== 'object' || Array.isArray(metadata)) throw new TypeError(`metadata must be an object, not ${nameOf(metadata)}`);
  return { blocks: toBlocks(content), metadata, reward, finished };
}

/** A number with a decimal point, because clients of the reference parse a reward as a float: `1.0`, not `1`. */
export const floatText = (value: number): string => (Number.isInteger(value) && Math.abs(value) < 1e21 ? `${value}.0` : String(value));

export function succeed(returned: ToolReturn): CallResult {
  const { blocks, metadata, reward, finished } = toToolOutput(returned);
  const rewardText = reward === null ? 'null' : floatText(reward);
  const output = `{"blocks":${JSON.stringify(blocks)},"metadata":${JSON.stringify(metadata)},"reward":${rewardText},"finished":${finished}}`;
  return { text: `{"ok":true,"output":${output}}`, ok: true, reason: null, reward, finished };
}

export function refuse(reason: ToolErrorReason, error: string): CallResult {
  return { text: JSON.stringify({ ok: false, error, reason }), ok: false, reason, reward: null, finished: false };
}

/** A name in quotes like in messages of the reference server (Python's `repr`). */
export const quoted = (name: string): string =>
  name.includes("'") && !name.includes('"') ? `"${name}"` : `'${name.replaceAll("'", "\\'")}'`;
