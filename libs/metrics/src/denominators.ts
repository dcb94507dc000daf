import { type Denominator, INTERRUPTED_STOPS, type StopReason } from '@palestra/protocol';
import { countOf, type RolloutColumns, type RolloutFigures, scoreOf } from './rollout-columns.ts';

/** Stops that are not the policy's doing. parse_error, no_tool_call and truncation are the policy's own (docs/reference/metrics.md#denominators). */
export const NOT_THE_POLICY: ReadonlySet<StopReason | null> = new Set<StopReason>(INTERRUPTED_STOPS);

export function isFailed({ failure, stop }: Pick<RolloutFigures, 'failure' | 'stop'>): boolean {
  return failure !== null || NOT_THE_POLICY.has(stop);
}

export const isFailedAt = ({ failure, stop }: RolloutColumns, at: number): boolean =>
  isFailed({ failure: failure[at] ?? null, stop: stop[at] ?? null });

/** The reward that a rollout is counted with; null when it is left out. */
export function countedReward(columns: RolloutColumns, at: number, denominator: Denominator = 'effective'): number | null {
  if (denominator === 'effective' && isFailedAt(columns, at)) return null;
  const reward = scoreOf(columns.reward[at]);
  return reward === null && denominator === 'all' ? 0 : reward;
}

export interface Selection {
  /** Places of the counted rollouts, and the rewards that they are counted with. */
  places: number[];
  rewards: number[];
  /** All rollouts. */
  of: number;
  /** Says when zeros stand for nulls. */
  note: string | null;
}

/** The rollouts that a figure counts. Only `all` counts an unscored rollout, as 0, and the note then says so. */
export function select(columns: RolloutColumns, denominator: Denominator = 'effective'): Selection {
  const of = countOf(columns);
  const selection: Selection = { places: [], rewards: [], of, note: null };
  let nulls = 0;
  for (let at = 0; at < of; at += 1) {
    if (scoreOf(columns.reward[at]) === null) nulls += 1;
    const reward = countedReward(columns, at, denominator);
    if (reward === null) continue;
    selection.places.push(at);
    selection.rewards.push(reward);
  }
  if (denominator === 'all' && nulls > 0) selection.note = `null as 0 (${nulls} of ${of})`;
  return selection;
}
