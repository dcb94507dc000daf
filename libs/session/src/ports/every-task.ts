import { PalestraError, type TaskSpec } from '@palestra/protocol';
import type { Backend } from './backend.port.ts';

const PAGE = 1_000;

/** Every task of a split, by pages of the index API when the environment refuses to list them. */
export async function everyTask(backend: Backend, env: string | null, split: string, signal: AbortSignal): Promise<TaskSpec[]> {
  try {
    return await backend.tasks(env, split, signal);
  } catch (error) {
    if (!(error instanceof PalestraError) || error.code !== 'tasks_not_listable') throw error;
    return tasksByIndex(backend, env, split, signal);
  }
}

async function tasksByIndex(backend: Backend, env: string | null, split: string, signal: AbortSignal): Promise<TaskSpec[]> {
  const count = await backend.numTasks(env, split, signal);
  const tasks: TaskSpec[] = [];
  while (tasks.length < count) {
    const page = await backend.taskRange(env, split, tasks.length, Math.min(tasks.length + PAGE, count), signal);
    if (page.length === 0) break;
    tasks.push(...page);
  }
  return tasks;
}
