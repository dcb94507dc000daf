import { useInfiniteQuery } from '@tanstack/react-query';
import { useNavigate, useRouter, useSearch } from '@tanstack/react-router';
import type { Proportion } from '@palestra/metrics';
import { useEffect, useMemo } from 'react';
import { tasksNowQuery, type TaskStrip, tasksQuery } from '../data/insights.ts';
import { useNews } from '../data/news.ts';
import { useFirstRows, useReadings } from '../table/history-entry.ts';
import { formatCount, formatReward, plural, UNKNOWN } from '../format/number.ts';
import { taskName } from '../format/task.ts';
import { NewsPill } from '../frame/NewsPill.tsx';
import { errorInstead } from '../data/http.ts';
import { ErrorState, SkeletonRows } from '../frame/states.tsx';
import { useRun } from '../run/context.ts';
import { filterClauses } from '../run/filter.ts';
import { QuerySelection } from '../selection/QuerySelection.tsx';
import { tasksClause } from '../selection/selection.ts';
import { useRowSelection } from '../selection/useRowSelection.ts';
import { type Column, DataTable, type Sort } from '../table/DataTable.tsx';
import { nextPageOf } from '../table/next-page.ts';
import { type Change, changeBetween, difficultyOf, rateWithin, type Visit } from './flips.ts';
import { HeatStrip } from './HeatStrip.tsx';

/** Tasks that load without scrolling, so that the filters cover all tasks of most runs. */
const EAGER = 2_000;
const SHOWN = {
  all: 'All tasks',
  gained: 'Gained',
  lost: 'Lost',
  regressed: 'Regressed',
  mixed: 'Sometimes solved',
  never: 'Never solved',
} as const;
type Shown = keyof typeof SHOWN;

const keyOf = ({ task }: Pick<TaskStrip, 'task'>): string => task.id;
const byName = (a: TaskStrip, b: TaskStrip): number =>
  (a.environment ?? '').localeCompare(b.environment ?? '') ||
  (b.task.split ?? '').localeCompare(a.task.split ?? '') ||
  (a.task.index ?? Infinity) - (b.task.index ?? Infinity) ||
  a.task.key.localeCompare(b.task.key);

function isShown(shown: Shown, strip: TaskStrip, change: Change): boolean {
  const rates = strip.solve.filter((rate) => rate !== null);
  if (shown === 'gained' || shown === 'lost') return change.kind === shown;
  if (shown === 'regressed') return strip.regressed_at !== null;
  if (shown === 'never') return rates.length > 0 && rates.every((rate) => rate === 0);
  if (shown === 'mixed') return rates.some((rate) => rate > 0) && rates.some((rate) => rate < 1);
  return true;
}

const changeMark: Record<Change['kind'], [mark: string, className: string]> = {
  gained: ['+ Gained', 'text-good'],
  lost: ['− Lost', 'text-bad'],
  same: ['Same', 'text-ink-3'],
  single: ['One visit', 'text-ink-3'],
  none: [UNKNOWN, 'text-ink-3'],
};

function ChangeCell({ change: { kind, before, after } }: { change: Change }) {
  const [mark, className] = changeMark[kind];
  const visit = ({ step, rate }: Visit) => `${formatReward(rate)} at step ${step}`;
  return (
    <span className={className} title={before && after ? `${visit(before)}, ${visit(after)}` : undefined}>
      {mark}{' '}
      {before && after && (
        <span className="label tabular-nums">
          {kind === 'single' ? formatCount(after.step) : `${formatCount(before.step)} → ${formatCount(after.step)}`}
        </span>
      )}
    </span>
  );
}

/** A rate with its interval as a bar from 0 to 1. */
function RateCell({ solve }: { solve: Proportion | null }) {
  if (solve === null) return <span className="text-ink-3">{UNKNOWN}</span>;
  const at = (value: number) => `${value * 100}%`;
  return (
    <span
      className="flex items-center gap-2"
      title={`${formatCount(solve.successes)} of ${plural(solve.scored, 'scored rollout')}; 95 % ${formatReward(solve.low)}–${formatReward(solve.high)}`}
    >
      <span className="num w-[34px] flex-none">{formatReward(solve.rate)}</span>
      <span className="relative h-[10px] min-w-[40px] flex-1 bg-paper-2" aria-hidden="true">
        <span className="absolute inset-y-[3px] bg-ink-3/50" style={{ left: at(solve.low), right: at(1 - solve.high) }} />
        <span className="absolute inset-y-0 w-[3px] -translate-x-1/2 bg-good" style={{ left: at(solve.rate) }} />
      </span>
      <span className="label w-[62px] flex-none max-[560px]:hidden">{difficultyOf(solve)}</span>
    </span>
  );
}

interface Row extends TaskStrip {
  change: Change;
  /** Over the window. */
  rate: Proportion | null;
}

/** Values of the columns that sort; null comes last. */
const SORTS: Record<string, (row: Row) => number | null> = {
  rate: ({ rate }) => rate?.rate ?? null,
  first: (row) => row.first_solved,
  flips: (row) => row.flips,
  regressed: (row) => row.regressed_at,
  change: ({ change: { before, after } }) => (before && after ? after.rate - before.rate : null),
};

function sorted(rows: readonly Row[], { id, order }: Sort): Row[] {
  const value = SORTS[id];
  if (!value) return order === 'asc' ? [...rows] : rows.toReversed();
  const sign = order === 'asc' ? 1 : -1;
  return rows.toSorted((a, b) => {
    const [x, y] = [value(a), value(b)];
    if (x === null || y === null) return Number(x === null) - Number(y === null);
    return sign * (x - y);
  });
}

function columnsOf(range: readonly [number, number]): Column<Row>[] {
  const right = { align: 'right', sortable: true } as const;
  const step = (value: number | null) => (value === null ? UNKNOWN : formatCount(value));
  return [
    {
      id: 'task',
      head: 'Task',
      track: 'minmax(96px,0.7fr)',
      phone: 'minmax(0,0.8fr)',
      sortable: true,
      cell: (row) => <span className="strong">{taskName(row.task)}</span>,
      title: ({ task }) => task.key,
    },
    {
      id: 'rate',
      head: 'Solve rate',
      track: 'minmax(180px,1fr)',
      phone: '124px',
      sortable: true,
      explain: 'Successes per scored rollout between the two steps, with a 95 % Wilson interval clustered by visit, and the difficulty',
      cell: ({ rate }) => <RateCell solve={rate} />,
    },
    {
      id: 'change',
      head: 'Change',
      track: '124px',
      sortable: true,
      explain: 'Change between the scored visits nearest to the two steps',
      cell: ({ change }) => <ChangeCell change={change} />,
    },
    {
      id: 'strip',
      head: `Solved, step ${range[0]}–${range[1]}`,
      track: 'minmax(180px,2fr)',
      explain: 'Share of successes in the scored rollouts of each step, as height and colour',
      cell: (strip) => (
        <HeatStrip
          steps={strip.step}
          rates={strip.solve}
          from={range[0]}
          to={range[1]}
          label={`${taskName(strip.task)}: solve rate at ${strip.step.length} steps, ${strip.now ? `${strip.now.successes} of ${strip.now.scored} at step ${strip.now.step}` : 'not scored'}`}
        />
      ),
    },
    {
      id: 'now',
      head: 'Last visit',
      track: '108px',
      phone: '96px',
      align: 'right',
      explain: 'Successes among the scored rollouts at the last step with a rollout of the task',
      cell: ({ now }) =>
        now === null ? (
          UNKNOWN
        ) : (
          <>
            {formatCount(now.successes)}/{formatCount(now.scored)} <span className="label">step {formatCount(now.step)}</span>
          </>
        ),
    },
    { id: 'first', head: 'First solved', track: '84px', ...right, cell: (row) => step(row.first_solved) },
    {
      id: 'flips',
      head: 'Flips',
      track: '56px',
      ...right,
      explain: 'Number of changes between solved and unsolved',
      cell: ({ flips }) => formatCount(flips),
    },
    {
      id: 'regressed',
      head: 'Regressed at',
      track: '92px',
      ...right,
      cell: (row) => (row.regressed_at === null ? UNKNOWN : <span className="text-bad">▼ {formatCount(row.regressed_at)}</span>),
    },
    {
      id: 'env',
      head: 'Environment',
      track: 'minmax(110px,0.8fr)',
      cell: ({ environment }) => <span className="text-ink-2">{environment?.split('/').at(-1) ?? UNKNOWN}</span>,
      title: ({ environment }) => environment ?? undefined,
    },
  ];
}

const readSort = (text: string | undefined): Sort => {
  const id = (text ?? '').replace(/^-/, '');
  return id === 'task' || id in SORTS ? { id, order: text!.startsWith('-') ? 'desc' : 'asc' } : { id: 'task', order: 'asc' };
};

function StepInput({
  label,
  value,
  fallback,
  onChange,
}: {
  label: string;
  value: number | undefined;
  fallback: number;
  onChange: (step: number | undefined) => void;
}) {
  return (
    <label className="flex items-center gap-2 text-ink-2">
      {label}
      <input
        type="number"
        min={0}
        className="input num w-[84px]"
        placeholder={String(fallback)}
        value={value ?? ''}
        onChange={(event) => onChange(event.target.value === '' ? undefined : Number(event.target.value))}
      />
    </label>
  );
}

/** Solve rates by task and step: what the policy gained and lost between steps. */
export function TasksPage() {
  const { org, run, filter } = useRun();
  const search = useSearch({ from: '/$org/runs/$run/tasks' });
  const navigate = useNavigate();
  const router = useRouter();
  const { snapshot, reload } = useReadings(JSON.stringify([run.id, filter.phase]));
  const pages = useInfiniteQuery(tasksQuery(run.id, filter, snapshot));
  const { hasNextPage, isFetching, isError, fetchNextPage } = pages;
  const read = useMemo(() => pages.data?.pages.flatMap((page) => page.tasks) ?? [], [pages.data]);
  const tasks = useMemo(
    () => read.filter(({ environment }) => filter.env === undefined || environment === filter.env).toSorted(byName),
    [read, filter.env],
  );
  useEffect(() => {
    // After an error only the reader tries again.
    if (hasNextPage && !isFetching && !isError && tasks.length < EAGER) void fetchNextPage();
  }, [hasNextPage, isFetching, isError, fetchNextPage, tasks.length]);
  const first = pages.data?.pages[0];
  const whole = first?.next === null;
  const news = useNews(run.version, { rows: read, version: first?.version, whole, key: keyOf }, tasksNowQuery(run.id, filter));
  useFirstRows(first !== undefined && read.length === 0 && news.fresh > 0, reload);
  const range = useMemo<[number, number]>(() => {
    const [low, high] = tasks.reduce(
      ([min, max], { step }) => [Math.min(min, step[0] ?? min), Math.max(max, step.at(-1) ?? max)],
      [Infinity, 0],
    );
    return [Number.isFinite(low) ? low : 0, high];
  }, [tasks]);
  const from = search.from ?? range[0];
  const to = search.to ?? range[1];
  const shown: Shown = search.show !== undefined && search.show in SHOWN ? (search.show as Shown) : 'all';
  const all = useMemo(
    () => tasks.map((strip): Row => ({ ...strip, change: changeBetween(strip, from, to), rate: rateWithin(strip, from, to) })),
    [tasks, from, to],
  );
  const sort = useMemo(() => readSort(search.sort), [search.sort]);
  const rows = useMemo(
    () =>
      sorted(
        all.filter((row) => isShown(shown, row, row.change)),
        sort,
      ),
    [all, shown, sort],
  );
  const selection = useRowSelection(rows, keyOf, JSON.stringify([snapshot, filter]));
  const error = errorInstead(pages);
  if (error) return <ErrorState error={error} retry={() => void pages.refetch()} />;
  if (!pages.data) return <SkeletonRows />;

  const columns = columnsOf(range);
  const set = (part: object) => void navigate({ to: '.', search: (old: object) => ({ ...old, ...part }) as never, replace: true });
  const count = (kind: Shown) => all.filter((row) => isShown(kind, row, row.change)).length;
  const open = ({ task }: TaskStrip, newTab: boolean) => {
    const target = { to: '/$org/runs/$run/tasks/$task', params: { org, run: run.name, task: task.id }, search: { ...filter } } as const;
    if (newTab) window.open(router.buildLocation(target).href, '_blank', 'noopener');
    else void navigate(target);
  };
  return (
    <div className="flex h-full flex-col">
      <div className="flex flex-none flex-wrap items-center gap-x-4 gap-y-2 border-b border-line px-4 py-2">
        <div role="group" aria-label="Tasks to show" className="flex flex-wrap gap-1">
          {(Object.keys(SHOWN) as Shown[]).map((kind) => (
            <button
              key={kind}
              type="button"
              className="button aria-pressed:border-accent aria-pressed:text-ink-1"
              aria-pressed={shown === kind}
              onClick={() => set({ show: kind === 'all' ? undefined : kind })}
            >
              {SHOWN[kind]} <span className="text-ink-3">{formatCount(count(kind))}</span>
            </button>
          ))}
        </div>
        <span className="flex items-center gap-3">
          <StepInput label="Between step" value={search.from} fallback={range[0]} onChange={(step) => set({ from: step })} />
          <StepInput label="and" value={search.to} fallback={range[1]} onChange={(step) => set({ to: step })} />
        </span>
        <span className="ml-auto flex items-center gap-3">
          <NewsPill news={news} noun="tasks" onShow={reload} />
          <span className="label">
            {formatCount(rows.length)} of {plural(tasks.length, 'task')}
            {hasNextPage && ' loaded'}
          </span>
        </span>
      </div>
      <div className="min-h-0 flex-1">
        <DataTable
          label="Tasks of the run"
          columns={columns}
          rows={rows}
          rowKey={keyOf}
          sort={sort}
          onSort={({ id, order }) => set({ sort: `${order === 'desc' ? '-' : ''}${id}` })}
          selection={selection}
          onOpen={open}
          {...nextPageOf(pages)}
          minWidth={1080}
          empty={
            <p className="p-4 text-ink-2">
              {tasks.length === 0
                ? 'No rollout of this run names its task. Send rollout_info.task_index or a task_spec.'
                : 'No task matches this filter.'}
            </p>
          }
        />
      </div>
      <QuerySelection selection={selection} noun="task" q={(chosen) => tasksClause(filterClauses(filter), chosen)} all={rows} />
    </div>
  );
}
