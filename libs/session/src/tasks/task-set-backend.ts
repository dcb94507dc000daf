import { type Message, PalestraError, type Split, type TaskSpec, type ToolsAnswer } from '@palestra/protocol';
import type { Backend, BackendCreate, BackendSession, BackendSessionRef } from '../ports/backend.port.ts';
import type { NativeServer, UploadedTasks } from '../ports/native.port.ts';
import type { TaskPosition, TaskSource } from './task-source.ts';

/** A split with more tasks cannot be listed; it is read by index, page by page. */
const LISTABLE_TASKS = 100_000;

/**
 * An environment with uploaded tasks. Splits and tasks come from the source, for every variant, instead of from the server. An episode is
 * opened with the specification of its task. If the task has a prompt, it replaces the prompt of the session. All other calls go to the
 * inner backend.
 */
export class TaskSetBackend implements Backend, UploadedTasks {
  readonly #inner: Backend;
  readonly #source: TaskSource;
  declare readonly native?: NativeServer;

  constructor(inner: Backend, source: TaskSource) {
    this.#inner = inner;
    this.#source = source;
    if (inner.native) this.native = inner.native.withTasks(this);
  }

  environments(signal: AbortSignal): Promise<string[]> {
    return this.#inner.environments(signal);
  }
  tools(env: string | null, signal: AbortSignal): Promise<ToolsAnswer> {
    return this.#inner.tools(env, signal);
  }

  async splits(_env: string | null, signal: AbortSignal): Promise<Split[]> {
    return (await this.#source.splits(signal)).map(({ name, type }) => ({ name, type }));
  }

  async tasks(env: string | null, split: string, signal: AbortSignal): Promise<TaskSpec[]> {
    const count = await this.numTasks(env, split, signal);
    if (count > LISTABLE_TASKS) throw new PalestraError('tasks_not_listable');
    return this.#source.specs(split, 0, count, signal);
  }

  async numTasks(_env: string | null, split: string, signal: AbortSignal): Promise<number> {
    const found = (await this.#source.splits(signal)).find(({ name }) => name === split);
    if (found === undefined) throw new PalestraError('invalid_split');
    return found.num_tasks;
  }

  async task(env: string | null, split: string, index: number, signal: AbortSignal): Promise<TaskSpec> {
    const place = await this.#place(env, split, index, signal);
    return (await this.#source.specs(split, place.index, place.index + 1, signal))[0];
  }

  async taskRange(env: string | null, split: string, start: number | null, stop: number | null, signal: AbortSignal): Promise<TaskSpec[]> {
    const count = await this.numTasks(env, split, signal);
    const clamp = (bound: number) => Math.min(Math.max(bound < 0 ? count + bound : bound, 0), count);
    const [first, end] = [clamp(start ?? 0), clamp(stop ?? count)];
    if (end - first > LISTABLE_TASKS)
      throw new PalestraError('invalid_index_range', { detail: `Invalid index range: at most ${LISTABLE_TASKS} tasks at once` });
    return first < end ? this.#source.specs(split, first, end, signal) : [];
  }

  async create(request: BackendCreate, signal: AbortSignal): Promise<BackendSessionRef> {
    const { task, env } = request;
    if (task.kind === 'none') return { ref: await this.#inner.create(request, signal) };
    const place =
      task.kind === 'spec' ? await this.#source.find(task.spec, signal) : await this.#place(env, task.split, task.index, signal);
    const spec = task.kind === 'spec' ? task.spec : await this.task(env, task.split, task.index, signal);
    const ref = await this.#inner.create({ ...request, task: { kind: 'spec', spec } }, signal);
    return place === null ? { ref } : { ref, split: place.split, index: place.index };
  }

  session(ref: BackendSessionRef): BackendSession {
    const inner = this.#inner.session(ref['ref'] as BackendSessionRef);
    const session =
      typeof ref['split'] === 'string' && typeof ref['index'] === 'number'
        ? promptedSession(inner, this.#source, { split: ref['split'], index: ref['index'] })
        : inner;
    return inner.native ? Object.assign(delegating(session), { native: inner.native.withTasks(this) }) : session;
  }

  close(): Promise<void> {
    return this.#inner.close();
  }

  async specById(id: string, signal: AbortSignal): Promise<TaskSpec> {
    const place = await this.#source.findById(id, signal);
    if (place === null) throw new PalestraError('invalid_index', { detail: `Invalid task id '${id}'` });
    return (await this.#source.specs(place.split, place.index, place.index + 1, signal))[0];
  }

  /** Negative positions count from the end, as in Python. */
  async #place(env: string | null, split: string, index: number, signal: AbortSignal): Promise<TaskPosition> {
    const count = await this.numTasks(env, split, signal);
    const position = index < 0 ? count + index : index;
    if (!Number.isInteger(position) || position < 0 || position >= count) throw new PalestraError('invalid_index');
    return { split, index: position };
  }
}

/** The session with the prompt of its task, if the task has one. The prompt is still returned only after setup. */
function promptedSession(inner: BackendSession, source: TaskSource, place: TaskPosition): BackendSession {
  const taskMessages = async (signal: AbortSignal): Promise<Message[] | null> => {
    const prompt = await source.prompt(place, signal);
    if (prompt !== null) await (inner.ready ? inner.ready(signal) : inner.prompt(signal));
    return prompt;
  };
  return Object.assign(delegating(inner), {
    prompt: async (signal: AbortSignal) => (await taskMessages(signal))?.flatMap(({ blocks }) => blocks) ?? inner.prompt(signal),
    messages: async (signal: AbortSignal) => (await taskMessages(signal)) ?? inner.messages(signal),
  });
}

/** A session that delegates every call; callers override some. */
function delegating(inner: BackendSession): BackendSession {
  const session: BackendSession = {
    prompt: (signal) => inner.prompt(signal),
    messages: (signal) => inner.messages(signal),
    taskTools: (signal) => inner.taskTools(signal),
    call: (request, signal) => inner.call(request, signal),
    scoreGroup: (candidates, taskId, signal) => inner.scoreGroup(candidates, taskId, signal),
    ping: (signal) => inner.ping(signal),
    delete: (signal) => inner.delete(signal),
  };
  if (inner.ready) session.ready = (signal) => inner.ready!(signal);
  return session;
}
