import { useQuery } from '@tanstack/react-query';
import type { RolloutRow } from '@palestra/protocol';
import { useMemo } from 'react';
import { type SuccessRule, successQuery } from '../../data/explorer.ts';

/** Summed step rewards of 1 arrive as 0.9999999999999999. */
const TOLERANCE = 1e-6;
type SolvedRow = Pick<RolloutRow, 'environment' | 'variant'>;

/** Whether a reward counts as solved in the environment of a row (dashboard.md 14.3). Until the rule is known nothing does. */
export function solvedBy(rules: readonly SuccessRule[]): (row: SolvedRow, reward: number) => boolean {
  const byEnvironment = new Map(rules.map((rule) => [`${rule.environment} ${rule.variant}`, rule]));
  return ({ environment, variant }, reward) => {
    const rule = byEnvironment.get(`${environment} ${variant}`) ?? rules[0];
    if (!rule) return false;
    return rule.strict ? reward > rule.threshold : reward >= rule.threshold - TOLERANCE;
  };
}
export type Solved = ReturnType<typeof solvedBy>;

export function useSolved(run: string): Solved {
  const { data } = useQuery(successQuery(run));
  return useMemo(() => solvedBy(data ?? []), [data]);
}
