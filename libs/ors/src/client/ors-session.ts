import { type GroupCandidate, type JsonObject, type Message, type MessageBlock, PalestraError, type ToolsAnswer } from '@palestra/protocol';
import type { BackendCall, BackendSession, ToolCallResult } from '@palestra/session';
import { ANSWER_LIMITS } from '@palestra/outbound';
import type { OrsConnection } from './connection.ts';
import { postForResult, type StreamedRequest } from './event-stream.ts';
import { readBlocks, readMessages, readToolResult, readTools } from '../wire/server-answers.ts';
import { detailOf, unknownSession, isUnknownSession, relayedError, type UpstreamAnswer } from '../wire/server-errors.ts';

/** One episode on an ORS server. */
export class OrsSession implements BackendSession {
  readonly #connection: OrsConnection;
  readonly #sid: string;
  readonly #prefix: string;
  readonly #takesCallIds: boolean;

  /**
   * `env`: the server's spelling; a bare path would cost a redirect. `takesCallIds`: the server runs a call once by the id that we send.
   */
  constructor(connection: OrsConnection, sid: string, env: string, takesCallIds: boolean) {
    this.#connection = connection;
    this.#sid = sid;
    this.#prefix = `/${encodeURIComponent(env)}`;
    this.#takesCallIds = takesCallIds;
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
    if (request.mayHaveRun && !this.#takesCallIds) throw new PalestraError('session_lost');
    const body = { name: request.tool, input: request.input };
    const resume = {
      upstreamTaskId: request.upstreamTaskId ?? null,
      onTaskId: request.onUpstreamTaskId ?? (() => {}),
      callId: this.#takesCallIds ? request.taskId : null,
    };
    return readToolResult(await this.#post('/call', body, resume, signal));
  }

  async scoreGroup(candidates: GroupCandidate[], _taskId: string, signal: AbortSignal): Promise<string> {
    return this.#post('/score_group', { candidates }, { upstreamTaskId: null, onTaskId: () => {}, callId: null }, signal);
  }

  async ping(signal: AbortSignal): Promise<void> {
    const answer = await this.#connection.answer({ method: 'POST', path: '/ping', sid: this.#sid }, 'idempotent', signal);
    if (answer.status !== 200) throw isUnknownSession(answer) ? unknownSession() : relayedError(answer);
  }

  async delete(signal: AbortSignal): Promise<void> {
    // `/delete_session` is only for servers without `/delete`: it releases what `/create_session` reserved, which we do not call.
    for (const path of ['/delete', '/delete_session']) {
      const answer = await this.#connection.answer({ method: 'POST', path, sid: this.#sid }, 'idempotent', signal);
      if (answer.status === 200) return;
      // An unknown session needs no delete.
      if (answer.status >= 500) throw relayedError(answer);
    }
  }

  async #get(route: string, signal: AbortSignal): Promise<string> {
    const request = { method: 'GET', path: this.#prefix + route, sid: this.#sid, limitBytes: ANSWER_LIMITS.call } as const;
    const answer = await this.#connection.answer(request, 'idempotent', signal);
    if (answer.status === 200) return answer.text;
    throw await this.#refused(route, answer, signal);
  }

  #post(
    route: '/call' | '/score_group',
    body: JsonObject,
    resume: Pick<StreamedRequest, 'upstreamTaskId' | 'onTaskId' | 'callId'>,
    signal: AbortSignal,
  ): Promise<string> {
    const onRefused = (answer: UpstreamAnswer) => this.#refused(route, answer, signal);
    return postForResult(this.#connection, { path: this.#prefix + route, sid: this.#sid, body, ...resume, onRefused }, signal);
  }

  async #refused(route: string, answer: UpstreamAnswer, signal: AbortSignal): Promise<PalestraError> {
    if (isUnknownSession(answer)) return unknownSession();
    const detail = detailOf(answer);
    if (answer.status === 404 && route === '/messages') return new PalestraError('messages_unsupported', { detail });
    if (answer.status === 404 && route === '/score_group') {
      return new PalestraError('score_group_unsupported', detail === 'Not Found' ? {} : { detail });
    }
    if (answer.status === 500 && (await this.#isSetupFailure(route, detail, signal))) return new PalestraError('setup_failed', { detail });
    return relayedError(answer);
  }

  /** A failed setup answers every route with 500; a `get_prompt` that raises answers its own route only. */
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
