import { STOP_REASONS, UNSCORED_FAILURES, type UnscoredFailure } from '@palestra/protocol';
import { failureOfStop } from '@palestra/rollouts';

/** Narrow rows store a word of a vocabulary as its position in the list (libs/protocol/src/vocabularies.ts). */

/** The code of a word; null for null and for an unknown word. */
export function codeOf(words: readonly string[], word: string | null | undefined): number | null {
  const code = word === null || word === undefined ? -1 : words.indexOf(word);
  return code < 0 ? null : code;
}

export function wordOf<const W extends readonly string[]>(words: W, code: number | null): W[number] | null {
  return code === null ? null : (words[code] ?? null);
}

/** The failure class of a narrow row: of its session if that is known, else the one that its stop reason names. */
export const failureClassOf = ({ failure, stop }: { failure: number | null; stop: number | null }): UnscoredFailure | null =>
  wordOf(UNSCORED_FAILURES, failure) ?? failureOfStop(wordOf(STOP_REASONS, stop));
