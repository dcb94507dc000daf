import { type PalestraClient, PalestraApiError, ClientError, type Session, ToolCallError } from '@palestra/client';
import { type PlayedResult, SeededRandom, textOf, toolsWithTerminal } from '@palestra/environment-kit';
import { ChatError } from '@palestra/kit/chat-completions';
import { type JsonObject, type MessageType, type OutputBlock, type StopReason, stringifyJson, type ToolOutput } from '@palestra/protocol';
import {
  type ChatMessage,
  isContextLength,
  type Model,
  type ModelReply,
  ModelTimeoutError,
  textOfBlocks,
  toChat,
  toolMessages,
} from './model.ts';
import type { PlayerOf } from './players.ts';
import { RolloutLog } from './rollout-log.ts';

/** One episode: a sample of a task. Both count from 0. */
export interface EpisodeId {
  task: number;
  sample: number;
}

/** What an episode reached. */
export interface EpisodeResult extends EpisodeId {
  /** Sum of the rewards, 0 without any; null if the episode failed. */
  reward: number | null;
  stop: StopReason;
  /** Null: it did not fail, or by its policy. */
  failure: 'environment' | 'infrastructure' | null;
  error: string | null;
  turns: number;
  calls: number;
  /** Calls that the environment refused, or that had no valid arguments. */
  refused: number;
  tokens: { prompt: number; output: number } | null;
}

export interface EpisodeOptions {
  /** `owner/name@version` */
  environment: string;
  variant: string | undefined;
  split: string;
  policy: { model: Model } | { player: PlayerOf };
  maxTurns: number;
}

/** Of the text of a model's error. */
const MAX_ERROR = 500;

/** Ends a player that makes more calls than it may. */
class TurnLimitError extends Error {}

/** What a call came to: a result, or the text of a refusal. */
type Called = { output: ToolOutput } | { refusal: string; detail: string };

/**
 * Plays one episode and logs its messages. Never rejects for a failure of the environment or the infrastructure, which leaves the episode
 * without a score; rejects if every other episode would fail, too, and when the signal aborts.
 */
export async function playEpisode(
  client: PalestraClient,
  id: EpisodeId,
  options: EpisodeOptions,
  signal: AbortSignal,
): Promise<{ result: EpisodeResult; log: RolloutLog }> {
  const episode = new Episode(client, id, options, signal);
  try {
    return { result: await episode.play(), log: episode.log };
  } catch (error) {
    signal.throwIfAborted();
    const failure = failureOf(error);
    if (failure === null)
      throw error instanceof ChatError ? new Error(`${modelErrorText(error)}. Check --model, --base-url and the key.`) : error;
    return { result: episode.fail(failure, error as Error), log: episode.log };
  } finally {
    await episode.session?.close();
  }
}

function modelErrorText({ message, detail }: ChatError): string {
  return `The model: ${message}${detail && `: ${detail.trim().slice(0, MAX_ERROR)}`}`;
}

/** Whose failure ended an episode; null: the evaluation cannot continue. */
function failureOf(error: unknown): EpisodeResult['failure'] {
  if (error instanceof ChatError) return error.status !== null && [401, 403, 404].includes(error.status) ? null : 'infrastructure';
  if (error instanceof PalestraApiError && [401, 403].includes(error.status)) return null;
  if (error instanceof ClientError) {
    const isLost = error instanceof PalestraApiError && error.status === 404 && error.code !== 'session_not_found';
    return error.failureClass === 'policy' || isLost ? null : error.failureClass;
  }
  // A broken connection to the model; other errors are mistakes of a player or of ours.
  return error instanceof TypeError && /^(?:fetch failed|terminated)$/.test(error.message) ? 'infrastructure' : null;
}

class Episode {
  readonly log = new RolloutLog();
  session: Session | null = null;
  readonly #client: PalestraClient;
  readonly #id: EpisodeId;
  readonly #options: EpisodeOptions;
  readonly #signal: AbortSignal;
  #reward: number | null = null;
  #turns = 0;
  #calls = 0;
  #refused = 0;
  #tokens: EpisodeResult['tokens'] = null;
  #finished = false;

  constructor(client: PalestraClient, id: EpisodeId, options: EpisodeOptions, signal: AbortSignal) {
    this.#client = client;
    this.#id = id;
    this.#options = options;
    this.#signal = signal;
  }

  async play(): Promise<EpisodeResult> {
    const { environment, variant, split, policy } = this.#options;
    this.session = await this.#client.session({ environment, variant, split, index: this.#id.task, signal: this.#signal });
    this.log.sessionId = this.session.sid;
    const stop = 'model' in policy ? await this.#playModel(policy.model) : await this.#playPlayer(policy.player);
    // A policy that ends without a reward gets 0, so the stored rollout must have this reward, too.
    if (this.#reward === null) this.log.scoreZero();
    return this.#result(stop, this.#reward ?? 0);
  }

  fail(failure: 'environment' | 'infrastructure', error: Error): EpisodeResult {
    const stop = error instanceof ModelTimeoutError ? 'timeout' : failure === 'environment' ? 'env_error' : 'infra_error';
    const text = error instanceof ChatError ? modelErrorText(error) : error.message;
    return { ...this.#result(stop, null), failure, error: text };
  }

  #result(stop: StopReason, reward: number | null): EpisodeResult {
    const counts = { turns: this.#turns, calls: this.#calls, refused: this.#refused, tokens: this.#tokens };
    return { ...this.#id, reward, stop, failure: null, error: null, ...counts };
  }

  async #playModel(model: Model): Promise<StopReason> {
    const [prompt, { tools, terminal_tool: terminal }] = await Promise.all([this.session!.messages(), this.session!.taskTools()]);
    const messages = toChat(prompt);
    for (const message of messages) this.#logPrompt(message);
    while (this.#turns < this.#options.maxTurns) {
      let reply: ModelReply;
      try {
        reply = await model(messages, tools, this.#turns, this.#signal);
      } catch (error) {
        if (isContextLength(error)) return 'context_length';
        throw error;
      }
      this.#turns += 1;
      this.#count(reply);
      messages.push(reply.message);
      const final = reply.calls.length === 0 && !reply.isCut && terminal ? [finalCall(reply, terminal, this.#turns)] : [];
      const calls = reply.calls.length > 0 ? reply.calls : final;
      this.#logReply(reply, calls);
      for (const call of calls) {
        // The calls after the end of the episode are not sent.
        if (this.#finished) break;
        const called =
          call.problem === null
            ? await this.#call(call.id, call.name, call.arguments)
            : this.#refuse(call.id, 'invalid_arguments', `The arguments of ${call.name} are invalid: ${call.problem}`);
        if ('output' in called) messages.push(...toolMessages(call.id, called.output.blocks));
        else messages.push(...toolMessages(call.id, [{ type: 'text', text: called.refusal, detail: null }]));
        if (final.length > 0) return 'output' in called ? 'finished' : 'no_tool_call';
      }
      if (this.#finished) return 'finished';
      if (calls.length === 0) return reply.isCut ? 'max_tokens' : 'no_tool_call';
    }
    return 'max_turns';
  }

  async #playPlayer(of: PlayerOf): Promise<StopReason> {
    const { environment, split, variant, maxTurns } = this.#options;
    const { task, sample } = this.#id;
    const [blocks, answer] = await Promise.all([this.session!.prompt(), this.session!.taskTools()]);
    this.log.add('user_message', { content: textOfBlocks(blocks) });
    const player = await of(() => this.#client.environments.task(environment, split, task, variant));
    // The seed of the scores on the page of the environment, for the first sample.
    const random = new SeededRandom(sample, split, task);
    const call = async (name: string, input: JsonObject): Promise<PlayedResult> => {
      if (this.#turns >= maxTurns) throw new TurnLimitError();
      this.#turns += 1;
      const callId = `call_${this.#turns}`;
      this.log.add('tool_call', { name, callId, content: stringifyJson(input) });
      const called = await this.#call(callId, name, input);
      if (!('output' in called)) return { text: called.detail, reward: null, finished: false };
      const { reward, finished } = called.output;
      return { text: textOf(called.output.blocks), reward, finished };
    };
    try {
      await player.play({ prompt: textOf(blocks), tools: toolsWithTerminal(answer), call, random: () => random.next() });
    } catch (error) {
      if (error instanceof TurnLimitError) return 'max_turns';
      throw error instanceof ClientError
        ? error
        : new Error(`The player ${player.name} failed on task ${task}: ${String(error)}`, { cause: error });
    }
    return this.#finished ? 'finished' : 'no_tool_call';
  }

  async #call(callId: string, name: string, input: JsonObject): Promise<Called> {
    this.#calls += 1;
    try {
      const output = await this.session!.call(name, input);
      const { reward, finished, blocks, metadata } = output;
      if (reward !== null) this.#reward = (this.#reward ?? 0) + reward;
      this.#finished ||= finished;
      this.log.add('tool_result', { callId, content: textOfBlocks(blocks), reward, isFinished: finished, metadata: metadata ?? {} });
      return { output };
    } catch (error) {
      if (error instanceof ToolCallError) return this.#refuse(callId, error.reason, error.detail);
      if (error instanceof PalestraApiError && error.failureClass === 'policy')
        return this.#refuse(callId, error.code ?? 'refused', error.detail);
      if (!this.#signal.aborted && error instanceof Error) {
        // The text of the ledger, with which the service compares it.
        const text = error instanceof PalestraApiError ? error.detail : error.message;
        this.log.add('tool_result', { callId, content: `Error: ${text}`, metadata: { error: text } });
      }
      throw error;
    }
  }

  #refuse(callId: string, reason: string, detail: string): Called {
    this.#refused += 1;
    const refusal = `Error: ${reason === 'invalid_arguments' ? detail : `${reason}: ${detail}`}`;
    this.log.add('tool_result', { callId, content: refusal, metadata: { error: reason } });
    return { refusal, detail };
  }

  #count({ tokens }: ModelReply): void {
    if (tokens === null) return;
    const { prompt, output } = this.#tokens ?? { prompt: 0, output: 0 };
    this.#tokens = { prompt: prompt + tokens.prompt, output: output + tokens.output };
  }

  #logPrompt({ role, content, tool_calls: calls }: ChatMessage): void {
    const types: Record<string, MessageType> = { system: 'system_message', assistant: 'assistant_message', tool: 'tool_result' };
    const text = typeof content === 'string' ? content : textOfBlocks((content ?? []) as OutputBlock[]);
    if (text !== '' || calls === undefined) this.log.add(types[role] ?? 'user_message', { content: text });
  }

  #logReply({ reasoning, text }: ModelReply, calls: ModelReply['calls']): void {
    if (reasoning !== null) this.log.add('reasoning', { content: reasoning });
    if (text !== '' || calls.length === 0) this.log.add('assistant_message', { content: text });
    for (const call of calls) this.log.add('tool_call', { name: call.name, callId: call.id, content: call.text });
  }
}

/** The last message of a model as the call of the terminal tool, in environments that have one. */
function finalCall({ text }: ModelReply, { name, arg }: { name: string; arg: string | null }, turn: number): ModelReply['calls'][number] {
  const input = arg === null ? {} : { [arg]: text };
  return { id: `final_${turn}`, name, text: stringifyJson(input), arguments: input, problem: null };
}
