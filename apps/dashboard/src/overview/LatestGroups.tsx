import type { Group } from '@palestra/protocol';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { latestGroupsQuery } from '../data/run-queries.ts';
import { formatReward, UNKNOWN } from '../format/number.ts';
import { taskName } from '../format/task.ts';
import { useRun } from '../run/context.ts';
import { RunStep } from '../run/Step.tsx';

const MAX_PIPS = 16;

/** One dot per rollout: filled if solved, hollow if not, hatched if unscored; a count of expected rollouts follows. */
export function GroupPips({ group }: { group: Pick<Group, 'received' | 'scored' | 'successes' | 'expected'> }) {
  const { received, scored, successes, expected } = group;
  const waiting = Math.max(0, (expected ?? received) - received);
  const kinds = [
    ...Array.from({ length: successes }, () => 'full'),
    ...Array.from({ length: scored - successes }, () => 'empty'),
    ...Array.from({ length: received - scored }, () => 'none'),
  ];
  const text = `${successes} of ${received} solved${received > scored ? `, ${received - scored} unscored` : ''}${waiting > 0 ? `, ${waiting} expected` : ''}`;
  if (received > MAX_PIPS)
    return (
      <span className="tabular-nums" title={text}>
        {successes}/{received}
      </span>
    );
  return (
    <span className="inline-flex items-center gap-[3px]" role="img" aria-label={text} title={text}>
      {kinds.map((kind, i) => (
        <span key={i} className={`pip ${kind}`} />
      ))}
      {waiting > 0 && <span className="label">+{waiting}</span>}
    </span>
  );
}

const columns = 'grid-cols-[minmax(70px,1fr)_minmax(90px,1.6fr)_64px_minmax(76px,1.2fr)_56px_56px_minmax(70px,1fr)]';

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
          {['Task', 'Environment', 'Step', 'Samples', 'Mean', 'Std', 'Variance'].map((head, i) => (
            <span key={head} role="columnheader" className={`head-cell ${[2, 4, 5].includes(i) ? 'justify-end' : ''}`}>
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
      <span role="cell" className="cell text-ink-3" title={group.environment ?? undefined}>
        {group.environment ?? UNKNOWN}
      </span>
      <span role="cell" className="cell num text-ink-2">
        <RunStep step={group.step} />
      </span>
      <span role="cell" className="cell">
        <GroupPips group={group} />
      </span>
      <span role="cell" className="cell num">
        {formatReward(group.mean)}
      </span>
      <span role="cell" className="cell num text-ink-3">
        {formatReward(group.std)}
      </span>
      <span role="cell" className="cell text-ink-3">
        {group.zero_variance === null ? '' : varianceNames[group.zero_variance]}
      </span>
    </Link>
  );
}
