import { type JsonObject, PalestraError, parseJson, stringifyJson, type TaskSpec, toPlainNumber } from '@palestra/protocol';
import type { UploadedTasks } from '@palestra/session';
import { OPENENV, type OpenEnvMessage, type OpenEnvUpstream, type OpenEnvSession, type RelayAnswer } from '../wire/native.ts';

const TASK_ROUTE = /^\/([^/]+)\/(splits|tasks|num_tasks|task|task_range)$/;
const TASK_KEYS: Record<string, string[]> = {
  tasks: ['split'],
  num_tasks: ['split'],
  task: ['split', 'index'],
  task_range: ['split', 'start', 'stop'],
};

/** A server with uploaded tasks: its Task API lists them, and a reset can name one. */
export function serverWithTasks(inner: OpenEnvUpstream, tasks: UploadedTasks): OpenEnvUpstream {
  return {
    protocol: OPENENV,
    shape: (signal) => inner.shape(signal),
    withTasks: (others) => serverWithTasks(inner, others),
    async relay(request, signal) {
      const { method, body } = request;
      const [path = ''] = request.path.split('?');
      if (method === 'GET' && path === '/list_environments') return answer(200, await tasks.environments(signal));
      const [, env, route] = TASK_ROUTE.exec(path) ?? [];
      if (env !== undefined && route !== undefined && method === (route === 'splits' ? 'GET' : 'POST'))
        return taskAnswer(tasks, decodeURIComponent(env), route, body, signal);
      if (method !== 'POST' || path !== '/reset' || body === null) return inner.relay(request, signal);
      const data = objectOf(body);
      if (data === null) return inner.relay(request, signal);
      try {
        return await inner.relay({ ...request, body: Buffer.from(stringifyJson(await withTask(data, tasks, signal))) }, signal);
      } catch (error) {
        if (isOfClient(error)) return answer(error.status, { detail: error.message });
        throw error;
      }
    },
  };
}

/** An episode that is reset to an uploaded task by `{split, index}` or `{task_id}`: the server gets the keywords of the task. */
export function sessionWithTasks(inner: OpenEnvSession, tasks: UploadedTasks): OpenEnvSession {
  return {
    state: (signal) => inner.state(signal),
    withTasks: (others) => sessionWithTasks(inner, others),
    async exchange(message: OpenEnvMessage, call, signal) {
      if (message.type !== 'reset') return inner.exchange(message, call, signal);
      return inner.exchange({ type: 'reset', data: await withTask(message.data, tasks, signal) }, call, signal);
    },
  };
}

/** Reset keywords; those that the client gave itself win over the task's. */
async function withTask(data: JsonObject, tasks: UploadedTasks, signal: AbortSignal): Promise<JsonObject> {
  const { split, index, task_id: taskId, ...rest } = data;
  const position = toPlainNumber(index);
  let spec: TaskSpec;
  if (typeof split === 'string' && position !== null) spec = await tasks.task(null, split, position, signal);
  else if (typeof taskId === 'string' && index === undefined) {
    // An unknown id can be one of the environment.
    const uploaded = await tasks.specById(taskId, signal).catch((error: unknown) => {
      if (!isOfClient(error)) throw error;
      return undefined;
    });
    if (uploaded === undefined) return data;
    spec = uploaded;
  } else return data;
  if (typeof spec !== 'object' || spec === null || Array.isArray(spec))
    throw new PalestraError('invalid_index', {
      detail: 'This task is not a JSON object: an OpenEnv server can only be reset with keywords.',
    });
  return { ...(spec as JsonObject), ...rest };
}

async function taskAnswer(
  tasks: UploadedTasks,
  env: string,
  route: string,
  body: Buffer | null,
  signal: AbortSignal,
): Promise<RelayAnswer> {
  const names = await tasks.environments(signal);
  if (!names.includes(env.toLowerCase())) return answer(404, { detail: `unknown environment '${env}'` });
  if (route === 'splits') return answer(200, await tasks.splits(env, signal));
  const data = body === null ? null : objectOf(body);
  const known = TASK_KEYS[route]!;
  const split = data?.['split'];
  const extra = Object.keys(data ?? {}).find((key) => !known.includes(key));
  if (typeof split !== 'string') return answer(422, { detail: [{ type: 'missing', loc: ['body', 'split'], msg: 'Field required' }] });
  if (extra !== undefined)
    return answer(422, { detail: [{ type: 'extra_forbidden', loc: ['body', extra], msg: 'Extra inputs are not permitted' }] });
  try {
    return answer(200, await readTasks(tasks, env, route, split, data!, signal));
  } catch (error) {
    if (isOfClient(error)) return answer(400, { detail: error.code === 'invalid_index' ? 'Invalid task index' : error.message });
    throw error;
  }
}

async function readTasks(
  tasks: UploadedTasks,
  env: string,
  route: string,
  split: string,
  data: JsonObject,
  signal: AbortSignal,
): Promise<JsonObject> {
  switch (route) {
    case 'tasks':
      return { tasks: await tasks.tasks(env, split, signal), env_name: env };
    case 'num_tasks':
      return { num_tasks: await tasks.numTasks(env, split, signal) };
    case 'task':
      return { task: await tasks.task(env, split, whole(data['index']) ?? Number.NaN, signal) };
    default:
      return { tasks: await tasks.taskRange(env, split, whole(data['start']), whole(data['stop']), signal) };
  }
}

/** `"1"` is taken as an index, too. */
const whole = (value: unknown): number | null =>
  typeof value === 'string' && /^-?\d{1,9}$/.test(value) ? Number(value) : toPlainNumber(value);

const isOfClient = (error: unknown): error is PalestraError =>
  error instanceof PalestraError && ['invalid_split', 'invalid_index', 'invalid_index_range', 'tasks_not_listable'].includes(error.code);

const answer = (status: number, value: unknown): RelayAnswer => ({
  status,
  body: Buffer.from(stringifyJson(value)),
  contentType: 'application/json',
});

function objectOf(body: Buffer): JsonObject | null {
  try {
    const value = parseJson(body.toString('utf8'));
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as JsonObject) : null;
  } catch {
    return null;
  }
}
