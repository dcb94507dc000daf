import { printText } from '@palestra/query';
import type { RunContext } from '../run/context.ts';

/** Clauses of the steps from one to another. */
export const stepClause = (from: number, to: number): string => (from === to ? `step:${from}` : `step:${from}..${to}`);

/** What a chart of one phase and environment is about, as far as the address does not say it already. */
export function ownClauses(
  { filter }: Pick<RunContext, 'filter'>,
  { phase, env }: { phase?: string | null; env?: string | null },
): string[] {
  return [
    ...(phase && phase !== 'unknown' && filter.phase === undefined ? [`phase:${phase}`] : []),
    ...(env && filter.env === undefined ? [`env:${printText(env)}`] : []),
  ];
}

/** Search of the Explorer that shows exactly the rollouts of these clauses within the filter of the page. */
export const explorerSearch = ({ filter }: Pick<RunContext, 'filter'>, clauses: readonly string[]) => ({
  ...filter,
  q: clauses.join(' ') || undefined,
});
