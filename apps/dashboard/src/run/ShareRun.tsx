import { useMatchRoute, useSearch } from '@tanstack/react-router';
import { effectiveQuery } from '../explorer/query/query-edit.ts';
import { ShareButton } from '../frame/ShareButton.tsx';
import { useRun } from './context.ts';

/** Shares the overview of a run, or the list of rollouts that the page shows. Other pages of the run have no guest page. */
export function ShareRun({ run }: { run: string }) {
  const match = useMatchRoute();
  const { filter } = useRun();
  const { q = '' } = useSearch({ strict: false }) as { q?: string };
  if (match({ to: '/$org/runs/$run' }) !== false) return <ShareButton target={{ kind: 'run', run }} />;
  if (match({ to: '/$org/runs/$run/rollouts' }) === false) return null;
  return <ShareButton target={{ kind: 'query', run, q: effectiveQuery(filter, q) }} />;
}
