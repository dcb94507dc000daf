import { hash63 } from '../json/hash.ts';

export type Phase = 'train' | 'eval';

/**
 * Key of a group: rollouts of one task at one step and phase (dashboard.md 2.3). 63 bits in decimal, the same on every machine. Where
 * no step is known, `visit` tells the occurrences of a task apart. An unknown phase counts as training, so that rollouts that say
 * nothing and siblings that say `train` meet.
 */
export function groupKeyOf(phase: Phase | null, taskKey: string, step: number | null, visit: number | null = null): string {
  return hash63(JSON.stringify([phase ?? 'train', taskKey, step, step === null ? visit : null]));
}
