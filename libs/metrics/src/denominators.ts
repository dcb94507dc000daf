import type { Denominator, StopReason } from '@palestra/protocol';
import { type RolloutFacts, scoreOf } from './facts.ts';
import { groupBy } from './group-by.ts';

/** Decision 14.5: not the policy's doing. parse_error, no_tool_call and truncation are the policy's own and stay. */
export const NOT_THE_POLICY: ReadonlySet<StopReason | null> = new Set<StopReason>([
  'env_error',
  'infra_error',
  'timeout',
  'aborted',
  'cancelled',
]);

export function isFailed(row: Pick<RolloutFacts, 'failure' | 'stop'>): boolean {
  return row.failure !== null || NOT_THE_POLICY.has(row.stop);
}

export interface Counted {
  row: RolloutFacts;
  reward: number;
}

export interface Selection {
  counted: Counted[];
  /** All rollouts that were there. */
  of: number;
  /** Says it when zeros stand for nulls. */
  note: string | null;
}

/** What a rollout counts for; null when it is left out. */
export function countedReward(row: RolloutFacts, denominator: Denominator = 'scored'): number | null {
  if (denominator === 'effective' && isFailed(row)) return null;
  const reward = scoreOf(row);
  return reward === null && denominator === 'all' ? 0 : reward;
}

/**
 * The rollouts that a figure counts. `scored` and `effective` never hold an invented zero; `all` does, because it was asked for,
 * and the figure then says so (14.4).
 */
export function select(rows: readonly RolloutFacts[], denominator: Denominator = 'scored'): Selection {
  const counted: Counted[] = [];
  let nulls = 0;
  for (const row of rows) {
    if (scoreOf(row) === null) nulls += 1;
    const reward = countedReward(row, denominator);
    if (reward !== null) counted.push({ row, reward });
  }
  return { counted, of: rows.length, note: denominator === 'all' && nulls > 0 ? `null as 0 (${nulls} of ${rows.length})` : null };
}

/** Counted rollouts by group; those without a group are in none. */
export function byGroup(counted: readonly Counted[]): Map<string, Counted[]> {
  const groups = groupBy(counted, ({ row }) => row.group);
  groups.delete(null);
  return groups as Map<string, Counted[]>;
}

/** How many groups there are, counted rollouts or not. */
export function groupCount(rows: readonly RolloutFacts[]): number {
  const groups = new Set(rows.map((row) => row.group));
  groups.delete(null);
  return groups.size;
}
