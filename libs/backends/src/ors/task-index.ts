import type { TaskSpec } from '@palestra/protocol';
import type { Backend } from '@palestra/session';

/** The positions that a `task_range` names: null bounds, negatives and clamping as in Python's slices. */
export function indexesOfRange(count: number, start: number | null, stop: number | null): number[] {
  const clamp = (bound: number) => Math.min(Math.max(bound < 0 ? count + bound : bound, 0), count);
  const [first, end] = [clamp(start ?? 0), clamp(stop ?? count)];
  return Array.from({ length: Math.max(0, end - first) }, (_, offset) => first + offset);
}

const PAGE = 1_000;

/** Every task of an environment that refuses to list them. */
export async function tasksByIndex(backend: Backend, env: string | null, split: string, signal: AbortSignal): Promise<TaskSpec[]> {
  const count = await backend.numTasks(env, split, signal);
  const tasks: TaskSpec[] = [];
  while (tasks.length < count) {
    const page = await backend.taskRange(env, split, tasks.length, Math.min(tasks.length + PAGE, count), signal);
    if (page.length === 0) break;
    tasks.push(...page);
  }
  return tasks;
}
