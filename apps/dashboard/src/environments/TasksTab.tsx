import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import type { EnvironmentDiscoveryView, JsonValue } from '@palestra/protocol';
import { useMemo, useState } from 'react';
import { difficultyQuery } from '../data/environments.ts';
import { formatCount, formatReward, formatShare, plural, UNKNOWN } from '../format/number.ts';
import { ErrorState } from '../frame/states.tsx';
import { type Column, DataTable, type Sort } from '../table/DataTable.tsx';
import { PlainText } from '../text/PlainText.tsx';
import { difficultyOf, type TaskRow, taskRows, type TaskSort, withoutSplit } from './difficulty.ts';
import { type Place, useTask, variantOf } from './place.ts';
import { TaskPanel } from './TaskPanel.tsx';
import { VariantTabs } from './VariantTabs.tsx';

const from = '/environments/$owner/$name' as const;
/** Where nobody says how many tasks there are, so many are offered at first. */
const UNCOUNTED = 500;

const oneLine = (spec: JsonValue): string => (typeof spec === 'string' ? spec : (JSON.stringify(spec) ?? '')).slice(0, 300);

function Spec({ place, index }: { place: Place; index: number }) {
  const { page, task } = useTask(place, index);
  if (task === undefined) return <span className="text-ink-3">{page.error ? page.error.message : page.data ? 'no such task' : ''}</span>;
  return (
    <span className="mono text-ink-2">
      <PlainText text={oneLine(task.task_spec)} />
    </span>
  );
}

/** How often it was solved: a bar and the share. */
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

function columnsOf(place: Place): Column<TaskRow>[] {
  return [
    { id: 'index', head: 'Task', track: '64px', align: 'right', sortable: true, cell: ({ index }) => formatCount(index) },
    { id: 'spec', head: 'Specification', track: 'minmax(180px,1fr)', cell: ({ index }) => <Spec place={place} index={index} /> },
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
      head: 'Avg reward',
      explain: 'Mean reward of its scored rollouts: low is hard',
      track: '84px',
      align: 'right',
      sortable: true,
      title: ({ difficulty }) =>
        difficulty === null ? undefined : `${difficulty.avg}, from ${formatReward(difficulty.min)} to ${formatReward(difficulty.max)}`,
      cell: ({ difficulty }) => (difficulty === null ? <span className="text-ink-3">{UNKNOWN}</span> : formatReward(difficulty.avg)),
    },
    {
      id: 'solved',
      head: 'Solve rate',
      explain: 'Share of its scored rollouts whose reward counts as a success in their run',
      track: '120px',
      align: 'right',
      sortable: true,
      cell: (row) => <Solved row={row} />,
    },
    {
      id: 'play',
      head: <span className="sr-only">Play</span>,
      track: '52px',
      cell: ({ index }) => (
        <Link
          to="/environments/$owner/$name/play"
          params={{ owner: place.owner, name: place.name }}
          search={{ variant: place.variant, split: place.split, task: index }}
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

/** The tasks of a split with their difficulty; a row opens to its task. */
export function TasksTab({ owner, name, discovery }: { owner: string; name: string; discovery: EnvironmentDiscoveryView }) {
  const search = useSearch({ from });
  const navigate = useNavigate({ from });
  const [more, setMore] = useState(0);
  const figures = useQuery(difficultyQuery(owner, name));
  const variant = variantOf(discovery, search.variant);
  const split = variant?.splits.find((one) => one.name === search.split) ?? variant?.splits[0];
  const sort: Sort = { id: sorts.find((one) => one === search.sort) ?? 'index', order: search.order ?? 'asc' };
  const mixed = search.only === 'mixed';
  const place = useMemo<Place>(
    () => ({ owner, name, variant: variant?.name ?? '', split: split?.name ?? '' }),
    [owner, name, variant?.name, split?.name],
  );
  const difficulty = useMemo(
    () => difficultyOf(figures.data?.tasks ?? [], { split: place.split, variant: place.variant, isDefault: variant?.is_default ?? true }),
    [figures.data, place, variant?.is_default],
  );
  const count = split?.num_tasks ?? Math.max(UNCOUNTED + more, ...[...difficulty.keys()].map((index) => index + 1));
  const { id, order } = sort;
  const rows = useMemo(() => taskRows(count, difficulty, { sort: id as TaskSort, order, mixed }), [count, difficulty, id, order, mixed]);
  const columns = useMemo(() => columnsOf(place), [place]);
  if (!variant || !split) return <p className="p-4 text-ink-3">This environment names no split.</p>;
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
              <span className="num text-ink-3">{one.num_tasks === null ? 'open-ended' : formatCount(one.num_tasks)}</span>
            </button>
          ))}
        </div>
        <span className="flex-1" />
        <span className="label">
          {figures.error
            ? figures.error.message
            : `${formatCount(difficulty.size)} of ${plural(count, 'task')} with rollouts${unplaced > 0 ? `; ${plural(unplaced, 'rollout')} of others name no split` : ''}`}
        </span>
        <label
          className="flex items-center gap-[6px]"
          title="Tasks that are sometimes solved and sometimes not: what a policy can learn from"
        >
          <input type="checkbox" checked={mixed} onChange={(event) => set({ only: event.target.checked ? 'mixed' : undefined })} />
          only <code>0 &lt; avg &lt; 1</code>
        </label>
      </div>
      <div className="grid min-h-0 flex-1 grid-cols-[minmax(0,1fr)_auto]">
        <DataTable
          label={`Tasks of ${split.name}`}
          columns={columns}
          rows={rows}
          rowKey={({ index }) => String(index)}
          sort={sort}
          onSort={(next) => set({ sort: next.id === 'index' ? undefined : next.id, order: next.order === 'asc' ? undefined : 'desc' })}
          current={search.task === undefined ? null : String(search.task)}
          onOpen={({ index }) => set({ task: search.task === index ? undefined : index })}
          more={split.num_tasks === null && !mixed ? () => setMore((before) => before + UNCOUNTED) : null}
          minWidth={560}
          empty={
            <p className="p-4 text-ink-3">
              {mixed
                ? 'No task of this split was sometimes solved and sometimes not, in the rollouts that are stored.'
                : 'This split has no task.'}
            </p>
          }
        />
        {search.task !== undefined && (
          <TaskPanel
            key={`${place.split} ${search.task}`}
            place={place}
            index={search.task}
            difficulty={difficulty.get(search.task) ?? null}
            onClose={() => set({ task: undefined })}
          />
        )}
      </div>
      {figures.error && <ErrorState error={figures.error} retry={() => void figures.refetch()} />}
    </div>
  );
}
