import type { GroupView, RolloutHeader } from '@palestra/protocol';
import { useNavigate } from '@tanstack/react-router';
import { formatReward, UNKNOWN } from '../format/number.ts';
import { Menu, MenuItem, MenuLine } from '../frame/Menu.tsx';
import { byReward, pairsOf } from '../groups/pairs.ts';

/** Siblings in the menu; the page of the group has all. */
const MOST = 16;

/** Compares the rollout with another sample of its group, or two others, side by side. */
export function CompareMenu({ header, group }: { header: RolloutHeader; group: GroupView }) {
  const navigate = useNavigate();
  const compare = (rollouts: string) => void navigate({ to: '/compare', search: { rollouts } });
  const { twoBest, bestAndWorst } = pairsOf(group.rollouts);
  const others = group.rollouts.filter(({ id }) => id !== header.id).toSorted(byReward);
  if (others.length === 0) return null;
  return (
    <Menu label="Compare side by side" button="Side by side ▾">
      <MenuItem disabled={twoBest === null} onSelect={() => twoBest !== null && compare(twoBest)}>
        Two best samples
      </MenuItem>
      <MenuItem disabled={bestAndWorst === null} onSelect={() => bestAndWorst !== null && compare(bestAndWorst)}>
        Best and worst sample
      </MenuItem>
      <MenuLine />
      {others.slice(0, MOST).map(({ id, sample, reward, stop }) => (
        <MenuItem key={id} onSelect={() => compare(`${header.id},${id}`)}>
          <span className="flex-1">This and #{sample ?? UNKNOWN}</span>
          <span className="num">{formatReward(reward)}</span>
          <span className="label">{stop}</span>
        </MenuItem>
      ))}
    </Menu>
  );
}
