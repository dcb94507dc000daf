import { printText } from '@palestra/query';
import type { RunContext } from '../run/context.ts';

/** The clause of an inclusive range of steps. */
export const stepClause = (from: number, to: number): string => (from === to ? `step:${from}` : `step:${from}..${to}`);

/** The clauses of a chart's phase and environment that the filter in the address does not have yet. */
export function ownClauses(
  { filter }: Pick<RunContext, 'filter'>,
  { phase, env }: { phase?: string | null; env?: string | null },
): string[] {
  return [
    ...(phase && phase !== 'unknown' && filter.phase === undefined ? [`phase:${phase}`] : []),
    ...(env && filter.env === undefined ? [`env:${printText(env)}`] : []),
  ];
}

/** The search parameters of the Explorer for these clauses and the filter of the page. */
export const explorerSearch = ({ filter }: Pick<RunContext, 'filter'>, clauses: readonly string[]) => ({
  ...filter,
  q: clauses.join(' ') || undefined,
});
