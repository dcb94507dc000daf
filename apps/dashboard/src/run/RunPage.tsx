import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { Link, useParams } from '@tanstack/react-router';
import type { RolloutRow, RunView } from '@palestra/protocol';
import { type ReactNode, useEffect, useMemo } from 'react';
import { rolloutsQuery, runQuery } from '../data/queries.ts';
import { formatCount, formatMean, formatReward, formatShare, plural } from '../format/number.ts';
import { Age } from '../frame/Age.tsx';
import { Crumb, Slash, TopBar } from '../frame/page.tsx';
import { ErrorState, SkeletonRows } from '../frame/states.tsx';
import { rewardInterval, successThreshold } from './interval.ts';
import { RewardChart } from './RewardChart.tsx';
import { RolloutTable } from './RolloutTable.tsx';
import { StopBars } from './StopBars.tsx';
import { TaskBoard } from './TaskBoard.tsx';

/** Rows that are loaded without being asked for, so that sorting and the panels see the whole of an ordinary run. */
const eagerRows = 5000;

function Kpi({ label, value, extra, note }: { label: string; value: ReactNode; extra?: ReactNode; note: ReactNode }) {
  return (
    <div className="min-w-0 bg-paper-0 px-4 py-[9px]">
      <div className="label truncate">{label}</div>
      <div className="my-[2px] text-[22px] leading-[26px] tracking-[-0.02em] tabular-nums strong">
        {value} {extra && <small className="text-[13px] leading-none font-[450] tracking-normal text-ink-3">{extra}</small>}
      </div>
      <div className="label truncate">{note}</div>
    </div>
  );
}

function mean(rows: RolloutRow[], read: (row: RolloutRow) => number): number | null {
  return rows.length === 0 ? null : rows.reduce((sum, row) => sum + read(row), 0) / rows.length;
}

function Kpis({ run, rows, complete }: { run: RunView; rows: RolloutRow[]; complete: boolean }) {
  const interval = useMemo(() => (complete ? rewardInterval(rows) : null), [rows, complete]);
  const threshold = useMemo(() => successThreshold(rows), [rows]);
  const scored = rows.filter((row) => row.reward !== null);
  const solved = scored.filter((row) => threshold.solved(row.reward!)).length;
  const loaded = complete ? '' : `newest ${formatCount(rows.length)}, `;
  const unscored = run.num_rollouts - run.num_scored;
  return (
    <section
      aria-label="Figures of the run"
      className="grid flex-none grid-cols-6 gap-px border-b border-line bg-line max-[1000px]:grid-cols-3"
    >
      <Kpi
        label="Mean reward"
        value={formatReward(run.avg_rollout_reward, { digits: 3 })}
        extra={interval !== null && `±${formatReward(interval)}`}
        note={
          <span title="Mean of the rollouts that have a reward; ± is the 95 % interval over task means (Student's t)">
            n {formatCount(run.num_scored)} scored{unscored > 0 ? `, ${formatCount(unscored)} not` : ''}
          </span>
        }
      />
      <Kpi
        label="Solved"
        value={formatShare(solved, scored.length)}
        note={`${loaded}${threshold.text}, ${formatCount(solved)} of ${formatCount(scored.length)}`}
      />
      <Kpi label="Rollouts" value={formatCount(run.num_rollouts)} note={run.environments.join(', ') || 'no environment named'} />
      <Kpi
        label="Finished"
        value={formatShare(run.num_finished, run.num_rollouts)}
        note={`${formatCount(run.num_finished)} of ${formatCount(run.num_rollouts)}`}
      />
      <Kpi label="Turns" value={formatMean(mean(rows, (row) => row.turns))} note={`${loaded}mean of ${formatCount(rows.length)}`} />
      <Kpi
        label="Tool calls"
        value={formatMean(mean(rows, (row) => row.num_tool_calls))}
        note={`${formatMean(run.avg_rollout_length)} messages a rollout`}
      />
    </section>
  );
}

function Status({ run }: { run: RunView }) {
  return (
    <span className="flex items-center gap-[10px] whitespace-nowrap text-ink-3">
      <span className={run.live ? 'live-dot' : 'rest-dot'} />
      <span>
        {run.live ? 'live' : 'quiet'} · last event <Age iso={run.updated_at} />
      </span>
    </span>
  );
}

export function RunPage() {
  const { org, run: name } = useParams({ from: '/$org/runs/$run' });
  const run = useQuery(runQuery(name));
  const pages = useInfiniteQuery({ ...rolloutsQuery(run.data?.id ?? ''), enabled: run.data !== undefined });
  const rows = useMemo(() => pages.data?.pages.flatMap((page) => page.rollouts) ?? [], [pages.data]);
  const { hasNextPage, isFetching, fetchNextPage } = pages;
  useEffect(() => {
    if (hasNextPage && !isFetching && rows.length < eagerRows) void fetchNextPage();
  }, [hasNextPage, isFetching, fetchNextPage, rows.length]);

  const bar = (
    <TopBar
      title={name}
      crumbs={
        <>
          <span>{org}</span>
          <Slash />
          <Link to="/$org/runs" params={{ org }} search={{}} className="hover:text-ink-1">
            Runs
          </Link>
          <Slash />
          <Crumb>{run.data?.name ?? name}</Crumb>
        </>
      }
    >
      {run.data && <Status run={run.data} />}
    </TopBar>
  );
  const error = run.error ?? pages.error;
  if (error || !run.data || !pages.data) {
    const retry = () => void Promise.all([run.refetch(), pages.refetch()]);
    return (
      <>
        {bar}
        {error ? <ErrorState error={error} retry={retry} /> : <SkeletonRows />}
      </>
    );
  }
  return (
    <>
      {bar}
      <div className="flex h-full flex-col max-[760px]:h-auto">
        <Kpis run={run.data} rows={rows} complete={!hasNextPage} />
        {rows.length === 0 ? (
          <p className="p-4 text-ink-2">This run has no rollout any more.</p>
        ) : (
          <>
            <div className="grid flex-none grid-cols-[minmax(0,1.1fr)_minmax(0,1fr)_minmax(0,0.8fr)] gap-px border-b border-line bg-line max-[1000px]:grid-cols-1">
              <RewardChart rows={rows} />
              <TaskBoard rows={rows} />
              <StopBars rows={rows} />
            </div>
            <RolloutTable
              rows={rows}
              total={pages.data.pages[0]?.total ?? rows.length}
              more={hasNextPage && !isFetching ? fetchNextPage : null}
            />
          </>
        )}
        <p className="sr-only" aria-live="polite">
          {plural(run.data.num_rollouts, 'rollout')}
        </p>
      </div>
    </>
  );
}
