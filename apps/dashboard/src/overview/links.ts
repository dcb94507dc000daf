import { printText } from '@palestra/query';
import type { RunContext } from '../run/context.ts';

/** Clauses of the steps from one to another. */
export const stepClause = (from: number, to: number): string => (from === to ? `step:${from}` : `step:${from}..${to}`);

/** What a chart of one phase and environment is about, as far as the address does not say it already. */
export function ownClauses({ scope }: Pick<RunContext, 'scope'>, { phase, env }: { phase?: string | null; env?: string | null }): string[] {
  return [
    ...(phase && phase !== 'unknown' && scope.phase === undefined ? [`phase:${phase}`] : []),
    ...(env && scope.env === undefined ? [`env:${printText(env)}`] : []),
  ];
}

/** Search of the Explorer that shows exactly the rollouts of these clauses within the scope of the page. */
export const explorerSearch = ({ scope }: Pick<RunContext, 'scope'>, clauses: readonly string[]) => ({
  ...scope,
  q: clauses.join(' ') || undefined,
});
