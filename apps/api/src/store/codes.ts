/** Narrow rows store a word as its position in its list (libs/protocol/src/vocabularies.ts). */

/** The code of a word; null for null and for a word that has none. */
export function codeOf(words: readonly string[], word: string | null | undefined): number | null {
  const code = word === null || word === undefined ? -1 : words.indexOf(word);
  return code < 0 ? null : code;
}

export function wordOf<const W extends readonly string[]>(words: W, code: number | null): W[number] | null {
  return code === null ? null : (words[code] ?? null);
}
