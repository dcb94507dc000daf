import { printText } from '@palestra/query';
import type { ComparedRuns } from '@palestra/protocol';
import { useState } from 'react';
import { formatCount, formatShare } from '../format/number.ts';
import { taskName } from '../format/task.ts';
import { MemberLink } from '../frame/MemberLink.tsx';
import type { ComparedRun } from './runs.ts';
import { formatP } from './signed.ts';
import { RunMark } from './Tables.tsx';

type Solved = NonNullable<ComparedRuns['pairs'][number]['solved']>;
type Flip = Solved['flips'][number];

/** Flips shown before a button shows all of them. */
const FEW = 8;

/** The success of a task in a run, which leads to its rollouts. */
function Side({ run, flip, side, steps }: { run: ComparedRun; flip: Flip; side: Flip['first']; steps: ComparedRuns['steps'] }) {
  const range = steps.from === null || steps.to === null ? '' : ` step:${steps.from}..${steps.to}`;
  return (
    <MemberLink
      to="/$org/runs/$run/rollouts"
      params={{ org: run.run.org, run: run.run.name }}
      search={{ q: `task:${printText(flip.task.key)}${range}` }}
      className="relative inline-block hover:text-accent hover:underline"
    >
      <span className="sr-only">
        {taskName(flip.task)} in {run.letter}:{' '}
      </span>
      {formatShare(side.success, 1)} <span className="label">n {formatCount(side.samples)}</span>
    </MemberLink>
  );
}

/** The tasks that only one of the runs solves, each with links to its rollouts. */
export function Flips({
  solved,
  first,
  other,
  steps,
}: {
  solved: Solved;
  first: ComparedRun;
  other: ComparedRun;
  steps: ComparedRuns['steps'];
}) {
  const [all, setAll] = useState(false);
  const { lost, gained, both, neither, p, exact, flips } = solved;
  const shown = all ? flips : flips.slice(0, FEW);
  return (
    <div className="min-w-0" data-flips={other.letter}>
      <p>
        <span className="strong">
          {other.letter} solves {formatCount(gained)} more, loses {formatCount(lost)}
        </span>{' '}
        <span className="text-ink-2">
          of {formatCount(lost + gained + both + neither)} common tasks · both {formatCount(both)}, neither {formatCount(neither)}
        </span>
      </p>
      <p className="label">
        McNemar p {formatP(p)}, {exact ? 'exact' : 'chi-squared'}. A task is solved if at least half of its rollouts succeed.
      </p>
      {flips.length > 0 && (
        <table className="mt-2 w-full whitespace-nowrap">
          <caption className="sr-only">Tasks that only one run solves</caption>
          <thead>
            <tr className="label text-left">
              <th scope="col" className="py-1 font-[450]">
                Task
              </th>
              <th scope="col" className="num pl-4 font-[450]">
                <RunMark run={first} /> solves
              </th>
              <th scope="col" className="num pl-4 font-[450]">
                <RunMark run={other} /> solves
              </th>
              <th scope="col" className="pl-4 font-[450]">
                Change
              </th>
            </tr>
          </thead>
          <tbody>
            {shown.map((flip) => (
              <tr key={flip.task.id} className="border-t border-line" data-flip={flip.task.id}>
                <th
                  scope="row"
                  className="max-w-[180px] truncate py-[4px] text-left font-[450]"
                  title={`${flip.environment ?? ''} ${flip.task.key}`}
                >
                  {taskName(flip.task, 40)}
                </th>
                <td className="num pl-4">
                  <Side run={first} flip={flip} side={flip.first} steps={steps} />
                </td>
                <td className="num pl-4">
                  <Side run={other} flip={flip} side={flip.other} steps={steps} />
                </td>
                <td className={`pl-4 ${flip.other.success > flip.first.success ? 'text-good' : 'text-bad'}`}>
                  {flip.other.success > flip.first.success ? 'Gained' : 'Lost'}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {flips.length > FEW && (
        <button type="button" className="link mt-1" aria-expanded={all} onClick={() => setAll(!all)}>
          {all ? 'Show fewer' : `Show ${formatCount(flips.length)} tasks`}
        </button>
      )}
      {lost + gained > flips.length && all && <p className="label">Only the {formatCount(flips.length)} largest changes are listed.</p>}
    </div>
  );
}
