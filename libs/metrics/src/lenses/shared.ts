import { groupBy } from '../group-by.ts';
import { type MetricAnswer, type RolloutFacts, scoreOf, unavailable } from '../facts.ts';
import type { MetricTemplate } from '../lens.ts';
import { max } from '../summary.ts';

/** Metrics that a trainer prints and an upload cannot give: they have their names, and say so. */
export function notInUpload(formula: string, keys: readonly string[]): MetricTemplate[] {
  return keys.map((key) => ({ key, label: key, formula, needs: [], compute: (): MetricAnswer => unavailable() }));
}

/** Groups in the order of their first rollout, without the rollouts that have none. */
export function groupsOf(rows: readonly RolloutFacts[]): RolloutFacts[][] {
  const groups = groupBy(rows, (row) => row.group);
  groups.delete(null);
  return [...groups.values()];
}

export function largestGroup(rows: readonly RolloutFacts[]): number {
  return max(groupsOf(rows).map((group) => group.length)) ?? 0;
}

export function ungroupedNote(rows: readonly RolloutFacts[]): string | null {
  const alone = rows.filter((row) => row.group === null).length;
  return alone === 0 ? null : `${alone} of ${rows.length} rollouts have no group`;
}

/** For trainers that know no null. The note says how many zeros were none. */
export function nullAsZero(rows: readonly RolloutFacts[]): { rewards: number[]; note: string | null } {
  const nulls = rows.filter((row) => scoreOf(row) === null).length;
  return { rewards: rows.map((row) => scoreOf(row) ?? 0), note: nulls === 0 ? null : `null as 0 (${nulls} of ${rows.length})` };
}

export function joinNotes(...notes: (string | null | undefined)[]): string | null {
  return notes.filter((note) => note).join('; ') || null;
}

/** slime, miles and tinker reduce and clamp before they train; without the run's four settings (2.3) we only have the plain sum. */
export function trainedRewards(rows: readonly RolloutFacts[]): { rows: RolloutFacts[]; note: string | null } {
  const known = rows.every((row) => row.trainedReward !== undefined);
  return known
    ? { rows: rows.map((row) => ({ ...row, reward: row.trainedReward! })), note: null }
    : { rows: [...rows], note: 'environment reward, before trainer post-processing' };
}
