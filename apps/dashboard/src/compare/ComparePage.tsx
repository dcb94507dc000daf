import { useSearch } from '@tanstack/react-router';
import { Crumb, TopBar } from '../frame/page.tsx';
import { RolloutLanes } from './RolloutLanes.tsx';
import { RolloutsComparison } from './RolloutsComparison.tsx';
import { RunChooser } from './RunChooser.tsx';
import { RunsComparison } from './RunsComparison.tsx';

const MOST = 4;
const splitList = (text: string | undefined): string[] => [
  ...new Set(
    (text ?? '')
      .split(',')
      .map((one) => one.trim())
      .filter(Boolean),
  ),
];

/** Compares two to four runs, or two to four rollouts. */
export function ComparePage() {
  const search = useSearch({ from: '/compare' });
  const rollouts = splitList(search.rollouts).slice(0, MOST);
  const runs = splitList(search.runs).slice(0, MOST);
  if (rollouts.length === 2) return <RolloutsComparison a={rollouts[0]!} b={rollouts[1]!} />;
  if (rollouts.length > 2) return <RolloutLanes key={rollouts.join(',')} ids={rollouts} />;
  if (runs.length > 1) return <RunsComparison names={runs} />;
  return (
    <>
      <TopBar title="Compare" crumbs={<Crumb>Compare</Crumb>} />
      <RunChooser chosen={runs} />
    </>
  );
}
