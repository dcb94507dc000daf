/** The only error of this library: what is wrong, and its position in the text (UTF-16 offsets). */
export class QueryError extends Error {
  override readonly name = 'QueryError';
  readonly position: number;
  readonly length: number;
  /** The wrong part of the query, cut to 80 characters. */
  readonly token: string;
  /** A similar valid word to replace `token`, if any. */
  readonly suggestion: string | undefined;

  constructor(message: string, at: { position: number; length: number; token: string; suggestion?: string | undefined }) {
    super(message);
    this.position = at.position;
    this.length = at.length;
    this.token = at.token.length > 80 ? `${at.token.slice(0, 79)}…` : at.token;
    this.suggestion = at.suggestion;
  }
}

/** Number of insertions, deletions, substitutions and swaps of neighbours between two words. */
function editDistance(a: string, b: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let row = 1; row <= a.length; row++) {
    const current = [row];
    for (let column = 1; column <= b.length; column++) {
      const same = a[row - 1] === b[column - 1];
      let cost = Math.min(last[column]! + 1, current[column - 1]! + 1, last[column - 1]! + (same ? 0 : 1));
      const swapped = row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1];
      if (swapped) cost = Math.min(cost, beforeLast[column - 2]! + 1);
      current.push(cost);
    }
    beforeLast = last;
    last = current;
  }
  return last[b.length]!;
}

/** The most similar candidate: at most a third of its letters differ, or it starts with the word. */
export function nearest(word: string, candidates: readonly string[]): string | undefined {
  if (word === '' || word.length > 32) return undefined;
  const lower = word.toLowerCase();
  const scored = candidates
    .map((candidate) => ({ candidate, distance: editDistance(lower, candidate) }))
    .toSorted((left, right) => left.distance - right.distance);
  const best = scored[0];
  if (best !== undefined && best.distance <= Math.max(1, Math.floor(Math.max(lower.length, best.candidate.length) / 3)))
    return best.candidate;
  return lower.length >= 3 ? candidates.find((candidate) => candidate.startsWith(lower)) : undefined;
}
