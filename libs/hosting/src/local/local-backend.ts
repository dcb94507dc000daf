import { type Link, type LinkMethod, type LinkParams, type LinkResult, ToolRaisedError } from '@palestra/environment-kit';
import {
  type GroupCandidate,
  type Message,
  type MessageBlock,
  PalestraError,
  type Split,
  type TaskSpec,
  type ToolsAnswer,
} from '@palestra/protocol';
import {
  type Backend,
  type BackendCall,
  type BackendCreate,
  type BackendSession,
  type BackendSessionRef,
  taskOf,
  type ToolCallResult,
  ToolFailedError,
} from '@palestra/session';

const DELETE_MS = 10_000;

/** A bundled environment in a child process, reached over its link. `close` ends the link, not the process. */
export class LocalBackend implements Backend {
  readonly #link: Link;

  constructor(link: Link) {
    this.#link = link;
  }

  environments(signal: AbortSignal): Promise<string[]> {
    return this.#link.request('environments', null, signal);
  }
  tools(env: string | null, signal: AbortSignal): Promise<ToolsAnswer> {
    return this.#link.request('tools', { env }, signal);
  }
  splits(env: string | null, signal: AbortSignal): Promise<Split[]> {
    return this.#link.request('splits', { env }, signal);
  }
  tasks(env: string | null, split: string, signal: AbortSignal): Promise<TaskSpec[]> {
    return this.taskRange(env, split, null, null, signal);
  }
  numTasks(env: string | null, split: string, signal: AbortSignal): Promise<number> {
    return this.#link.request('numTasks', { env, split }, signal);
  }
  task(env: string | null, split: string, index: number, signal: AbortSignal): Promise<TaskSpec> {
    return this.#link.request('task', { env, split, index }, signal);
  }
  taskRange(env: string | null, split: string, start: number | null, stop: number | null, signal: AbortSignal): Promise<TaskSpec[]> {
    return this.#link.request('taskRange', { env, split, start, stop }, signal);
  }

  async create(request: BackendCreate, signal: AbortSignal): Promise<BackendSessionRef> {
    const { sid, env, toolsetName, secrets, again } = request;
    const task = taskOf(request);
    const values = Object.fromEntries(Object.entries(secrets).map(([key, { value }]) => [key, value]));
    if (again) await this.#link.request('delete', { sid }, signal);
    try {
      await this.#link.request('create', { sid, env, task, toolsetName, secrets: values }, signal);
    } catch (error) {
      // The caller left while the constructor ran, so its session is deleted. A link keeps the order of messages.
      if (signal.aborted) this.#link.request('delete', { sid }, AbortSignal.timeout(DELETE_MS)).catch(() => {});
      throw error;
    }
    return { sid, env };
  }

  session(ref: BackendSessionRef): BackendSession {
    return new LocalSession(this.#link, ref as { sid: string; env: string | null });
  }

  async close(): Promise<void> {
    this.#link.close();
  }
}

const GONE: ReadonlySet<string> = new Set(['session_not_found', 'backend_unreachable']);

class LocalSession implements BackendSession {
  readonly #link: Link;
  readonly #sid: string;
  readonly #env: string | null;

  constructor(link: Link, { sid, env }: { sid: string; env: string | null }) {
    this.#link = link;
    this.#sid = sid;
    this.#env = env;
  }

  async ready(signal: AbortSignal): Promise<void> {
    await this.#request('ready', { sid: this.#sid }, signal);
  }
  prompt(signal: AbortSignal): Promise<MessageBlock[]> {
    return this.#request('prompt', { sid: this.#sid }, signal);
  }
  messages(signal: AbortSignal): Promise<Message[]> {
    return this.#request('messages', { sid: this.#sid }, signal);
  }
  taskTools(signal: AbortSignal): Promise<ToolsAnswer> {
    return this.#request('taskTools', { sid: this.#sid }, signal);
  }

  call({ tool, input, upstreamTaskId, mayHaveRun }: BackendCall, signal: AbortSignal): Promise<ToolCallResult> {
    // The child process ended with the API that started it: whether the call ran is unknown.
    if (upstreamTaskId != null || mayHaveRun) return Promise.reject(new PalestraError('session_lost'));
    return this.#request('call', { sid: this.#sid, name: tool, input }, signal);
  }

  scoreGroup(candidates: GroupCandidate[], _taskId: string, signal: AbortSignal): Promise<string> {
    return this.#request('scoreGroup', { sid: this.#sid, env: this.#env, candidates }, signal);
  }
  async ping(signal: AbortSignal): Promise<void> {
    await this.#request('ping', { sid: this.#sid }, signal);
  }
  async delete(signal: AbortSignal): Promise<void> {
    await this.#link.request('delete', { sid: this.#sid }, signal);
  }

  #request<M extends LinkMethod>(method: M, params: LinkParams<M>, signal: AbortSignal): Promise<LinkResult<M>> {
    return this.#link.request(method, params, signal).catch(rethrow);
  }
}

/** Maps the error of a session that existed. */
function rethrow(error: unknown): never {
  if (error instanceof ToolRaisedError) throw new ToolFailedError(error.message, { cause: error.cause });
  // The process was restarted or has ended.
  if (error instanceof PalestraError && GONE.has(error.code)) throw new PalestraError('session_lost', { cause: error });
  throw error;
}
