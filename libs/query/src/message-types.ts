import type { MessageType } from '@palestra/protocol';
import type { Query } from './ast.ts';
import { IN_MESSAGE_TYPES, type InValue } from './catalogue.ts';

/** Message types in which a text may occur; null: any type. */
export type SearchedTypes = readonly MessageType[] | null;

const allTypes = Object.values(IN_MESSAGE_TYPES) as readonly MessageType[];

/**
 * The message types that a conjunction searches: those that its `in:` clauses and all enclosing conjunctions allow. A comma adds
 * types, `-in:` removes them.
 */
export function searchedTypes(query: Query, outer: SearchedTypes): SearchedTypes {
  let types = outer;
  for (const clause of query.clauses) {
    if (clause.kind !== 'field' || clause.key !== 'in') continue;
    const named = clause.values.flatMap((value) => (value.kind === 'text' ? [IN_MESSAGE_TYPES[value.text as InValue] as MessageType] : []));
    types = (types ?? allTypes).filter((type) => named.includes(type) !== clause.negated);
  }
  return types;
}
