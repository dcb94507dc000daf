import { PalestraError, type Split, type TaskSpec } from '@palestra/protocol';

/** The tasks of an environment. `env`: a variant; null means the default one. */
export interface TaskCatalogue {
  /** Names of the environment classes (variants) in lower case. The first is the default. */
  environments(signal: AbortSignal): Promise<string[]>;
  splits(env: string | null, signal: AbortSignal): Promise<Split[]>;
  /** Every task of a split. Throws `tasks_not_listable` where the environment has only the index API; see `listAllTasks`. */
  tasks(env: string | null, split: string, signal: AbortSignal): Promise<TaskSpec[]>;
  numTasks(env: string | null, split: string, signal: AbortSignal): Promise<number>;
  task(env: string | null, split: string, index: number, signal: AbortSignal): Promise<TaskSpec>;
  /** Tasks from `start` to `stop` (exclusive). Null is the default, a negative bound counts from the end, and bounds are clamped. */
  taskRange(env: string | null, split: string, start: number | null, stop: number | null, signal: AbortSignal): Promise<TaskSpec[]>;
}

const PAGE = 1_000;

/** Every task of a split; read page by page through the index API when the environment refuses to list them. */
export async function listAllTasks(catalogue: TaskCatalogue, env: string | null, split: string, signal: AbortSignal): Promise<TaskSpec[]> {
  try {
    return await catalogue.tasks(env, split, signal);
  } catch (error) {
    if (!(error instanceof PalestraError) || error.code !== 'tasks_not_listable') throw error;
    return listByIndex(catalogue, env, split, signal);
  }
}

async function listByIndex(catalogue: TaskCatalogue, env: string | null, split: string, signal: AbortSignal): Promise<TaskSpec[]> {
  const count = await catalogue.numTasks(env, split, signal);
  const tasks: TaskSpec[] = [];
  while (tasks.length < count) {
    const page = await catalogue.taskRange(env, split, tasks.length, Math.min(tasks.length + PAGE, count), signal);
    if (page.length === 0) break;
    tasks.push(...page);
  }
  return tasks;
}
