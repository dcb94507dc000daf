import { COMPARE_SORTS, type ComparedTasks } from '@palestra/protocol';
import { useInfiniteQuery } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { useMemo } from 'react';
import { type ComparedTask, comparedTasksQuery, type Pair, type TaskSort } from '../data/compare.ts';
import type { RunFilter } from '../data/run-queries.ts';
import { formatCount, formatReward, UNKNOWN } from '../format/number.ts';
import { taskName } from '../format/task.ts';
import { MemberLink } from '../frame/MemberLink.tsx';
import { errorInstead } from '../data/http.ts';
import { ErrorState, SkeletonRows } from '../frame/states.tsx';
import { type Column, DataTable, type Sort } from '../table/DataTable.tsx';
import { nextPageOf } from '../table/next-page.ts';
import type { ComparedRun } from './runs.ts';
import { RunMark } from './Tables.tsx';

const ROW = 28;
const MOST_ROWS = 16;
const reward = (value: number) => formatReward(value);
const change = (value: number) => formatReward(value, { signed: true });

/** Parses the sort of the address, such as `delta:1:desc`. */
export function readSort(text: string | undefined, runs: number): TaskSort {
  const [name, at, order] = (text ?? '').split(':');
  const by = COMPARE_SORTS.find((one) => one === name) ?? 'size';
  const against = Number(at);
  return {
    by,
    against: Number.isInteger(against) && against >= 1 && against < runs ? against : 1,
    order: order === 'asc' ? 'asc' : 'desc',
  };
}

const idOf = ({ by, against }: TaskSort): string => `${by}:${by === 'first' ? 1 : against}`;

/** In how many tasks a run is better, worse or equal. */
function PairLine({ pair, run, first }: { pair: Pair; run: ComparedRun; first: ComparedRun }) {
  return (
    <p className="text-ink-2" data-better={run.letter}>
      <span className="strong text-ink-1">
        {run.letter} − {first.letter}
      </span>{' '}
      better in {formatCount(pair.better)}, worse in {formatCount(pair.worse)}, equal in {formatCount(pair.equal)}
    </p>
  );
}

/** The size of a difference: to the left if worse, to the right if better. */
function DeltaBar({ delta, most }: { delta: number; most: number }) {
  const share = most === 0 ? 0 : (50 * Math.abs(delta)) / most;
  return (
    <span className="relative block h-[8px] w-full bg-paper-2" aria-hidden="true">
      <span
        className={`absolute h-full ${delta < 0 ? 'bg-bad' : 'bg-good'}`}
        style={{ left: `${delta < 0 ? 50 - share : 50}%`, width: `${share}%` }}
      />
      <span className="absolute left-1/2 h-full w-px bg-line-strong" />
    </span>
  );
}

function TaskLink({ run, task, children }: { run: ComparedRun; task: string; children: string }) {
  const { org } = run.run;
  return (
    <MemberLink
      to="/$org/runs/$run/tasks/$task"
      params={{ org, run: run.run.name, task }}
      search={{}}
      className="hover:text-accent hover:underline"
    >
      {children}
    </MemberLink>
  );
}

/** The rollouts in a mean, by denominator. */
const COUNTED: Record<ComparedTasks['den'], string> = {
  scored: 'scored rollouts',
  all: 'all rollouts, unscored ones as 0',
  effective: 'effective rollouts',
};

function columnsOf(runs: readonly ComparedRun[], most: readonly number[], den: ComparedTasks['den']): Column<ComparedTask>[] {
  const right = { align: 'right', sortable: true } as const;
  return [
    {
      id: 'task',
      head: 'Task',
      track: 'minmax(110px,1fr)',
      cell: (row) => <span className="strong">{taskName(row.task)}</span>,
      title: ({ task }) => task.key,
    },
    {
      id: 'env',
      head: 'Environment',
      track: 'minmax(120px,1fr)',
      cell: ({ environment }) => <span className="text-ink-2">{environment ?? UNKNOWN}</span>,
    },
    ...runs.map((run, i): Column<ComparedTask> => ({
      id: i === 0 ? 'first:1' : `other:${i}`,
      head: (
        <>
          <RunMark run={run} /> mean
        </>
      ),
      track: 'minmax(104px,0.6fr)',
      explain: `Mean reward over ${COUNTED[den]} of the task in ${run.run.name}, and how many`,
      ...right,
      cell: ({ task, runs: cells }) => (
        <>
          <TaskLink run={run} task={task.id}>
            {reward(cells[i]!.mean)}
          </TaskLink>{' '}
          <span className="label">n {formatCount(cells[i]!.scored)}</span>
        </>
      ),
    })),
    ...runs.slice(1).flatMap((run, i): Column<ComparedTask>[] => {
      const delta = ({ runs: cells }: ComparedTask) => cells[i + 1]!.mean - cells[0]!.mean;
      return [
        {
          id: `delta:${i + 1}`,
          head: `Δ ${run.letter} − A`,
          track: '88px',
          ...right,
          cell: (row) => (
            <span className={delta(row) < -1e-9 ? 'text-bad' : delta(row) > 1e-9 ? 'text-good' : 'text-ink-3'}>{change(delta(row))}</span>
          ),
        },
        {
          id: `size:${i + 1}`,
          head: `|Δ|`,
          track: 'minmax(90px,0.8fr)',
          sortable: true,
          explain: 'Sorts by the absolute difference',
          cell: (row) => <DeltaBar delta={delta(row)} most={most[i] ?? 0} />,
        },
      ];
    }),
  ];
}

/** Tasks with scored rollouts in all runs, with paired differences. */
export function TaskTable({ runs, filter }: { runs: readonly ComparedRun[]; filter: RunFilter }) {
  const { sort: text } = useSearch({ from: '/compare' });
  const navigate = useNavigate({ from: '/compare' });
  const sort = readSort(text, runs.length);
  const ids = runs.map(({ run }) => run.id);
  const pages = useInfiniteQuery(comparedTasksQuery(ids, filter, sort));
  const tasks = useMemo(() => pages.data?.pages.flatMap((page) => page.tasks) ?? [], [pages.data]);
  const den = pages.data?.pages[0]?.den ?? 'effective';
  const most = useMemo(
    () =>
      runs.slice(1).map((_, i) => tasks.reduce((max, { runs: cells }) => Math.max(max, Math.abs(cells[i + 1]!.mean - cells[0]!.mean)), 0)),
    [runs, tasks],
  );
  const columns = useMemo(() => columnsOf(runs, most, den), [runs, most, den]);
  const error = errorInstead(pages);
  if (error) return <ErrorState error={error} retry={() => void pages.refetch()} />;
  const head = pages.data?.pages[0];
  if (!head) return <SkeletonRows />;
  const onSort = ({ id, order }: Sort) => void navigate({ search: (old) => ({ ...old, sort: `${id}:${order}` }), replace: true });
  return (
    <section aria-label="Shared tasks" className="border-t border-line">
      <TaskHead head={head} runs={runs} />
      <div style={{ height: ROW * Math.min(MOST_ROWS, tasks.length) + 34 }}>
        <DataTable
          label="Tasks scored in all runs"
          columns={columns}
          rows={tasks}
          rowKey={({ task }) => task.id}
          total={head.common}
          sort={{ id: idOf(sort), order: sort.order }}
          onSort={onSort}
          {...nextPageOf(pages)}
          minWidth={620 + 190 * (runs.length - 1)}
        />
      </div>
      {tasks.length === 0 && (
        <p className="px-4 pb-4 text-ink-2">All of these runs together scored no task in these steps and this phase.</p>
      )}
    </section>
  );
}

function TaskHead({ head, runs }: { head: ComparedTasks; runs: readonly ComparedRun[] }) {
  const of = head.runs.map(({ tasks }, i) => `${runs[i]?.letter ?? ''} ${formatCount(tasks)}`).join(', ');
  return (
    <div className="px-4 py-3">
      <h2 className="panel-title">
        Shared tasks{' '}
        <span className="label">
          {formatCount(head.common)} in common (of {of}) · {head.phase ?? 'no phase'} · mean reward of {COUNTED[head.den]}, canonical
          definitions
        </span>
      </h2>
      {head.pairs.map((pair, i) => (
        <PairLine key={pair.run} pair={pair} run={runs[i + 1] ?? runs[0]!} first={runs[0]!} />
      ))}
    </div>
  );
}
