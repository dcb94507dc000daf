import type { RunFacets as FacetCounts } from '@palestra/protocol';
import { useQuery } from '@tanstack/react-query';
import type { Query, QueryKey } from '@palestra/query';
import { facetsQuery } from '../../data/explorer.ts';
import type { RunFilter } from '../../data/run-queries.ts';
import { effectiveQuery, withoutKey } from '../query/query-edit.ts';

export interface FacetContext {
  run: string;
  filter: RunFilter;
  snapshot: string;
  /** The query of the bar, without the filter of the run. */
  query: Query;
  onQuery: (text: string) => void;
}

/** Counts for the query without its values of `key`, so that the other values of the key remain available. */
export function useFacets({ run, filter, snapshot, query }: FacetContext, key: QueryKey): FacetCounts | undefined {
  return useQuery(facetsQuery(run, effectiveQuery(filter, withoutKey(query, key)), snapshot)).data;
}
