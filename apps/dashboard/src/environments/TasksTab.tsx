import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import type { EnvironmentDiscoveryView, JsonValue } from '@palestra/protocol';
import { useMemo, useState } from 'react';
import { difficultyQuery } from '../data/environments.ts';
import { formatCount, formatReward, formatShare, plural, UNKNOWN } from '../format/number.ts';
import { ListAndDetails } from '../table/ListAndDetails.tsx';
import { ErrorState } from '../frame/states.tsx';
import { type Column, DataTable, type Sort } from '../table/DataTable.tsx';
import { PlainText } from '../text/PlainText.tsx';
import { difficultyOf, MOST_TASKS, type TaskRow, taskRows, type TaskSort, withoutSplit } from './difficulty.ts';
import { type SplitAddress, useTask, variantOf } from './split.ts';
import { TaskPanel } from './TaskPanel.tsx';
import { VariantTabs } from './VariantTabs.tsx';

const from = '/environments/$owner/$name' as const;
/** The number of tasks that are listed first if the server does not report a count. */
const UNCOUNTED = 500;

const oneLine = (spec: JsonValue): string => (typeof spec === 'string' ? spec : (JSON.stringify(spec) ?? '')).slice(0, 300);

function Spec({ address, index }: { address: SplitAddress; index: number }) {
  const { page, task } = useTask(address, index);
  if (task === undefined) return <span className="text-ink-3">{page.error ? page.error.message : page.data ? 'Task not found' : ''}</span>;
  return (
    <span className="mono text-ink-2">
      <PlainText text={oneLine(task.task_spec)} />
    </span>
  );
}

/** The solve rate as a bar and a percentage. */
function Solved({ row: { difficulty } }: { row: TaskRow }) {
  if (difficulty === null) return <span className="text-ink-3">{UNKNOWN}</span>;
  const share = difficulty.solved / difficulty.n;
  return (
    <span className="grid grid-cols-[minmax(24px,1fr)_44px] items-center gap-2" title={`${difficulty.solved} of ${difficulty.n} rollouts`}>
      <span className="h-[4px] rounded-[2px] bg-paper-2" aria-hidden="true">
        <span className="block h-full rounded-[2px] bg-good" style={{ width: `${share * 100}%` }} />
      </span>
      <span className="num">{formatShare(difficulty.solved, difficulty.n)}</span>
    </span>
  );
}

function columnsOf(address: SplitAddress): Column<TaskRow>[] {
  return [
    { id: 'index', head: 'Task', track: '64px', phone: '48px', align: 'right', sortable: true, cell: ({ index }) => formatCount(index) },
    {
      id: 'spec',
      head: 'Specification',
      track: 'minmax(180px,1fr)',
      phone: 'line',
      cell: ({ index }) => <Spec address={address} index={index} />,
    },
    {
      id: 'n',
      head: 'n',
      explain: 'Scored rollouts of your organisation',
      track: '60px',
      align: 'right',
      sortable: true,
      cell: ({ difficulty }) => (difficulty === null ? UNKNOWN : formatCount(difficulty.n)),
    },
    {
      id: 'avg',
      head: 'Mean reward',
      explain: 'Mean reward of the scored rollouts; low means difficult',
      track: '84px',
      phone: 'minmax(0,1fr)',
      align: 'right',
      sortable: true,
      title: ({ difficulty }) =>
        difficulty === null ? undefined : `${difficulty.avg}, from ${formatReward(difficulty.min)} to ${formatReward(difficulty.max)}`,
      cell: ({ difficulty }) => (difficulty === null ? <span className="text-ink-3">{UNKNOWN}</span> : formatReward(difficulty.avg)),
    },
    {
      id: 'solved',
      head: 'Solve rate',
      explain: 'Share of successes in the scored rollouts',
      track: '120px',
      phone: '104px',
      align: 'right',
      sortable: true,
      cell: (row) => <Solved row={row} />,
    },
    {
      id: 'play',
      head: <span className="sr-only">Play</span>,
      track: '52px',
      phone: '44px',
      cell: ({ index }) => (
        <Link
          to="/environments/$owner/$name/play"
          params={{ owner: address.owner, name: address.name }}
          search={{ variant: address.variant, split: address.split, task: index }}
          className="link"
          aria-label={`Play task ${index}`}
        >
          Play
        </Link>
      ),
    },
  ];
}

const sorts: readonly TaskSort[] = ['index', 'avg', 'n', 'solved'];

/** The tasks of a split with their difficulty. A click on a row opens the task. */
export function TasksTab({ owner, name, discovery }: { owner: string; name: string; discovery: EnvironmentDiscoveryView }) {
  const search = useSearch({ from });
  const navigate = useNavigate({ from });
  const [more, setMore] = useState(0);
  const figures = useQuery(difficultyQuery(owner, name));
  const variant = variantOf(discovery, search.variant);
  const split = variant?.splits.find((one) => one.name === search.split) ?? variant?.splits[0];
  const sort: Sort = { id: sorts.find((one) => one === search.sort) ?? 'index', order: search.order ?? 'asc' };
  const mixed = search.only === 'mixed';
  const address = useMemo<SplitAddress>(
    () => ({ owner, name, variant: variant?.name ?? '', split: split?.name ?? '' }),
    [owner, name, variant?.name, split?.name],
  );
  const difficulty = useMemo(
    () =>
      difficultyOf(figures.data?.tasks ?? [], { split: address.split, variant: address.variant, isDefault: variant?.is_default ?? true }),
    [figures.data, address, variant?.is_default],
  );
  const count = split?.num_tasks ?? [...difficulty.keys()].reduce((most, index) => Math.max(most, index + 1), UNCOUNTED + more);
  const { id, order } = sort;
  const rows = useMemo(() => taskRows(count, difficulty, { sort: id as TaskSort, order, mixed }), [count, difficulty, id, order, mixed]);
  const columns = useMemo(() => columnsOf(address), [address]);
  if (!variant || !split) return <p className="p-4 text-ink-3">This environment has no splits.</p>;
  const unplaced = withoutSplit(figures.data?.tasks ?? []);
  const set = (change: Partial<typeof search>) => void navigate({ search: (before) => ({ ...before, ...change }), replace: true });
  return (
    <div className="flex h-full min-h-0 flex-col">
      <div className="flex flex-none flex-wrap items-center gap-2 border-b border-line px-4 py-[5px]">
        <VariantTabs discovery={discovery} variant={variant.name} />
        <div role="group" aria-label="Splits" className="flex flex-wrap gap-1">
          {variant.splits.map((one) => (
            <button
              key={one.name}
              type="button"
              aria-pressed={one === split}
              onClick={() => set({ split: one.name, task: undefined })}
              className={`flex h-[28px] items-center gap-2 rounded-[4px] px-2 hover:bg-paper-2 ${one === split ? 'bg-paper-2 strong' : 'text-ink-2'}`}
            >
              {one.name}
              {one.name !== one.type && <span className="label">{one.type}</span>}
              <span className="num text-ink-3">{one.num_tasks === null ? 'Open-ended' : formatCount(one.num_tasks)}</span>
            </button>
          ))}
        </div>
        <span className="flex-1" />
        <span className="label">
          {figures.error
            ? figures.error.message
            : `${formatCount(difficulty.size)} of ${plural(count, 'task')} with rollouts${unplaced > 0 ? `; ${plural(unplaced, 'rollout')} without a split` : ''}${count > MOST_TASKS ? `; the first ${formatCount(MOST_TASKS)} and those are listed` : ''}`}
        </span>
        <label className="flex items-center gap-[6px]" title="Shows only tasks that are solved sometimes, from which a policy can learn">
          <input type="checkbox" checked={mixed} onChange={(event) => set({ only: event.target.checked ? 'mixed' : undefined })} />
          Only <code>0 &lt; mean &lt; 1</code>
        </label>
      </div>
      <div className="min-h-0 flex-1">
        <ListAndDetails
          list={
            <DataTable
              label={`Tasks of ${split.name}`}
              columns={columns}
              rows={rows}
              rowKey={({ index }) => String(index)}
              sort={sort}
              onSort={(next) => set({ sort: next.id === 'index' ? undefined : next.id, order: next.order === 'asc' ? undefined : 'desc' })}
              current={search.task === undefined ? null : String(search.task)}
              onOpen={({ index }) => set({ task: search.task === index ? undefined : index })}
              more={split.num_tasks === null && !mixed && count < MOST_TASKS ? () => setMore((before) => before + UNCOUNTED) : null}
              minWidth={560}
              empty={
                <p className="p-4 text-ink-3">
                  {mixed ? 'No task of this split is solved in some but not all stored rollouts.' : 'This split has no tasks.'}
                </p>
              }
            />
          }
          details={
            search.task !== undefined && (
              <TaskPanel
                key={`${address.split} ${search.task}`}
                address={address}
                index={search.task}
                difficulty={difficulty.get(search.task) ?? null}
                onClose={() => set({ task: undefined })}
              />
            )
          }
        />
      </div>
      {figures.error && <ErrorState error={figures.error} retry={() => void figures.refetch()} />}
    </div>
  );
}
