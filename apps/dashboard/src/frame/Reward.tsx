/** Shows a reward without colour: filled if solved, half if positive, hollow if not, hatched if unscored. */
export function RewardDot({ reward, solved }: { reward: number | null; solved: (reward: number) => boolean }) {
  const kind = reward === null ? 'none' : solved(reward) ? 'full' : reward > 0 ? 'part' : 'empty';
  return <span className={`pip ${kind}`} aria-hidden="true" />;
}
