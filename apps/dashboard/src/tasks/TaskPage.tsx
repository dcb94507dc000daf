import type { RunTask } from '@palestra/protocol';
import { useQuery } from '@tanstack/react-query';
import { useNavigate, useParams, useSearch } from '@tanstack/react-router';
import { lazy, type ReactNode, Suspense, useCallback } from 'react';
import { type TaskGroup, taskNowQuery, taskQuery } from '../data/insights.ts';
import { readOrder } from '../data/list-order.ts';
import { useNews } from '../data/news.ts';
import { useRolloutPages } from '../explorer/rollout-pages.ts';
import { formatCount, formatReward, plural, UNKNOWN } from '../format/number.ts';
import { taskName } from '../format/task.ts';
import { NewsPill } from '../frame/NewsPill.tsx';
import { ErrorState, SkeletonRows } from '../frame/states.tsx';
import { useRun } from '../run/context.ts';
import { filterClauses } from '../run/filter.ts';
import { tasksClause } from '../selection/selection.ts';
import { useHistoryEntry } from '../table/history-entry.ts';
import { difficultyOf } from './flips.ts';
import { SideBySide } from './SideBySide.tsx';
import { TaskRollouts } from './TaskRollouts.tsx';

// Charts and Markdown are heavy; the head and the rollouts do not wait for them.
const TaskCurves = lazy(async () => ({ default: (await import('./TaskCurves.tsx')).TaskCurves }));
const TaskPrompt = lazy(async () => ({ default: (await import('./TaskPrompt.tsx')).TaskPrompt }));

const keyOf = ({ key, step, phase }: TaskGroup): string => `${key}:${step}:${phase}`;
const route = '/$org/runs/$run/tasks/$task';

function Figure({ label, title, children }: { label: string; title?: string; children: ReactNode }) {
  return (
    <span className="flex items-baseline gap-2 whitespace-nowrap" title={title}>
      <span className="label">{label}</span>
      <span className="strong tabular-nums">{children}</span>
    </span>
  );
}

/** The name of the task and its figures over all of its visits. */
function Head({ task, pill }: { task: RunTask; pill: ReactNode }) {
  const { solve_rate: solve } = task;
  // By group, because rollouts without a known step have none in the strip.
  const received = task.groups.reduce((sum, group) => sum + group.received, 0);
  const scored = task.groups.reduce((sum, group) => sum + group.scored, 0);
  const mean = scored === 0 ? null : task.groups.reduce((sum, group) => sum + (group.mean ?? 0) * group.scored, 0) / scored;
  return (
    <div className="flex flex-none flex-wrap items-baseline gap-x-5 gap-y-1 border-b border-line px-4 py-2" data-figures>
      <h1 className="flex items-baseline gap-2">
        <span className="text-[15px] leading-[20px] strong">{taskName(task.task, 24)}</span>
        <span className="text-ink-2">{task.environment ?? UNKNOWN}</span>
      </h1>
      <Figure label="Solve rate" title="Successes per scored rollout, with a 95 % Wilson interval clustered by visit">
        {formatReward(solve?.rate ?? null)}
        {solve && (
          <span className="label">
            {' '}
            {formatReward(solve.low)}–{formatReward(solve.high)}
          </span>
        )}
      </Figure>
      {solve && <span className="chip">{difficultyOf(solve)}</span>}
      <Figure label="Mean reward">{formatReward(mean)}</Figure>
      <Figure label="n" title="Scored rollouts of all received rollouts">
        {formatCount(scored)} <span className="label">of {plural(received, 'rollout')}</span>
      </Figure>
      {received > scored && (
        <span className="chip text-infrastructure" title="Figures leave out interrupted rollouts and rollouts without a reward.">
          ✕ {formatCount(received - scored)} left out
        </span>
      )}
      <Figure label="First solved">{task.first_solved === null ? UNKNOWN : `Step ${formatCount(task.first_solved)}`}</Figure>
      <Figure label="Flips" title="Changes between solved (at least half of the rollouts) and unsolved">
        {formatCount(task.flips)}
      </Figure>
      {task.regressed_at !== null && <span className="text-bad">▼ Regressed at step {formatCount(task.regressed_at)}</span>}
      <span className="flex-1" />
      {pill}
    </div>
  );
}

function Body({ task, pill }: { task: RunTask; pill: ReactNode }) {
  const { run, filter } = useRun();
  const search = useSearch({ from: route });
  const navigate = useNavigate({ from: route });
  const change = useCallback(
    (to: Partial<typeof search>) => void navigate({ search: (old) => ({ ...old, ...to }), replace: true }),
    [navigate],
  );
  const order = readOrder(search.list);
  const clauses = [filterClauses({ phase: filter.phase }), search.step !== undefined && `step:${search.step}`].filter(Boolean).join(' ');
  const q = tasksClause(clauses, [task]) ?? '';
  const entry = useHistoryEntry(JSON.stringify([run.id, q, order]));
  const pages = useRolloutPages(run.id, q, order, entry.snapshot, true);
  const isWhole = pages.complete && search.step === undefined;
  const onStep = useCallback((step: number | undefined) => change({ step }), [change]);
  const steps = search.view === 'steps';
  const newest = task.groups[0] && pages.rows.toSorted((a, b) => b.created_at.localeCompare(a.created_at))[0]?.id;
  const tab = 'button aria-pressed:border-accent aria-pressed:bg-accent-wash aria-pressed:text-ink-1';
  return (
    <div className="flex h-full min-h-0 flex-col max-[1099px]:h-auto">
      <Head task={task} pill={pill} />
      <div className="grid flex-none grid-cols-3 max-[1099px]:grid-cols-1">
        {/* As high as the charts; a longer prompt scrolls. */}
        <div className="relative min-h-[200px] max-[1099px]:order-3">
          <div className="absolute inset-0 flex flex-col">
            <Suspense>
              <TaskPrompt rollout={newest} />
            </Suspense>
          </div>
        </div>
        <Suspense fallback={<ChartsPlace />}>
          <TaskCurves task={task} rollouts={isWhole ? pages.rows : null} onStep={onStep} />
        </Suspense>
      </div>
      <div className="flex min-h-[38px] flex-none flex-wrap items-center gap-2 border-b border-line px-4 py-1">
        <span role="group" aria-label="Rollouts of the task" className="flex gap-1">
          <button type="button" className={tab} aria-pressed={!steps} onClick={() => change({ view: undefined })}>
            Rollouts
          </button>
          <button type="button" className={tab} aria-pressed={steps} onClick={() => change({ view: 'steps' })}>
            Steps side by side
          </button>
        </span>
        {!steps && search.step !== undefined && (
          <span className="chip mono">
            step:{search.step}
            <button type="button" aria-label={`Remove step:${search.step}`} className="hover:text-bad" onClick={() => onStep(undefined)}>
              ✕
            </button>
          </span>
        )}
        {!steps && pages.total && (
          <span className="label">
            {formatCount(pages.total.count)}
            {pages.total.atLeast ? '+' : ''} {pages.total.count === 1 ? 'rollout' : 'rollouts'}
          </span>
        )}
      </div>
      <div className="flex min-h-[320px] flex-1 flex-col max-[1099px]:h-[70vh] max-[1099px]:flex-none">
        {steps ? (
          <SideBySide task={task} />
        ) : (
          <TaskRollouts key={entry.snapshot} {...{ q, pages, order, entry }} onOrder={(list) => change({ list })} />
        )}
      </div>
    </div>
  );
}

/** The height of both charts while their code loads. */
const ChartsPlace = () => (
  <>
    <div className="h-[200px]" />
    <div className="h-[200px]" />
  </>
);

/** One task: what it asks, how its reward and solve rate change, and its rollouts. */
export function TaskPage() {
  const { task: id } = useParams({ from: route });
  const { run, filter } = useRun();
  const task = useQuery(taskQuery(run.id, id, filter));
  const shown = { rows: task.data?.groups ?? [], version: task.data?.version, whole: true, key: keyOf };
  const news = useNews(run.version, shown, taskNowQuery(run.id, id, filter));
  if (task.error) return <ErrorState error={task.error} retry={() => void task.refetch()} />;
  return task.data ? (
    <Body task={task.data} pill={<NewsPill news={news} noun="groups" onShow={() => void task.refetch()} />} />
  ) : (
    <SkeletonRows />
  );
}
