import { useQuery } from '@tanstack/react-query';
import { useCallback } from 'react';
import { summaryQuery } from '../data/run-reads.ts';

/** The run's own definition of success for an environment; while that is not known, a full point. `run`: its id. */
export function useSolved(run: string, environment: string | null): (reward: number) => boolean {
  const summary = useQuery({ ...summaryQuery(run, { env: environment ?? undefined }), enabled: run !== '' });
  const { threshold, strict } = summary.data?.success ?? { threshold: 1, strict: false };
  // Summed step rewards of 1 arrive as 0.9999999999999999.
  return useCallback((reward: number) => (strict ? reward > threshold : reward >= threshold - 1e-6), [threshold, strict]);
}
