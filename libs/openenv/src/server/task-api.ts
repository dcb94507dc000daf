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

/** OpenEnv hosts one environment per server. */
export const environmentNames = (hosted: HostedEnvironment): string[] => [hosted.name];

/** OpenEnv's Task API (docs/reference/openenv.md#task-api): like ORS, but `task` and `task_range` answer without `env_name`. */
export async function askTasks(hosted: HostedEnvironment, env: string, operation: TaskOperation, body: JsonValue): Promise<JsonValue> {
  const variant = await variantOf(hosted, env);
  const { backend } = hosted;
  const signal = AbortSignal.timeout(DEADLINE_MS);
  if (operation !== 'splits') assertKnownKeys(body, FIELDS[operation]);
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
  const variantName = env.toLowerCase();
  if (hosted.name.toLowerCase() === variantName) return null;
  const variants = await hosted.backend.environments(AbortSignal.timeout(DEADLINE_MS));
  if (variants.includes(variantName)) return variantName;
  throw new PalestraError('unknown_variant', { detail: `unknown environment '${env}'` });
}

/** These routes refuse unknown keys, which ORS ignores. */
function assertKnownKeys(body: JsonValue, known: string[]): void {
  if (!isObject(body)) return;
  const unknown = Object.keys(body).filter((key) => !known.includes(key));
  if (unknown.length === 0) return;
  const item = (key: string): JsonObject => ({
    type: 'extra_forbidden',
    loc: ['body', key],
    msg: 'Extra inputs are not permitted',
    input: body[key],
  });
  throw new PalestraError('invalid_body', { detail: unknown.map(item) });
}

function invalidIndex(error: unknown): never {
  if (error instanceof PalestraError && error.code === 'invalid_index')
    throw new PalestraError('invalid_index', { detail: 'Invalid task index' });
  throw error as Error;
}
