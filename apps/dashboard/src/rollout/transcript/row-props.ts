import type { RolloutMessageView } from '@palestra/protocol';
import type { Openness } from '../context.ts';
import type { TranscriptItem } from '../transcript.ts';

export interface RowProps {
  item: TranscriptItem;
  reward: number | null;
  /** Bits of the outline: failed result, call that could not be parsed, nudge. */
  error: number;
  /** Size of the result, or of the message. */
  bytes: number;
  /** The called tool. */
  tool: string | null;
  durationMs: number | null;
  /** The row that decided the reward: the only strong mark of the page. */
  decisive: boolean;
  /** Undefined while their page loads. */
  message: RolloutMessageView | undefined;
  result: RolloutMessageView | undefined;
  open: Openness;
  toggle: (anchor: number) => void;
}
