import { matcherOf, type Query, type QueryRow } from '@palestra/query';

export interface FilterInput {
  query: Query;
  /** As in `PostFilter`. */
  now: number;
  rows: QueryRow[];
}

/**
 * Returns whether the query accepts each row. Runs in a separate process (UntrustedWork), because users choose the regexes and models write
 * the texts.
 */
export default function filterRows({ query, now, rows }: FilterInput): boolean[] {
  const accepts = matcherOf(query, { now });
  return rows.map((row) => accepts(row));
}
