import type { MessageType } from '@palestra/protocol';
import type { Query } from './ast.ts';
import { IN_MESSAGE_TYPES, type InValue } from './catalogue.ts';

/** Message types in which a text may be found; null is all of them. */
export type Places = readonly MessageType[] | null;

const everywhere = Object.values(IN_MESSAGE_TYPES) as readonly MessageType[];

/**
 * Where the texts of a conjunction are looked for: what all of its own `in:` clauses allow (a comma adds places, `-in:` takes them away),
 * inside of what the conjunctions around it allow.
 */
export function placesOf(query: Query, outer: Places): Places {
  let places = outer;
  for (const clause of query.clauses) {
    if (clause.kind !== 'field' || clause.key !== 'in') continue;
    const named = clause.values.flatMap((value) => (value.kind === 'text' ? [IN_MESSAGE_TYPES[value.text as InValue] as MessageType] : []));
    places = (places ?? everywhere).filter((type) => named.includes(type) !== clause.negated);
  }
  return places;
}
