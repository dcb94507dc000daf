import type { RolloutCount } from '@palestra/protocol';
import { queryOptions } from '@tanstack/react-query';
import { queryClient } from './client.ts';
import { api } from './http.ts';

const countRollouts = (run: string, q: string, signal?: AbortSignal): Promise<RolloutCount> =>
  api('GET /v1/runs/{id}/rollouts/count', { path: { id: run }, query: { q }, ...(signal && { signal }) });

/** Counts the rollouts of a query now. `as_of` bounds an action on them. */
export const rolloutCountQuery = (run: string, q: string) =>
  queryOptions({
    queryKey: ['selection', run, q],
    queryFn: ({ signal }) => countRollouts(run, q, signal),
    staleTime: Infinity,
    gcTime: 0,
    refetchOnWindowFocus: false,
  });

/** What a bulk annotation gives: one verdict, or one tag. */
export type BulkLabel = { verdict: 'good' | 'bad' | 'exploit' } | { tag: string };
/** Rollouts to annotate: by id, or those of a query that had arrived. */
export type BulkTarget = { rollouts: readonly string[] } | { query: string; as_of: string };

export interface BulkProgress {
  /** Rollouts that have the annotation now, including those that had it before. */
  done: number;
  unchanged: number;
  notFound: number;
  /** Where a stopped annotation continues; null at the end. */
  next: string | null;
}

/** Annotates page by page until the end or until `signal`, from the cursor of `from`. Throws the error of a page; `report` has had the state before. */
export async function annotateAll(
  run: string,
  label: BulkLabel,
  target: BulkTarget,
  from: BulkProgress | null,
  report: (progress: BulkProgress) => void,
  signal: AbortSignal,
): Promise<void> {
  let progress = from ?? { done: 0, unchanged: 0, notFound: 0, next: null };
  try {
    do {
      const page = await api('POST /v1/runs/{run}/annotations', {
        path: { run },
        body: {
          ...label,
          ...('rollouts' in target ? { rollouts: [...target.rollouts] } : target),
          ...(progress.next !== null && { cursor: progress.next }),
        },
        signal,
      });
      progress = {
        done: progress.done + page.annotated + page.unchanged,
        unchanged: progress.unchanged + page.unchanged,
        notFound: progress.notFound + page.not_found,
        next: page.next,
      };
      report(progress);
    } while (progress.next !== null && !signal.aborted);
  } finally {
    void queryClient.invalidateQueries({ queryKey: ['annotations'] });
  }
}
