import type { Annotation, GroupView, RolloutCalls, RolloutHeader, RolloutOutline } from '@palestra/protocol';
import type { TranscriptItem } from '../transcript.ts';

/** What every tab of the side panel gets. */
export interface PanelProps {
  header: RolloutHeader;
  outline: RolloutOutline;
  items: readonly TranscriptItem[];
  /** Index of the selected message, or null. */
  message: number | null;
  group: GroupView | undefined;
  calls: RolloutCalls | undefined;
  annotations: readonly Annotation[];
  solved: (reward: number) => boolean;
  /** Selects the row and scrolls to it. */
  go: (row: number) => void;
  notify: (text: string) => void;
}
