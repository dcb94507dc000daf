import { passAtKOfGroup } from '@palestra/metrics';
import { type Group, GROUP_SORTS, type GroupSort } from '@palestra/protocol';
import { useInfiniteQuery } from '@tanstack/react-query';
import { Link, useNavigate, useRouter, useSearch } from '@tanstack/react-router';
import { type FormEvent, useMemo, useRef } from 'react';
import { type GroupListRequest, groupsNowQuery, groupsQuery } from '../data/groups.ts';
import { useNews } from '../data/news.ts';
import { useFirstRows, useReadings } from '../table/history-entry.ts';
import { formatCount, formatReward, plural, UNKNOWN } from '../format/number.ts';
import { NewsPill } from '../frame/NewsPill.tsx';
import { errorInstead } from '../data/http.ts';
import { ErrorState, SkeletonRows } from '../frame/states.tsx';
import { useRun } from '../run/context.ts';
import { RunStep } from '../run/Step.tsx';
import { filterClauses } from '../run/filter.ts';
import { type Column, DataTable, type Sort } from '../table/DataTable.tsx';
import { nextPageOf } from '../table/next-page.ts';
import { QuerySelection } from '../selection/QuerySelection.tsx';
import { groupsClause } from '../selection/selection.ts';
import { useRowSelection } from '../selection/useRowSelection.ts';
import { Pips } from './Pips.tsx';
import { taskName } from '../format/task.ts';
import { signalOf } from './group-signal.ts';

const columns: Column<Group>[] = [
  {
    id: 'step',
    head: 'Step',
    track: '64px',
    phone: '46px',
    align: 'right',
    sortable: true,
    cell: ({ step }) => <RunStep step={step} />,
  },
  {
    id: 'task',
    head: 'Task',
    track: 'minmax(110px,1fr)',
    phone: 'minmax(0,1fr)',
    cell: (group) => <span className="strong">{taskName(group.task, 12)}</span>,
    title: ({ task }) => task?.key,
  },
  {
    id: 'environment',
    head: 'Environment',
    track: 'minmax(130px,1fr)',
    cell: ({ environment }) => <span className="text-ink-2">{environment ?? UNKNOWN}</span>,
    title: ({ environment }) => environment ?? undefined,
  },
  {
    id: 'phase',
    head: 'Phase',
    track: '60px',
    cell: ({ phase }) => <span className="text-ink-3">{phase === 'unknown' ? UNKNOWN : phase}</span>,
  },
  {
    id: 'n',
    head: 'Received',
    track: '84px',
    align: 'right',
    sortable: true,
    explain: 'Received and expected rollouts; trainers drop failed rollouts',
    cell: ({ received, expected, complete }) => (
      <span className={complete === false ? 'text-policy' : ''}>
        {complete === false && '▲ '}
        {formatCount(received)} of {expected === null ? UNKNOWN : formatCount(expected)}
      </span>
    ),
  },
  {
    id: 'mean',
    head: 'Mean',
    track: '68px',
    phone: '56px',
    align: 'right',
    sortable: true,
    explain: 'Mean reward of the scored rollouts',
    cell: ({ mean, scored }) => <span title={`n ${scored}`}>{formatReward(mean)}</span>,
  },
  {
    id: 'std',
    head: 'Std',
    track: '60px',
    align: 'right',
    sortable: true,
    explain: 'ddof 1; 0 if the rewards differ by at most 1e-6',
    cell: ({ std }) => formatReward(std),
  },
  {
    id: 'pass1',
    head: 'pass@1',
    track: '64px',
    align: 'right',
    explain: 'Share of successes in the scored rollouts',
    cell: ({ scored, successes }) => formatReward(scored === 0 ? null : successes / scored),
  },
  {
    id: 'passn',
    head: 'pass@n',
    track: '64px',
    align: 'right',
    explain: '1 if any scored rollout solved the task',
    cell: ({ scored, successes }) => formatReward(scored === 0 ? null : passAtKOfGroup(scored, successes, scored)),
  },
  { id: 'pips', head: 'Samples', track: 'minmax(110px,0.8fr)', phone: 'minmax(0,1.2fr)', cell: (group) => <Pips group={group} /> },
  {
    id: 'signal',
    head: 'Variance',
    track: 'minmax(192px,1.2fr)',
    explain: 'With zero variance every advantage of the group is zero',
    cell: ({ zero_variance, scored }) => {
      const { text, className } = signalOf(zero_variance, scored);
      return <span className={className}>{text}</span>;
    },
  },
];

const filters: readonly (readonly [label: string, q: string])[] = [
  ['All', ''],
  ['Nonzero variance', 'group.std:>0'],
  ['Zero variance', 'group.std:0 group.n:>1'],
  ['None solved', 'group.pass:0'],
  ['All solved', 'group.pass:1'],
  ['Incomplete', 'group.complete:false'],
];

const keyOf = ({ key, step, phase }: Group): string => `${key}:${step}:${phase}`;
const readSort = (text: string | undefined): Sort & { id: GroupSort } => {
  const [id, order] = (text ?? '').split('.');
  return { id: GROUP_SORTS.find((one) => one === id) ?? 'step', order: order === 'asc' ? 'asc' : 'desc' };
};

/** The groups that match the filter. */
export function GroupsPage() {
  const { org, run, filter } = useRun();
  const search = useSearch({ from: '/$org/runs/$run/groups' });
  const navigate = useNavigate({ from: '/$org/runs/$run/groups' });
  const router = useRouter();
  const sort = readSort(search.sort);
  const q = search.q ?? '';
  const query = [filterClauses({ env: filter.env }), q].filter(Boolean).join(' ');
  const request: GroupListRequest = { steps: filter.steps, phase: filter.phase, q: query, sort: sort.id, order: sort.order };
  const { snapshot, reload } = useReadings(JSON.stringify([run.id, request]));
  const groups = useInfiniteQuery(groupsQuery(run.id, request, snapshot));
  const rows = useMemo(() => groups.data?.pages.flatMap((page) => page.groups) ?? [], [groups.data]);
  const first = groups.data?.pages[0];
  const whole = first?.next === null;
  const news = useNews(run.version, { rows, version: first?.version, whole, key: keyOf }, groupsNowQuery(run.id, request));
  useFirstRows(first !== undefined && rows.length === 0 && news.fresh > 0, reload);
  const selection = useRowSelection(rows, keyOf, JSON.stringify([snapshot, request]));
  const input = useRef<HTMLInputElement>(null);
  const setQ = (text: string) => void navigate({ search: (old) => ({ ...old, q: text.trim() || undefined }), replace: true });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    setQ(input.current!.value);
  };
  const open = ({ key, step }: Group, newTab: boolean) => {
    const to = {
      to: '/$org/runs/$run/groups/$group',
      params: { org, run: run.name, group: key },
      search: { ...filter, at: step ?? undefined },
    } as const;
    if (newTab) globalThis.open(router.buildLocation(to).href, '_blank', 'noopener');
    else void navigate(to);
  };
  const { hasNextPage } = groups;
  const error = errorInstead(groups);
  return (
    <div className="flex h-full min-h-0 flex-col">
      <div className="flex min-h-[40px] flex-none flex-wrap items-center gap-2 border-b border-line px-4 py-[5px]">
        <div role="group" aria-label="Kind of group" className="flex flex-wrap gap-1">
          {filters.map(([label, text]) => (
            <button
              key={label}
              type="button"
              className="button aria-pressed:border-accent aria-pressed:bg-accent-wash aria-pressed:text-ink-1"
              aria-pressed={q === text}
              onClick={() => setQ(text)}
            >
              {label}
            </button>
          ))}
        </div>
        <form onSubmit={submit} className="min-w-[220px] flex-1">
          <input
            type="search"
            className="input mono w-full"
            aria-label="Find groups by a query for their rollouts"
            placeholder="Find groups by rollouts: reward:<0.2 tool:search"
            ref={input}
            key={q}
            defaultValue={q}
          />
        </form>
        <NewsPill news={news} noun="groups" onShow={reload} />
        <span className="label" role="status">
          {groups.data ? `${plural(rows.length, 'group')}${hasNextPage ? ' loaded, more available' : ''}` : ''}
        </span>
      </div>
      <div className="min-h-0 flex-1">
        {error ? (
          <ErrorState error={error} retry={() => void groups.refetch()} />
        ) : groups.data ? (
          <DataTable
            label="Groups"
            columns={columns}
            rows={rows}
            rowKey={keyOf}
            sort={sort}
            onSort={({ id, order }) => void navigate({ search: (old) => ({ ...old, sort: `${id}.${order}` }), replace: true })}
            onOpen={open}
            {...nextPageOf(groups)}
            selection={selection}
            minWidth={1050}
            empty={<Empty q={q} />}
          />
        ) : (
          <SkeletonRows />
        )}
      </div>
      <QuerySelection selection={selection} noun="group" q={(chosen) => groupsClause('', chosen)} all={rows} />
    </div>
  );
}

function Empty({ q }: { q: string }) {
  if (q !== '') return <p className="p-4 text-ink-3">No group has a rollout that matches “{q}”.</p>;
  return (
    <p className="max-w-[64ch] p-4 text-ink-2">
      No groups match the filter. The rollouts of a task at a step form a group. Send <code>group_id</code> in the metadata, or{' '}
      <code>current_step</code> and <code>task_index</code> in <code>rollout_info</code>.{' '}
      <Link to="/check" className="link">
        Check an upload
      </Link>
    </p>
  );
}
