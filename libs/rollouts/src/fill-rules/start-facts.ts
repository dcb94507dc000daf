import type { JsonObject } from '@palestra/protocol';
import { canonicalStop } from '../outcome/stop-reason.ts';

/** What a start event says about its rollout, by the fill rules of dashboard.md 2.3 (reported before parsed). */
export interface StartFacts {
  rolloutName: string | null;
  environment: string | null;
  variant: string | null;
  split: string | null;
  step: number | null;
  taskIndex: number | null;
  /** Canonical stop reason (dashboard.md 2.5), null when the event tells none. */
  stop: string | null;
  turns: number | null;
  /** Total that the trainer reported, which may differ from the sum of message rewards. */
  reward: number | null;
}

/** What `rollout_info` says; later updates override earlier ones. */
export interface InfoFacts {
  step: number | null;
  taskIndex: number | null;
  stop: string | null;
}

export function factsOfStart(raw: JsonObject): StartFacts {
  const metadata = asObject(raw.metadata);
  const name = asText(raw.rolloutName);
  const environment = asText(raw.environment);
  const split = asText(raw.split);
  return {
    rolloutName: name,
    environment,
    variant: asText(raw.variant),
    split,
    step: firstInt(raw.step, metadata.step, metadata.global_step, metadata.training_step) ?? tailInt(name, /-step(\d+)-r\d+$/),
    taskIndex: taskIndexOf(name, environment, split),
    stop: canonicalStop(asText(metadata.stop_reason) ?? asText(metadata.stop)),
    turns: firstInt(metadata.num_turns),
    reward: firstNumber(metadata.total_reward, metadata.reward_sum, metadata.reward, metadata.final_reward),
  };
}

export function factsOfInfo(info: JsonObject): InfoFacts {
  return { step: firstInt(info.current_step), taskIndex: firstInt(info.task_index), stop: canonicalStop(asText(info.stop_reason)) };
}

/** Names of SkyRL (`{env, / as -}-{split}-{index}`) and tinker (the same with `-step{S}-r{K}`); the prefix must be the event's own. */
function taskIndexOf(name: string | null, environment: string | null, split: string | null): number | null {
  if (name === null || environment === null || split === null) return null;
  const prefix = `${environment.replaceAll('/', '-')}-${split}-`;
  return name.startsWith(prefix) ? tailInt(name.slice(prefix.length), /^(\d+)(?:-step\d+-r\d+)?$/) : null;
}

const MAX_INT = 2_147_483_647;
const asText = (value: unknown): string | null => (typeof value === 'string' && value !== '' ? value : null);
const asObject = (value: unknown): JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as JsonObject) : {};
const tailInt = (text: string | null, pattern: RegExp): number | null => {
  const digits = text === null ? undefined : pattern.exec(text)?.[1];
  return digits !== undefined && Number(digits) <= MAX_INT ? Number(digits) : null;
};
const firstNumber = (...values: unknown[]): number | null =>
  (values.find((value) => typeof value === 'number' && Number.isFinite(value)) as number | undefined) ?? null;
const firstInt = (...values: unknown[]): number | null =>
  (values.find((value) => typeof value === 'number' && Number.isInteger(value) && Math.abs(value) <= MAX_INT) as number | undefined) ??
  null;
