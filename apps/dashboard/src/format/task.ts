import type { RolloutRow } from '@palestra/protocol';
import { UNKNOWN } from './number.ts';

/** How a task is named in lists: its index, else the name that the trainer gave the rollout. */
export function taskLabel(row: Pick<RolloutRow, 'task_index' | 'rolloutName' | 'split'>): string {
  if (row.task_index !== null) return `${row.split ?? 'task'} ${row.task_index}`;
  return row.rolloutName ?? UNKNOWN;
}
