import type { Phase } from '@palestra/protocol';
import { hash63 } from '../json/hash.ts';

export type KnownPhase = Exclude<Phase, 'unknown'>;

/**
 * Key of a group: rollouts of one task at one step and phase (dashboard.md 2.3). 63 bits in decimal, the same on every machine. Where
 * no step is known, `visit` tells the occurrences of a task apart. An unknown phase counts as training, so that rollouts that say
 * nothing and siblings that say `train` meet.
 */
export function groupKeyOf(phase: KnownPhase | null, taskKey: string, step: number | null, visit: number | null = null): string {
  return hash63(JSON.stringify([phase ?? 'train', taskKey, step, step === null ? visit : null]));
}

/** A task by `TaskKey`, as the key of a group names it: a variant is an environment of its own, and tasks of two are two. */
export const taskOfVariant = (taskKey: string, variant: string | null): string =>
  variant === null ? taskKey : JSON.stringify([taskKey, variant]);

/** An id that an upload reports. It is one of an environment: two in one step may both have a prompt 0. */
export const reportedGroup = (id: string, environment: string | null, variant: string | null): string =>
  environment === null && variant === null ? `group:${id}` : `group:${JSON.stringify([environment, variant, id])}`;
