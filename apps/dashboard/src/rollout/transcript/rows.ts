import type { RolloutOutline } from '@palestra/protocol';
import { errorOf, nameAt, rewardOf, type TranscriptItem } from '../transcript.ts';

/** The data of a row that the outline has, and the positions of its messages. */
export function rowData(outline: RolloutOutline, item: TranscriptItem) {
  const [call, result] = item.kind === 'call' ? [item.call, item.result] : [item.kind === 'message' ? item.at : null, null];
  const sized = result ?? call;
  return {
    call,
    result,
    data: {
      reward: rewardOf(outline, item),
      error: errorOf(outline, item),
      bytes: sized === null ? 0 : (outline.bytes[sized] ?? 0),
      tool: item.kind === 'call' ? nameAt(outline, item.call) : null,
      durationMs: call === null ? null : (outline.duration_ms[call] ?? null),
    },
  };
}

/** Does not change when messages are appended. */
export const rowKey = (item: TranscriptItem): string | number =>
  item.kind === 'gap' ? `gap-${item.from}` : item.kind === 'message' ? item.at : (item.call ?? item.result)!;
