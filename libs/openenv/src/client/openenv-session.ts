import { type JsonObject, type Message, type MessageBlock, PalestraError, type ToolsAnswer } from '@palestra/protocol';
import { type BackendCall, type BackendSession, type NativeReply, type ToolCallResult, ToolFailedError } from '@palestra/session';
import type { OpenEnvMessage, OpenEnvSession } from '../wire/native.ts';
import { sessionWithTasks } from './uploaded-tasks.ts';
import { MessageQueue } from './message-queue.ts';
import { refused, resultOfError, resultOfObservation, resultOfReply, resultOfStep } from './tool-results.ts';
import { changesEpisode, frameOf, STEP } from './message.ts';
import { sessionTools } from './list-tools.ts';
import { endsSession, readReply, type Reply, openingError, sessionLost, type WireError, errorText } from '../wire/server-replies.ts';

/** How the messages of one session reach its server, one at a time. */
export interface Transport {
  /**
   * Sends a message, resolves with the text of its one reply. Rejects with `session_lost` when the message may have run and its reply is not to
   * be had any more, or when there is no session; with the signal's reason when that ends the wait.
   */
  send(message: OpenEnvMessage, text: string, signal: AbortSignal): Promise<string>;
  /** Whether the episode outlives an error that closes the socket. */
  readonly resumes: boolean;
  /** Idempotent. */
  close(): Promise<void>;
}

export interface OpenEnvSessionOptions {
  transport: Transport;
  toolActions: boolean;
  /** The one tool of an action environment. */
  stepTool: (signal: AbortSignal) => Promise<ToolsAnswer>;
  /** Called once, when the episode is over or lost, with what frees its slot. */
  onEnd: (closing: Promise<void>) => void;
}

/** A reply that no validator's failure is: pydantic's list of errors, which the server cannot write (openenv-wire.md section 4). */
const FAILED_VALIDATOR = /^Unable to serialize unknown type/;

/** An episode on an OpenEnv server of any generation. */
export class OpenEnvEpisode implements BackendSession {
  readonly native: OpenEnvSession = {
    exchange: (message, call, signal) => this.#exchange(message, call, signal),
    state: (signal) => this.#state(signal),
    withTasks: (tasks) => sessionWithTasks(this.native, tasks),
  };
  readonly #options: OpenEnvSessionOptions;
  readonly #queue = new MessageQueue();
  #prompt: MessageBlock[] | null = null;
  #ended: PalestraError | null = null;
  #closing: Promise<void> | null = null;

  constructor(options: OpenEnvSessionOptions, prompt: MessageBlock[] | null) {
    this.#options = options;
    this.#prompt = prompt;
  }

  /** The first message. Throws `setup_failed` with the environment's words. */
  async reset(keywords: JsonObject, render: (data: JsonObject) => MessageBlock[], signal: AbortSignal): Promise<MessageBlock[]> {
    const reply = this.#read(await this.#send({ type: 'reset', data: keywords }, signal));
    if (reply.type === 'error') {
      if (endsSession(reply)) throw this.#end(openingError(reply));
      // Keywords are not validated here: what pydantic refuses is the environment's own doing.
      throw new PalestraError('setup_failed', { detail: errorText(reply) });
    }
    if (reply.type !== 'observation') throw this.#end(sessionLost('the OpenEnv server answered a reset with something else.'));
    this.#prompt = render(reply.data);
    return this.#prompt;
  }

  async ready(): Promise<void> {
    this.#assertOpen();
  }

  async prompt(): Promise<MessageBlock[]> {
    this.#assertOpen();
    if (this.#prompt !== null) return this.#prompt;
    throw new PalestraError('environment_failed', { detail: 'This episode has no prompt: its client resets it by itself.' });
  }

  messages(): Promise<Message[]> {
    return Promise.reject(new PalestraError('messages_unsupported'));
  }

  async taskTools(signal: AbortSignal): Promise<ToolsAnswer> {
    this.#assertOpen();
    if (!this.#options.toolActions) return this.#options.stepTool(signal);
    return sessionTools((message) => this.#send(message, signal));
  }

  async call({ tool, input, mayHaveRun, upstreamTaskId }: BackendCall, signal: AbortSignal): Promise<ToolCallResult> {
    if (mayHaveRun === true || upstreamTaskId != null) throw new PalestraError('session_lost');
    const { toolActions } = this.#options;
    if (!toolActions && tool !== STEP) return refused('not_found', `'${tool}' is not a valid tool`);
    const data = toolActions ? { type: 'call_tool', tool_name: tool, arguments: input } : input;
    const reply = this.#read(await this.#send({ type: 'step', data }, signal));
    if (reply.type === 'observation') return resultOfStep(reply.data);
    if (reply.type !== 'error') throw this.#end(sessionLost('the OpenEnv server answered a step with something else.'));
    return this.#resultOfError(reply);
  }

  scoreGroup(): Promise<string> {
    return Promise.reject(new PalestraError('score_group_unsupported'));
  }

  async ping(): Promise<void> {
    this.#assertOpen();
  }

  delete(): Promise<void> {
    this.#end(new PalestraError('session_deleted'));
    return this.#closing!;
  }

  async #exchange(
    message: OpenEnvMessage,
    work: Pick<BackendCall, 'taskId' | 'mayHaveRun'> | null,
    signal: AbortSignal,
  ): Promise<NativeReply> {
    if (work?.mayHaveRun === true && changesEpisode(message)) throw new PalestraError('session_lost');
    const text = await this.#send(message, signal);
    const observed = resultOfObservation(text);
    if (observed !== null) return { reply: text, result: observed };
    const reply = this.#read(text);
    if (reply.type === 'error' && endsSession(reply) && !this.#survivesError(reply)) {
      this.#end(sessionLost(`the OpenEnv server ended it (${reply.message}).`));
    }
    return { reply: text, result: resultOfReply(reply) };
  }

  async #state(signal: AbortSignal): Promise<JsonObject> {
    const reply = readReply((await this.#exchange({ type: 'state' }, null, signal)).reply);
    if (reply.type === 'state') return reply.data;
    const detail = reply.type === 'error' ? reply.message : 'The environment reports no state.';
    throw new PalestraError('environment_failed', { detail });
  }

  #resultOfError(error: WireError): ToolCallResult {
    if (this.#survivesError(error)) {
      return refused(
        'input_validation',
        'Tool input validation error: the environment refuses this action, and its server lost the words for it.',
      );
    }
    if (endsSession(error)) throw this.#end(sessionLost(`the OpenEnv server ended it (${error.message}).`));
    const result = resultOfError(error);
    if ('failed' in result) throw new ToolFailedError(result.failed);
    return result;
  }

  /** A validator that failed has closed the socket before anything ran, and an attached episode is still there. */
  #survivesError(error: WireError): boolean {
    return this.#options.transport.resumes && error.code === 'SESSION_ERROR' && FAILED_VALIDATOR.test(error.message);
  }

  async #send(message: OpenEnvMessage, signal: AbortSignal): Promise<string> {
    this.#assertOpen();
    const text = frameOf(message);
    return await this.#queue.run(() => this.#sendNow(message, text, signal), signal);
  }

  async #sendNow(message: OpenEnvMessage, text: string, signal: AbortSignal): Promise<string> {
    this.#assertOpen();
    try {
      return await this.#options.transport.send(message, text, signal);
    } catch (error) {
      // A wait that ended early with a step on its way: nobody knows what became of it.
      if (signal.aborted && changesEpisode(message)) this.#end(sessionLost('its last message was given up before the reply came.'));
      if (error instanceof PalestraError && error.code === 'session_lost') throw this.#end(error);
      // Whoever plays has not seen what their message did, so they cannot go on.
      if (error instanceof PalestraError && error.code === 'answer_too_large') this.#end(sessionLost(error.message));
      throw error;
    }
  }

  /** What cannot be read may have been a step's reply, so nothing is to be asked again. */
  #read(text: string): Reply {
    try {
      return readReply(text);
    } catch (error) {
      throw this.#end(sessionLost('the OpenEnv server sent a reply that is none. The last call may or may not have run.', error));
    }
  }

  #assertOpen(): void {
    if (this.#ended !== null) throw this.#ended;
  }

  /** Whatever ended it: its slot on the server is given back. */
  #end(why: PalestraError): PalestraError {
    if (this.#ended !== null) return this.#ended;
    this.#ended = why;
    this.#closing = this.#options.transport.close();
    this.#closing.catch(() => {});
    this.#options.onEnd(this.#closing);
    return why;
  }
}
