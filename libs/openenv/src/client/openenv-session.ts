import { type JsonObject, type Message, type MessageBlock, type OutputBlock, PalestraError, type ToolsAnswer } from '@palestra/protocol';
import { type BackendCall, type BackendSession, type NativeReply, type ToolCallResult, ToolFailedError } from '@palestra/session';
import type { OpenEnvMessage, OpenEnvSession } from '../wire/native.ts';
import { sessionWithTasks } from './uploaded-tasks.ts';
import { MessageQueue } from './message-queue.ts';
import { refused, resultOfError, resultOfObservation, resultOfReply, resultOfStep } from './tool-results.ts';
import { withoutPixels } from './pixels.ts';
import { changesEpisode, frameOf, STEP } from './message.ts';
import { sessionTools } from './list-tools.ts';
import { endsSession, readReply, type Reply, openingError, sessionLost, type WireError, errorText } from '../wire/server-replies.ts';

/** Carries the messages of one session to its server, one at a time. */
export interface Transport {
  /**
   * Sends a message and resolves with the text of its reply. Rejects with `session_lost` if the message may have run and its reply is lost,
   * or if there is no session; with the signal's reason if that ends the wait.
   */
  send(message: OpenEnvMessage, text: string, signal: AbortSignal): Promise<string>;
  /** Whether the episode survives an error that closes the socket. */
  readonly resumes: boolean;
  /** Idempotent. */
  close(): Promise<void>;
}

export interface OpenEnvSessionOptions {
  transport: Transport;
  toolActions: boolean;
  /** The only tool of an action environment. */
  stepTool: (signal: AbortSignal) => Promise<ToolsAnswer>;
  /** Called once when the episode has ended. `closing` frees its slot. */
  onEnd: (closing: Promise<void>) => void;
}

/** The server cannot serialise the error of a custom validator (docs/reference/openenv.md#errors). */
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

  /** Sends the first message. Throws `setup_failed` with the environment's error. */
  async reset(
    keywords: JsonObject,
    render: (data: JsonObject, images: OutputBlock[]) => MessageBlock[],
    signal: AbortSignal,
  ): Promise<MessageBlock[]> {
    const reply = this.#read(await this.#send({ type: 'reset', data: keywords }, signal));
    if (reply.type === 'error') {
      if (endsSession(reply)) throw this.#end(openingError(reply));
      // OpenEnv does not validate keywords, so a pydantic error comes from the environment's own code.
      throw new PalestraError('setup_failed', { detail: errorText(reply) });
    }
    if (reply.type !== 'observation') throw this.#end(sessionLost('the OpenEnv server answered a reset with something else.'));
    const { data, images } = await withoutPixels(reply.data);
    this.#prompt = render(data, images);
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
    if (reply.type === 'observation') {
      const observed = await withoutPixels(reply.data);
      return resultOfStep(observed.data, observed.images);
    }
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
    if (reply.type !== 'observation') return { reply: text, result: resultOfReply(reply) };
    const { data, images } = await withoutPixels(reply.data);
    return { reply: text, result: resultOfReply({ ...reply, data }, images) };
  }

  async #state(signal: AbortSignal): Promise<JsonObject> {
    const reply = readReply((await this.#exchange({ type: 'state' }, null, signal)).reply);
    if (reply.type === 'state') return reply.data;
    const detail = reply.type === 'error' ? reply.message : 'The environment reports no state.';
    throw new PalestraError('environment_failed', { detail });
  }

  #resultOfError(error: WireError): ToolCallResult {
    if (this.#survivesError(error)) {
      return refused('input_validation', 'Tool input validation error: the environment refuses this action; its server did not say why.');
    }
    if (endsSession(error)) throw this.#end(sessionLost(`the OpenEnv server ended it (${error.message}).`));
    const result = resultOfError(error);
    if ('failed' in result) throw new ToolFailedError(result.failed);
    return result;
  }

  /** A failed validator closes the socket before anything runs; an attached episode survives. */
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
      // The wait ended while a step was on its way: its outcome is unknown.
      if (signal.aborted && changesEpisode(message)) this.#end(sessionLost('the wait for its last reply was aborted.'));
      if (error instanceof PalestraError && error.code === 'session_lost') throw this.#end(error);
      // The client cannot know what its message did, so the episode cannot go on.
      if (error instanceof PalestraError && error.code === 'answer_too_large') this.#end(sessionLost(error.message));
      throw error;
    }
  }

  /** An unreadable frame may be the reply to a step, so the session ends. */
  #read(text: string): Reply {
    try {
      return readReply(text);
    } catch (error) {
      throw this.#end(sessionLost('the OpenEnv server sent an unreadable reply. The last call may or may not have run.', error));
    }
  }

  #assertOpen(): void {
    if (this.#ended !== null) throw this.#ended;
  }

  /** Ends the session and frees its slot on the server. */
  #end(reason: PalestraError): PalestraError {
    if (this.#ended !== null) return this.#ended;
    this.#ended = reason;
    this.#closing = this.#options.transport.close();
    this.#closing.catch(() => {});
    this.#options.onEnd(this.#closing);
    return reason;
  }
}
