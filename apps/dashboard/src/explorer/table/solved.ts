import { useQuery } from '@tanstack/react-query';
import type { RolloutRow } from '@palestra/protocol';
import { useMemo } from 'react';
import { type SuccessRule, successQuery } from '../../data/explorer.ts';

/** A sum of step rewards of 1 can be 0.9999999999999999. */
const TOLERANCE = 1e-6;
type SolvedRow = Pick<RolloutRow, 'environment' | 'variant'>;

/** Whether a reward is a success in the environment of a row (docs/reference/metrics.md#success). False until the rules are loaded. */
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
