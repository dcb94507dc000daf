interface Member {
  id: string;
  sample: number | null;
  reward: number | null;
}

/** By descending reward, unscored last; then by sample. */
export const byReward = (a: Member, b: Member): number =>
  (b.reward ?? -Infinity) - (a.reward ?? -Infinity) || (a.sample ?? 0) - (b.sample ?? 0);

/** Pairs of scored samples to compare side by side; null where there are too few. */
export function pairsOf(members: readonly Member[]): { twoBest: string | null; bestAndWorst: string | null } {
  const ranked = members.filter(({ reward }) => reward !== null).toSorted(byReward);
  const [best, second] = ranked;
  const worst = ranked.at(-1);
  if (!best || !second || !worst) return { twoBest: null, bestAndWorst: null };
  return { twoBest: `${best.id},${second.id}`, bestAndWorst: `${best.id},${worst.id}` };
}
