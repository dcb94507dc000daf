import { useInfiniteQuery } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { printText } from '@palestra/query';
import { useEffect, useMemo } from 'react';
import { tasksNowQuery, type TaskStrip, tasksQuery } from '../data/insights.ts';
import { useNews } from '../data/news.ts';
import { useFirstRows, useReadings } from '../table/history-entry.ts';
import { formatCount, formatShare, plural, UNKNOWN } from '../format/number.ts';
import { taskName } from '../format/task.ts';
import { NewsPill } from '../frame/NewsPill.tsx';
import { ErrorState, SkeletonRows } from '../frame/states.tsx';
import { runPath } from '../run/address.ts';
import { useRun } from '../run/context.ts';
import { type Column, DataTable } from '../table/DataTable.tsx';
import { type Change, changeBetween } from './flips.ts';
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

const keyOf = ({ task }: TaskStrip): string => task.id;
const byName = (a: TaskStrip, b: TaskStrip): number =>
  (a.environment ?? '').localeCompare(b.environment ?? '') ||
  (b.task.split ?? '').localeCompare(a.task.split ?? '') ||
  (a.task.index ?? Infinity) - (b.task.index ?? Infinity) ||
  a.task.key.localeCompare(b.task.key);

function isShown(shown: Shown, strip: TaskStrip, change: Change): boolean {
  const rates = strip.solve.filter((rate) => rate !== null);
  if (shown === 'gained' || shown === 'lost') return change === shown;
  if (shown === 'regressed') return strip.regressed_at !== null;
  if (shown === 'never') return rates.length > 0 && rates.every((rate) => rate === 0);
  if (shown === 'mixed') return rates.some((rate) => rate > 0) && rates.some((rate) => rate < 1);
  return true;
}

const changeMark: Record<Change, [mark: string, className: string]> = {
  gained: ['+ gained', 'text-good'],
  lost: ['− lost', 'text-bad'],
  same: ['same', 'text-ink-3'],
  unknown: [UNKNOWN, 'text-ink-3'],
};

function columnsOf(range: [number, number], change: (strip: TaskStrip) => Change): Column<TaskStrip>[] {
  const right = { align: 'right' } as const;
  return [
    {
      id: 'task',
      head: 'Task',
      track: 'minmax(110px,0.7fr)',
      cell: (strip) => <span className="strong">{taskName(strip.task)}</span>,
      title: ({ task }) => task.key,
    },
    {
      id: 'env',
      head: 'Environment',
      track: 'minmax(120px,0.8fr)',
      cell: ({ environment }) => <span className="text-ink-2">{environment ?? UNKNOWN}</span>,
    },
    {
      id: 'strip',
      head: `Solved, step ${range[0]}–${range[1]}`,
      track: 'minmax(200px,2.4fr)',
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
      id: 'first',
      head: 'First solved',
      track: '84px',
      ...right,
      cell: (strip) => (strip.first_solved === null ? UNKNOWN : formatCount(strip.first_solved)),
    },
    {
      id: 'flips',
      head: 'Flips',
      track: '56px',
      ...right,
      explain: 'Number of changes between solved and unsolved',
      cell: (strip) => formatCount(strip.flips),
    },
    {
      id: 'regressed',
      head: 'Regressed at',
      track: '92px',
      ...right,
      cell: (strip) => (strip.regressed_at === null ? UNKNOWN : <span className="text-bad">▼ {formatCount(strip.regressed_at)}</span>),
    },
    {
      id: 'change',
      head: 'Change',
      track: '84px',
      explain: 'Change between the two chosen steps',
      cell: (strip) => {
        const [mark, className] = changeMark[change(strip)];
        return <span className={className}>{mark}</span>;
      },
    },
    {
      id: 'now',
      head: 'Now',
      track: '96px',
      ...right,
      cell: ({ now }) => (now === null ? UNKNOWN : `${now.successes}/${now.scored} · ${formatShare(now.successes, now.scored)}`),
    },
  ];
}

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
  const { snapshot, reload } = useReadings(JSON.stringify([run.id, filter.phase]));
  const pages = useInfiniteQuery(tasksQuery(run.id, filter, snapshot));
  const { hasNextPage, isFetching, fetchNextPage } = pages;
  const read = useMemo(() => pages.data?.pages.flatMap((page) => page.tasks) ?? [], [pages.data]);
  const tasks = useMemo(
    () => read.filter(({ environment }) => filter.env === undefined || environment === filter.env).toSorted(byName),
    [read, filter.env],
  );
  useEffect(() => {
    if (hasNextPage && !isFetching && tasks.length < EAGER) void fetchNextPage();
  }, [hasNextPage, isFetching, fetchNextPage, tasks.length]);
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
  const change = useMemo(() => new Map(tasks.map((strip) => [strip.task.id, changeBetween(strip, from, to)])), [tasks, from, to]);
  const shown: Shown = search.show !== undefined && search.show in SHOWN ? (search.show as Shown) : 'all';
  const rows = useMemo(
    () => tasks.filter((strip) => isShown(shown, strip, change.get(strip.task.id) ?? 'unknown')),
    [tasks, shown, change],
  );
  if (pages.error) return <ErrorState error={pages.error} retry={() => void pages.refetch()} />;
  if (!pages.data) return <SkeletonRows />;

  const set = (part: object) => void navigate({ to: '.', search: (old: object) => ({ ...old, ...part }) as never, replace: true });
  const count = (kind: Shown) => tasks.filter((strip) => isShown(kind, strip, change.get(strip.task.id) ?? 'unknown')).length;
  const open = ({ task }: TaskStrip, newTab: boolean) => {
    const target = { to: '/$org/runs/$run/tasks/$task', params: { org, run: run.name, task: task.id }, search: { ...filter } } as const;
    if (newTab) window.open(`${runPath(org, run.name)}/tasks/${task.id}`, '_blank', 'noopener');
    else void navigate(target);
  };
  const curriculum = rows.length > 0 && rows.length <= 200 && rows.every(({ task }) => task.index !== null);
  return (
    <div className="flex h-full flex-col">
      <div className="flex flex-none flex-wrap items-center gap-x-4 gap-y-2 border-b border-line px-4 py-2">
        <div role="group" aria-label="Tasks to show" className="flex gap-1">
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
          {curriculum && (
            <button
              type="button"
              className="button"
              title="Opens a query for the rollouts of these tasks, to filter or export them"
              onClick={() =>
                void navigate({
                  to: '/$org/runs/$run/rollouts',
                  params: { org, run: run.name },
                  search: { ...filter, q: `task:${rows.map(({ task }) => printText(String(task.index))).join(',')}` },
                })
              }
            >
              Show their rollouts
            </button>
          )}
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
          columns={columnsOf(range, (strip) => change.get(strip.task.id) ?? 'unknown')}
          rows={rows}
          rowKey={keyOf}
          onOpen={open}
          more={hasNextPage && !isFetching ? () => void fetchNextPage() : null}
          minWidth={940}
          empty={
            <p className="p-4 text-ink-2">
              {tasks.length === 0
                ? 'No rollout of this run names its task. Send rollout_info.task_index, or a task_spec.'
                : 'No task matches this filter.'}
            </p>
          }
        />
      </div>
    </div>
  );
}
