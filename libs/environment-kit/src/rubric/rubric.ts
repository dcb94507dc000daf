import type { JsonObject } from '@palestra/protocol';
import type { ToolResult } from '../definition.ts';

type Awaitable<T> = T | Promise<T>;

/** A reward and how it came about. */
export interface Score {
  reward: number;
  /** By name: the scores of composed rubrics, or details of one. Plain JSON. */
  parts?: JsonObject;
}

/** Scores an input. `signal` aborts when the session ends. An exception is a failure of the environment, not a reward of 0. */
export type Rubric<Input> = (input: Input, signal?: AbortSignal) => Awaitable<Score | number | boolean>;

/** Runs a rubric. True is 1, false is 0. Rejects for a reward that is not a finite number. */
export async function score<Input>(rubric: Rubric<Input>, input: Input, signal?: AbortSignal): Promise<Score> {
  signal?.throwIfAborted();
  const scored = await rubric(input, signal);
  const result = typeof scored === 'object' ? scored : { reward: Number(scored) };
  if (!Number.isFinite(result.reward)) throw new TypeError(`a rubric must return a finite reward, not ${result.reward}`);
  return result;
}

/** The sum of the rewards, each times its weight. The rubrics run at the same time. */
export function weighted<Input>(rubrics: Record<string, readonly [weight: number, rubric: Rubric<Input>]>): Rubric<Input> {
  return async (input, signal) => {
    const entries = await Promise.all(
      Object.entries(rubrics).map(async ([name, [weight, rubric]]) => ({ name, weight, ...(await score(rubric, input, signal)) })),
    );
    return {
      reward: entries.reduce((sum, { weight, reward }) => sum + weight * reward, 0),
      parts: Object.fromEntries(entries.map(({ name, ...part }) => [name, part])),
    };
  };
}

/** The reward of the rubric if it reaches the threshold (default 1), else 0. */
export function gate<Input>(rubric: Rubric<Input>, threshold = 1): Rubric<Input> {
  return async (input, signal) => {
    const { reward, parts } = await score(rubric, input, signal);
    return { reward: reward >= threshold ? reward : 0, parts: { ...parts, threshold, before_gate: reward } };
  };
}

/** Runs the rubrics in order and stops at the first reward of 0, which is the result; else the result is the last reward. */
export function sequential<Input>(rubrics: Record<string, Rubric<Input>>): Rubric<Input> {
  return async (input, signal) => {
    const parts: JsonObject = {};
    let reward = 1;
    for (const [name, rubric] of Object.entries(rubrics)) {
      const part = await score(rubric, input, signal);
      parts[name] = part;
      reward = part.reward;
      if (reward === 0) break;
    }
    return { reward, parts };
  };
}

/** A tool result with the reward. The parts are its metadata, which no policy sees. */
export function scoredResult({ reward, parts }: Score, result: Omit<ToolResult, 'reward'> = {}): ToolResult {
  return { ...result, reward, metadata: { ...result.metadata, rubric: { reward, ...(parts && { parts }) } } };
}
