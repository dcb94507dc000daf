import { Link } from '@tanstack/react-router';
import { useRun } from '../run/context.ts';
import { explorerSearch, ownClauses, stepClause } from './links.ts';
import { useOverview } from './context.ts';

/** A step in the table of a chart. Links to its rollouts, like a click on the chart. */
export function StepLink({ from, to, x, env }: { from: number; to: number; x: number; env?: string | null }) {
  const run = useRun();
  const { phase, nameOf, open } = useOverview();
  const name = from === to ? nameOf(from, x) : `${nameOf(from, x)}–${to}`;
  if (!open) return <>{name}</>;
  return (
    <Link
      to="/$org/runs/$run/rollouts"
      params={{ org: run.org, run: run.run.name }}
      search={explorerSearch(run, [stepClause(from, to), ...ownClauses(run, { phase, ...(env !== undefined && { env }) })])}
      className="hover:text-accent hover:underline"
    >
      {name}
    </Link>
  );
}
