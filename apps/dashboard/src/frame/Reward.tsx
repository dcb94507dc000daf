/** The second channel of a reward: filled when solved, half when positive, hollow when not, hatched when unscored. */
export function RewardDot({ reward, solved }: { reward: number | null; solved: (reward: number) => boolean }) {
  const kind = reward === null ? 'none' : solved(reward) ? 'full' : reward > 0 ? 'part' : 'empty';
  return <span className={`pip ${kind}`} aria-hidden="true" />;
}
