import type { RolloutOutline } from '@palestra/protocol';
import { errorOf, nameAt, rewardOf, type TranscriptItem } from './transcript.ts';

/** What a row needs of the outline; the message texts come by position. */
export function rowFacts(outline: RolloutOutline, item: TranscriptItem) {
  const [call, result] = item.kind === 'call' ? [item.call, item.result] : [item.kind === 'message' ? item.at : null, null];
  const sized = result ?? call;
  return {
    call,
    result,
    facts: {
      reward: rewardOf(outline, item),
      error: errorOf(outline, item),
      bytes: sized === null ? 0 : (outline.bytes[sized] ?? 0),
      tool: item.kind === 'call' ? nameAt(outline, item.call) : null,
      durationMs: call === null ? null : (outline.duration_ms[call] ?? null),
    },
  };
}

/** Stays the same while messages come at the end. */
export const rowKey = (item: TranscriptItem): string | number =>
  item.kind === 'gap' ? `gap-${item.from}` : item.kind === 'message' ? item.at : (item.call ?? item.result)!;
