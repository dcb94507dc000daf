import type { JsonObject, OutputBlock, StopReason, ToolOutput, ToolSpec } from '@palestra/protocol';
import type { PalestraClient } from './client.ts';
import { ClientError, PalestraApiError, ToolCallError } from './errors.ts';
import type { Rollout, RolloutStart } from './rollouts.ts';
import type { Session } from './session.ts';

/** One decision of a policy. Without a tool call the episode ends. */
export interface PolicyAction {
  reasoning?: string;
  message?: string;
  toolCall?: { name: string; arguments: JsonObject };
}

export interface PolicyTurn {
  sample: number;
  /** From 0. */
  turn: number;
  /** The prompt as text. */
  prompt: string;
  tools: ToolSpec[];
  /** Results of the tool calls so far, oldest first. */
  results: string[];
}

/** Called once per turn with the whole context. Samples share it, so it must not keep state. */
export type Policy = (turn: PolicyTurn) => PolicyAction | Promise<PolicyAction>;

export interface GroupOptions {
  /** `owner/name`; `owner/name@3` plays its version 3. */
  environment: string;
  variant?: string;
  split: string;
  index: number;
  /** The number of episodes, played concurrently. */
  samples: number;
  policy: Policy;
  maxTurns: number;
  /** Records every episode as a rollout. */
  record?: Omit<RolloutStart, 'environment' | 'split' | 'variant'>;
  signal?: AbortSignal;
}

type PlayedStop = Extract<StopReason, 'finished' | 'max_turns' | 'no_tool_call'>;
export type SampleResult =
  | { scored: true; reward: number; turns: number; stop: PlayedStop; rolloutId: string | null }
  | { scored: false; error: Error; turns: number; rolloutId: string | null };

export interface GroupResult {
  samples: SampleResult[];
  /** Mean over the scored samples; null if there are none. */
  meanReward: number | null;
  /** Samples that failed by the environment or the infrastructure. Exclude them from the loss. */
  unscored: number;
}

/**
 * Plays `samples` episodes of a task. A mistake of the policy (unknown tool, bad arguments) is returned to it as text. Any other
 * failure leaves the sample unscored: a reward of 0 would penalise the policy for it.
 */
export async function playGroup(client: PalestraClient, options: GroupOptions): Promise<GroupResult> {
  const samples = await Promise.all(Array.from({ length: options.samples }, (_, sample) => playSample(client, options, sample)));
  options.signal?.throwIfAborted();
  const rewards = samples.flatMap((sample) => (sample.scored ? [sample.reward] : []));
  return {
    samples,
    meanReward: rewards.length === 0 ? null : rewards.reduce((sum, reward) => sum + reward, 0) / rewards.length,
    unscored: samples.length - rewards.length,
  };
}

async function playSample(client: PalestraClient, options: GroupOptions, sample: number): Promise<SampleResult> {
  const episode = new Episode(client, options, sample);
  try {
    return await episode.play();
  } catch (thrown) {
    const error = thrown instanceof Error ? thrown : new Error(String(thrown));
    await episode.recordFailure(error);
    return {
      scored: false,
      error,
      turns: episode.turns,
      rolloutId: episode.rollout?.id ?? null,
    };
  } finally {
    await episode.session?.close();
  }
}

class Episode {
  readonly #client: PalestraClient;
  readonly #options: GroupOptions;
  readonly #sample: number;
  readonly #results: string[] = [];
  readonly #startedAt = Date.now();
  /** The call without a result. */
  #openCall: string | null = null;
  session: Session | null = null;
  rollout: Rollout | null = null;
  turns = 0;

  constructor(client: PalestraClient, options: GroupOptions, sample: number) {
    this.#client = client;
    this.#options = options;
    this.#sample = sample;
  }

  async play(): Promise<SampleResult> {
    const { environment, variant, split, index, policy, maxTurns, record, signal } = this.#options;
    this.session = await this.#client.session({ environment, variant, split, index, signal });
    const [prompt, { tools }] = await Promise.all([this.session.prompt().then(textOf), this.session.taskTools()]);
    if (record) {
      const rolloutInfo = { ...record.rolloutInfo, task_index: index };
      const metadata = { ...record.metadata, repetition_id: this.#sample, session_id: this.session.sid };
      const name = environment.replace(/@\d+$/, '');
      this.rollout = await this.#client.rollouts.start({ environment: name, variant, split, ...record, rolloutInfo, metadata });
    }
    await this.rollout?.log({ type: 'user_message', content: prompt });
    let reward: number | null = null;
    let stop: PlayedStop = 'max_turns';
    while (this.turns < maxTurns && stop === 'max_turns') {
      const action = await policy({ sample: this.#sample, turn: this.turns, prompt, tools, results: this.#results });
      this.turns += 1;
      if (action.reasoning) await this.rollout?.log({ type: 'reasoning', content: action.reasoning });
      if (action.message || !action.toolCall) {
        // A policy that stops before any reward gets 0, so the stored rollout must have this reward, too.
        const zero = action.toolCall || reward !== null ? {} : { reward: 0 };
        await this.rollout?.log({ type: 'assistant_message', content: action.message ?? '', ...zero });
      }
      if (!action.toolCall) {
        stop = 'no_tool_call';
        break;
      }
      const result = await this.#call(action.toolCall);
      if (result !== null && result.reward !== null) reward = (reward ?? 0) + result.reward;
      if (result?.finished) stop = 'finished';
    }
    await this.rollout?.update({ task_index: index, duration_ms: Date.now() - this.#startedAt, stop_reason: stop });
    return { scored: true, reward: reward ?? 0, turns: this.turns, stop, rolloutId: this.rollout?.id ?? null };
  }

  /** Ends the rollout without a score. */
  async recordFailure(error: Error): Promise<void> {
    if (this.#options.signal?.aborted) return;
    const stop = error instanceof ClientError && error.failureClass === 'environment' ? 'env_error' : 'infra_error';
    if (this.#openCall !== null) {
      // The text of the ledger, with which the service compares it.
      const text = error instanceof PalestraApiError ? error.detail : error.message;
      await this.rollout?.log({ type: 'tool_result', callId: this.#openCall, content: `Error: ${text}`, metadata: { error: text } });
    }
    await this.rollout?.update({ task_index: this.#options.index, duration_ms: Date.now() - this.#startedAt, stop_reason: stop });
  }

  /** Returns null if the environment refused the call; the policy gets the refusal as result. */
  async #call(call: { name: string; arguments: JsonObject }): Promise<ToolOutput | null> {
    const callId = `call_${this.turns}`;
    await this.rollout?.log({ type: 'tool_call', name: call.name, callId, content: JSON.stringify(call.arguments) });
    this.#openCall = callId;
    try {
      const output = await this.session!.call(call.name, call.arguments);
      this.#openCall = null;
      const text = textOf(output.blocks);
      this.#results.push(text);
      await this.rollout?.log({
        type: 'tool_result',
        callId,
        content: text,
        reward: output.reward,
        isFinished: output.finished,
        metadata: output.metadata ?? {},
      });
      return output;
    } catch (error) {
      if (!(error instanceof ToolCallError)) throw error;
      this.#openCall = null;
      const text = `Error: ${error.message}`;
      this.#results.push(text);
      await this.rollout?.log({ type: 'tool_result', callId, content: text, metadata: { error: error.reason } });
      return null;
    }
  }
}

function textOf(blocks: OutputBlock[]): string {
  return blocks.map((block) => (block.type === 'text' ? block.text : '')).join('');
}
