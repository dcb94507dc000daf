import { useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import { facetsQuery } from '../../data/explorer.ts';
import type { RunFilter } from '../../data/run-queries.ts';
import type { KnownValues } from './complete.ts';
import { effectiveQuery } from './query-edit.ts';

/** The values of all rollouts that match the filter of the run, for completion. */
export function useKnownValues(run: string, filter: RunFilter, snapshot: string): KnownValues {
  const { data } = useQuery(facetsQuery(run, effectiveQuery(filter, ''), snapshot));
  return useMemo(() => {
    if (!data) return {};
    const { env, split, phase, stop, tool, tool_error, tag, model } = data;
    return { env, split, phase, stop, tool, 'tool.error': tool_error, tag, model };
  }, [data]);
}
