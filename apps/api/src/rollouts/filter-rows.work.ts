import { matcherOf, type Query, type QueryRow } from '@palestra/query';

export interface FilterInput {
  query: Query;
  /** As in `PostFilter`. */
  now: number;
  rows: QueryRow[];
}

/** Runs in a process of its own (UntrustedWork): users choose the regexes, models the texts. Returns whether the query accepts each row. */
export default function filterRows({ query, now, rows }: FilterInput): boolean[] {
  const accepts = matcherOf(query, { now });
  return rows.map((row) => accepts(row));
}
