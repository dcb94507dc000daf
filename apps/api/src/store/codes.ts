import { CANONICAL_STOPS } from '@palestra/rollouts';

/** Small integers by which narrow rows keep words; the order is the code and never changes. */

export const STOPS = CANONICAL_STOPS;
export const PHASES = ['train', 'eval', 'unknown'] as const;
export const FAILURES = ['environment', 'infrastructure'] as const;
export const VERDICTS = ['unverified', 'partial', 'verified'] as const;

export type Phase = (typeof PHASES)[number];

/** The code of a word; null for null and for a word that has none. */
export function codeOf(words: readonly string[], word: string | null | undefined): number | null {
  const code = word === null || word === undefined ? -1 : words.indexOf(word);
  return code < 0 ? null : code;
}

export function wordOf<const W extends readonly string[]>(words: W, code: number | null): W[number] | null {
  return code === null ? null : (words[code] ?? null);
}
