import type { RolloutRow } from '@palestra/protocol';
import { UNKNOWN } from './number.ts';

/** How a task is named in lists: its index, else the name that the trainer gave the rollout. */
export function taskLabel(row: Pick<RolloutRow, 'task_index' | 'rolloutName' | 'split'>): string {
  if (row.task_index !== null) return `${row.split ?? 'task'} ${row.task_index}`;
  return row.rolloutName ?? UNKNOWN;
}

/** A task that figures are told of; `chars`: of a key, which may be a long hash, only so many. */
export function taskName(task: { index: number | null; split: string | null; key: string } | null, chars = Infinity): string {
  if (task === null) return UNKNOWN;
  return task.index === null ? task.key.slice(0, chars) : `${task.split ?? 'task'} ${task.index}`;
}
