import { useQuery } from '@tanstack/react-query';
import { useCallback } from 'react';
import { summaryQuery } from '../data/run-queries.ts';

/** Whether a reward is a success by the run's threshold for the environment; 1 until that is loaded. `run` is its id. */
export function useSolved(run: string, environment: string | null): (reward: number) => boolean {
  const summary = useQuery({ ...summaryQuery(run, { env: environment ?? undefined }), enabled: run !== '' });
  const { threshold, strict } = summary.data?.success ?? { threshold: 1, strict: false };
  // A sum of step rewards can be 0.9999999999999999 instead of 1.
  return useCallback((reward: number) => (strict ? reward > threshold : reward >= threshold - 1e-6), [threshold, strict]);
}
