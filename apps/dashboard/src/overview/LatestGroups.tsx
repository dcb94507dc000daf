import type { Group } from '@palestra/protocol';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { latestGroupsQuery } from '../data/run-queries.ts';
import { formatReward, UNKNOWN } from '../format/number.ts';
import { taskName } from '../format/task.ts';
import { Pips } from '../groups/Pips.tsx';
import { useRun } from '../run/context.ts';
import { RunStep } from '../run/Step.tsx';

const columns =
  'grid-cols-[minmax(70px,1fr)_minmax(90px,1.6fr)_64px_minmax(76px,1.2fr)_56px_56px_minmax(70px,1fr)] max-[560px]:grid-cols-[minmax(0,1fr)_46px_minmax(0,1.2fr)_56px]';
/** Head, alignment to the right, and whether it is shown on a phone. */
const heads = [
  ['Task', false, true],
  ['Environment', false, false],
  ['Step', true, true],
  ['Samples', false, true],
  ['Mean', true, true],
  ['Std', true, false],
  ['Variance', false, false],
] as const;
const notOnPhone = 'max-[560px]:hidden';

/** The groups of the newest steps, and which of them have zero variance. */
export function LatestGroups() {
  const { org, run, filter } = useRun();
  const { data } = useQuery(latestGroupsQuery(run.id, filter));
  return (
    <section aria-labelledby="latest-groups" className="min-w-0 border-r border-line">
      <div className="flex h-[30px] items-center gap-2 px-3">
        <h2 id="latest-groups" className="strong">
          Latest groups
        </h2>
        <Link to="/$org/runs/$run/groups" params={{ org, run: run.name }} search={{ ...filter }} className="label link ml-auto">
          Show all groups
        </Link>
      </div>
      <div role="table" aria-labelledby="latest-groups">
        <div role="row" className={`grid border-y border-line px-1 ${columns}`}>
          {heads.map(([head, isRight, isOnPhone]) => (
            <span key={head} role="columnheader" className={`head-cell ${isRight ? 'justify-end' : ''} ${isOnPhone ? '' : notOnPhone}`}>
              {head}
            </span>
          ))}
        </div>
        {data?.groups.map((group) => (
          <Row key={`${group.key}:${group.step}`} group={group} />
        ))}
      </div>
      {data?.groups.length === 0 && (
        <p className="p-3 text-ink-3">
          No groups yet. Send <code>group_id</code> in the metadata of each rollout of a prompt, or a step and a task index.
        </p>
      )}
    </section>
  );
}

const varianceNames = { 'all-pass': 'Zero, all solved', 'all-fail': 'Zero, none solved', 'equal-other': 'Zero, all equal' } as const;

function Row({ group }: { group: Group }) {
  const { org, run, filter } = useRun();
  return (
    <Link
      to="/$org/runs/$run/groups/$group"
      params={{ org, run: run.name, group: group.key }}
      // A trainer may use one key at every step.
      search={{ ...filter, at: group.step ?? undefined }}
      role="row"
      className={`row px-1 ${columns}`}
    >
      <span role="cell" className="cell strong" title={group.task?.key}>
        {taskName(group.task, 8)}
      </span>
      <span role="cell" className={`cell text-ink-3 ${notOnPhone}`} title={group.environment ?? undefined}>
        {group.environment ?? UNKNOWN}
      </span>
      <span role="cell" className="cell num text-ink-2">
        <RunStep step={group.step} />
      </span>
      <span role="cell" className="cell">
        <Pips group={group} />
      </span>
      <span role="cell" className="cell num">
        {formatReward(group.mean)}
      </span>
      <span role="cell" className={`cell num text-ink-3 ${notOnPhone}`}>
        {formatReward(group.std)}
      </span>
      <span role="cell" className={`cell text-ink-3 ${notOnPhone}`}>
        {group.zero_variance === null ? '' : varianceNames[group.zero_variance]}
      </span>
    </Link>
  );
}
