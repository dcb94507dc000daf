import type { JsonObject, OutputBlock, ToolOutput, ToolSpec } from '@palestra/protocol';
import type { PalestraClient } from './client.ts';
import { ToolCallError } from './errors.ts';
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
  /** Text of the task. */
  prompt: string;
  tools: ToolSpec[];
  /** What came back from the tools so far, oldest first. */
  results: string[];
}

/** Stateless between samples: called with all that the model has seen. */
export type Policy = (turn: PolicyTurn) => PolicyAction | Promise<PolicyAction>;

export interface GroupOptions {
  environment: string;
  variant?: string;
  split: string;
  index: number;
  /** Episodes of this one task, played at the same time. */
  samples: number;
  policy: Policy;
  maxTurns: number;
  /** Records every episode as a rollout. */
  record?: Omit<RolloutStart, 'environment' | 'split' | 'variant'>;
  signal?: AbortSignal;
}

export type SampleResult =
  | { scored: true; reward: number; turns: number; stop: 'finished' | 'max_turns' | 'no_tool_call'; rolloutId: string | null }
  | { scored: false; error: Error; turns: number; rolloutId: string | null };

export interface GroupResult {
  samples: SampleResult[];
  /** Mean over the scored samples; null without any. */
  meanReward: number | null;
  /** Samples that the infrastructure, not the policy, ended: leave them out of the loss. */
  unscored: number;
}

/**
 * Plays `samples` episodes of a task. A mistake of the policy (a wrong tool, bad arguments) goes back to it as text; a failure
 * of anything else leaves the sample unscored and counted, because a reward of 0 would teach the model that it was wrong.
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
  } catch (error) {
    return {
      scored: false,
      error: error instanceof Error ? error : new Error(String(error)),
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
      const metadata = { ...record.metadata, repetition_id: this.#sample };
      this.rollout = await this.#client.rollouts.start({ environment, variant, split, ...record, rolloutInfo, metadata });
    }
    await this.rollout?.log({ type: 'user_message', content: prompt });
    let reward: number | null = null;
    let stop: 'finished' | 'max_turns' | 'no_tool_call' = 'max_turns';
    while (this.turns < maxTurns && stop === 'max_turns') {
      const action = await policy({ sample: this.#sample, turn: this.turns, prompt, tools, results: this.#results });
      this.turns += 1;
      if (action.reasoning) await this.rollout?.log({ type: 'reasoning', content: action.reasoning });
      if (action.message || !action.toolCall) {
        // A policy that gives up before any reward has earned nothing: the stored rollout says the 0 that the sample counts as.
        const earned = action.toolCall || reward !== null ? {} : { reward: 0 };
        await this.rollout?.log({ type: 'assistant_message', content: action.message ?? '', ...earned });
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

  /** null when the environment refused the call; the refusal is the result that the policy reads. */
  async #call(call: { name: string; arguments: JsonObject }): Promise<ToolOutput | null> {
    const callId = `call_${this.turns}`;
    await this.rollout?.log({ type: 'tool_call', name: call.name, callId, content: JSON.stringify(call.arguments) });
    try {
      const output = await this.session!.call(call.name, call.arguments);
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
