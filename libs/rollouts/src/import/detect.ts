import { type ImportFormat, isObject } from '@palestra/protocol';
import { readJson } from './json-lines.ts';

/** Bytes of the start of a file that `detectFormat` needs. */
export const SNIFF_BYTES = 1024 * 1024;

/**
 * Detects the format of a file from its name and start; null if neither tells. `head`: up to `SNIFF_BYTES`. A longer first line is
 * recognised by the keys in its start.
 */
export function detectFormat(name: string, head: Uint8Array): ImportFormat | null {
  if (name.endsWith('.eval') || (head[0] === 0x50 && head[1] === 0x4b)) return 'inspect';
  const text = new TextDecoder()
    .decode(head)
    .replace(/^\uFEFF/, '')
    .trimStart();
  const line = text.split('\n', 1)[0]!;
  const keys = keysOf(line) ?? keysOf(text) ?? new Set([...text.matchAll(/"([a-zA-Z_]{2,20})"\s*:/g)].map((match) => match[1]!));
  const has = (...wanted: string[]) => wanted.every((key) => keys.has(key));
  if (has('eval', 'version') || has('eval', 'status')) return 'inspect';
  if (has('eventType') || has('events')) return 'palestra';
  if (has('traces') || has('example_id', 'completion') || has('prompt', 'completion', 'metrics')) return 'verifiers';
  if (has('messages') && (has('num_messages') || has('rolloutName') || has('run_info') || has('rollout_id'))) return 'palestra';
  if (has('messages') || has('choices') || has('request', 'response') || has('prompt', 'completion') || has('samples')) return 'openai';
  return null;
}

function keysOf(text: string): Set<string> | null {
  try {
    const value = readJson(text);
    return isObject(value) ? new Set(Object.keys(value)) : null;
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}
