import type { Phase } from '@palestra/protocol';
import { hash63 } from '../json/hash.ts';

export type KnownPhase = Exclude<Phase, 'unknown'>;

/**
 * Key of a group: one task at one step and phase (docs/reference/metrics.md#fill-rules). 63 bits in decimal, equal on every machine.
 * Without a known step, `visit` separates the occurrences of a task. An unknown phase counts as training, so that rollouts without a
 * phase join siblings with `train`.
 */
export function groupKeyOf(phase: KnownPhase | null, taskKey: string, step: number | null, visit: number | null = null): string {
  return hash63(JSON.stringify([phase ?? 'train', taskKey, step, step === null ? visit : null]));
}

/** A task key with its variant: tasks of two variants are different tasks. */
export const taskOfVariant = (taskKey: string, variant: string | null): string =>
  variant === null ? taskKey : JSON.stringify([taskKey, variant]);

/** A reported group id with its environment: two environments may use the same id in one step. */
export const reportedGroup = (id: string, environment: string | null, variant: string | null): string =>
  environment === null && variant === null ? `group:${id}` : `group:${JSON.stringify([environment, variant, id])}`;
