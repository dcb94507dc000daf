import type { RolloutRow } from '@palestra/protocol';
import { UNKNOWN } from './number.ts';

/** The name of a task in lists: its index, else the name of the rollout. */
export function taskLabel(row: Pick<RolloutRow, 'task_index' | 'rolloutName' | 'split'>): string {
  if (row.task_index !== null) return `${row.split ?? 'task'} ${row.task_index}`;
  return row.rolloutName ?? UNKNOWN;
}

/** The name of a task with figures. `chars` limits the length of a key, which can be a long hash. */
export function taskName(task: { index: number | null; split: string | null; key: string } | null, chars = Infinity): string {
  if (task === null) return UNKNOWN;
  return task.index === null ? task.key.slice(0, chars) : `${task.split ?? 'task'} ${task.index}`;
}
