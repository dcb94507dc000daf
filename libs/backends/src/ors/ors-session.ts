import { type GroupCandidate, type JsonObject, type Message, type MessageBlock, PalestraError, type ToolsAnswer } from '@palestra/protocol';
import type { BackendCall, BackendSession, ToolCallResult } from '@palestra/session';
import type { OrsConnection } from './connection.ts';
import { postForResult } from './event-stream.ts';
import { readBlocks, readMessages, readToolResult, readTools } from './repair.ts';
import { detailOf, forgottenSession, isForgottenSession, relayedError, type UpstreamAnswer } from './upstream-answer.ts';

/** Ids that the server gave to running calls, by the ledger's id; bounded, oldest forgotten first. */
export class UpstreamTasks {
  readonly #ids = new Map<string, string>();
  readonly #limit = 10_000;

  get(taskId: string): string | null {
    return this.#ids.get(taskId) ?? null;
  }

  set(taskId: string, upstreamTaskId: string): void {
    this.#ids.set(taskId, upstreamTaskId);
    if (this.#ids.size > this.#limit) this.#ids.delete(this.#ids.keys().next().value!);
  }

  delete(taskId: string): void {
    this.#ids.delete(taskId);
  }
}

/** One episode on an ORS server. */
export class OrsSession implements BackendSession {
  readonly #connection: OrsConnection;
  readonly #tasks: UpstreamTasks;
  readonly #sid: string;
  readonly #prefix: string;

  /** `env` is a name that the server knows, or bare paths would cost a redirect each. */
  constructor(connection: OrsConnection, tasks: UpstreamTasks, sid: string, env: string) {
    this.#connection = connection;
    this.#tasks = tasks;
    this.#sid = sid;
    this.#prefix = `/${encodeURIComponent(env)}`;
  }

  async prompt(signal: AbortSignal): Promise<MessageBlock[]> {
    return readBlocks(await this.#get('/prompt', signal));
  }

  async messages(signal: AbortSignal): Promise<Message[]> {
    return readMessages(await this.#get('/messages', signal)) as Message[];
  }

  async taskTools(signal: AbortSignal): Promise<ToolsAnswer> {
    return readTools(await this.#get('/task_tools', signal));
  }

  async call(request: BackendCall, signal: AbortSignal): Promise<ToolCallResult> {
    return readToolResult(await this.#post('/call', { name: request.tool, input: request.input }, request.taskId, signal));
  }

  async scoreGroup(candidates: GroupCandidate[], taskId: string, signal: AbortSignal): Promise<string> {
    return this.#post('/score_group', { candidates }, taskId, signal);
  }

  async ping(signal: AbortSignal): Promise<void> {
    const answer = await this.#connection.answer({ method: 'POST', path: '/ping', sid: this.#sid }, 'idempotent', signal);
    if (answer.status !== 200) throw isForgottenSession(answer) ? forgottenSession() : relayedError(answer);
  }

  async delete(signal: AbortSignal): Promise<void> {
    // A server that forgot the session has nothing left to delete.
    for (const path of ['/delete', '/delete_session']) {
      const answer = await this.#connection.answer({ method: 'POST', path, sid: this.#sid }, 'idempotent', signal);
      if (answer.status >= 500) throw relayedError(answer);
    }
  }

  async #get(route: string, signal: AbortSignal): Promise<string> {
    const answer = await this.#connection.answer({ method: 'GET', path: this.#prefix + route, sid: this.#sid }, 'idempotent', signal);
    if (answer.status === 200) return answer.text;
    throw await this.#refused(route, answer, signal);
  }

  async #post(route: '/call' | '/score_group', body: JsonObject, taskId: string, signal: AbortSignal): Promise<string> {
    try {
      return await postForResult(
        this.#connection,
        {
          path: this.#prefix + route,
          sid: this.#sid,
          body,
          upstreamTaskId: this.#tasks.get(taskId),
          onTaskId: (upstreamTaskId) => this.#tasks.set(taskId, upstreamTaskId),
          onRefused: (answer) => this.#refused(route, answer, signal),
        },
        signal,
      );
    } finally {
      // An aborted wait keeps the id: the tool still runs, and a repeat of this call attaches to it.
      if (!signal.aborted) this.#tasks.delete(taskId);
    }
  }

  async #refused(route: string, answer: UpstreamAnswer, signal: AbortSignal): Promise<PalestraError> {
    if (isForgottenSession(answer)) return forgottenSession();
    const detail = detailOf(answer);
    if (answer.status === 404 && route === '/messages') return new PalestraError('messages_unsupported', { detail });
    if (answer.status === 404 && route === '/score_group') {
      return new PalestraError('score_group_unsupported', detail === 'Not Found' ? {} : { detail });
    }
    if (answer.status === 500 && (await this.#isSetupFailure(route, detail, signal))) return new PalestraError('setup_failed', { detail });
    return relayedError(answer);
  }

  /** A stored setup failure is the answer of every route; a `get_prompt` that raises is the answer of its own route only. */
  async #isSetupFailure(route: string, detail: string | object[], signal: AbortSignal): Promise<boolean> {
    if (route !== '/prompt' && route !== '/messages') return true;
    const other = await this.#connection.answer(
      { method: 'GET', path: `${this.#prefix}/task_tools`, sid: this.#sid },
      'idempotent',
      signal,
    );
    return other.status === 500 && JSON.stringify(detailOf(other)) === JSON.stringify(detail);
  }
}
