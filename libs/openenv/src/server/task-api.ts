import {
  isObject,
  type JsonObject,
  type JsonValue,
  PalestraError,
  readSplitBody,
  readTaskBody,
  readTaskRangeBody,
} from '@palestra/protocol';
import { listAllTasks, type HostedEnvironment } from '@palestra/session';

export type TaskOperation = 'splits' | 'tasks' | 'num_tasks' | 'task' | 'task_range';
const DEADLINE_MS = 120_000;

const FIELDS: Record<Exclude<TaskOperation, 'splits'>, string[]> = {
  tasks: ['split'],
  num_tasks: ['split'],
  task: ['split', 'index'],
  task_range: ['split', 'start', 'stop'],
};

/** Names of the one environment behind an address: OpenEnv hosts one per server. */
export const environmentNames = (hosted: HostedEnvironment): string[] => [hosted.name];

/**
 * OpenEnv's Task API (openenv-wire.md section 13): the questions of the Open Reward Standard, answered without `env_name` in `task` and
 * `task_range`.
 */
export async function askTasks(hosted: HostedEnvironment, env: string, operation: TaskOperation, body: JsonValue): Promise<JsonValue> {
  const variant = await variantOf(hosted, env);
  const { backend } = hosted;
  const signal = AbortSignal.timeout(DEADLINE_MS);
  if (operation !== 'splits') forbidOthers(body, FIELDS[operation]);
  switch (operation) {
    case 'splits':
      return backend.splits(variant, signal);
    case 'tasks': {
      const { split } = readSplitBody(body);
      return { tasks: await listAllTasks(backend, variant, split, signal), env_name: env };
    }
    case 'num_tasks':
      return { num_tasks: await backend.numTasks(variant, readSplitBody(body).split, signal) };
    case 'task': {
      const { split, index } = readTaskBody(body);
      return { task: await backend.task(variant, split, index, signal).catch(invalidIndex) };
    }
    case 'task_range': {
      const { split, start, stop } = readTaskRangeBody(body);
      return { tasks: await backend.taskRange(variant, split, start, stop, signal) };
    }
  }
}

async function variantOf(hosted: HostedEnvironment, env: string): Promise<string | null> {
  const wanted = env.toLowerCase();
  if (hosted.name.toLowerCase() === wanted) return null;
  const variants = await hosted.backend.environments(AbortSignal.timeout(DEADLINE_MS));
  if (variants.includes(wanted)) return wanted;
  throw new PalestraError('unknown_variant', { detail: `unknown environment '${env}'` });
}

/** What these routes refuse and those of the Open Reward Standard ignore. */
function forbidOthers(body: JsonValue, known: string[]): void {
  if (!isObject(body)) return;
  const strange = Object.keys(body).filter((key) => !known.includes(key));
  if (strange.length === 0) return;
  const item = (key: string): JsonObject => ({
    type: 'extra_forbidden',
    loc: ['body', key],
    msg: 'Extra inputs are not permitted',
    input: body[key],
  });
  throw new PalestraError('invalid_body', { detail: strange.map(item) });
}

function invalidIndex(error: unknown): never {
  if (error instanceof PalestraError && error.code === 'invalid_index')
    throw new PalestraError('invalid_index', { detail: 'Invalid task index' });
  throw error as Error;
}
