import { useQuery } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { lazy, type ReactNode, Suspense, useCallback, useMemo } from 'react';
import { type ChartContext, ChartContextProvider } from '../charts/context.ts';
import { errorInstead } from '../data/http.ts';
import { seriesQuery, stepCountsQuery, summaryQuery } from '../data/run-queries.ts';
import { useGuest } from '../frame/guest.ts';
import { ErrorState } from '../frame/states.tsx';
import { useRun } from '../run/context.ts';
import { Advisories } from './Advisories.tsx';
import { chartAxis, pointName } from './axis.ts';
import { curvesOf } from './curves.ts';
import { FiringAlerts } from './FiringAlerts.tsx';
import { EnvironmentPanels } from './EnvironmentPanels.tsx';
import { Kpis } from './Kpis.tsx';
import { LatestGroups } from './LatestGroups.tsx';
import { LensPanels } from './LensPanels.tsx';
import { explorerSearch, ownClauses, stepClause } from './links.ts';
import { OverviewProvider, type OverviewContext } from './context.ts';
import { useWhy } from './moves/useMoves.ts';
import { CANONICAL, CanonicalPanels } from './Panels.tsx';
import { StopBars } from './StopBars.tsx';
import { Toolbar } from './Toolbar.tsx';

const MovePanel = lazy(async () => ({ default: (await import('./moves/MovePanel.tsx')).MovePanel }));

/** The figures and curves of a run, or of the part of it that the filter selects. */
export function OverviewPage() {
  const run = useRun();
  const guest = useGuest();
  const { run: view, filter, setFilter } = run;
  const { x = 'step' } = useSearch({ from: '/$org/runs/$run/' });
  const summary = useQuery(summaryQuery(view.id, filter));
  const series = useQuery(seriesQuery(view.id, { ...filter, lens: undefined, m: CANONICAL, x }));
  const counts = useQuery(stepCountsQuery(view.id, filter));
  const phase = filter.phase ?? summary.data?.phase ?? null;
  const main = useMemo(() => curvesOf(series.data, phase), [series.data, phase]);
  const inferred = (summary.data?.provenance['step']?.['inferred'] ?? 0) > 0;
  // The answer's axis is `step` as soon as one phase has steps; this phase may have arrival windows.
  const points = series.data?.series.find((one) => phase === null || one.phase === phase) ?? series.data;
  const axis = useMemo(() => chartAxis(points, main, inferred), [points, main, inferred]);
  const isWindow = points?.axis === 'window' || points?.window_ms != null;
  const open = useOpen();
  const { why, explain } = useWhy();
  const chartContext = useMemo<ChartContext>(
    () => ({
      axis,
      sync: `run-${view.id}`,
      ranged: filter.steps !== undefined,
      onBrush: (from, to) => !isWindow && setFilter({ steps: from === to ? String(from) : `${from}..${to}` }),
      onClear: () => setFilter({ steps: undefined }),
    }),
    [axis, view.id, filter.steps, isWindow, setFilter],
  );
  const overview = useMemo<OverviewContext>(
    () => ({
      phase,
      isWindow,
      nameOf: pointName(axis, isWindow),
      main,
      groupSize: summary.data?.group_size ?? null,
      // A guest sees no rollouts.
      open:
        isWindow || guest ? undefined : (from, to, clauses = []) => open([stepClause(from, to), ...clauses, ...ownClauses(run, { phase })]),
    }),
    [phase, axis, isWindow, main, summary.data?.group_size, open, run, guest],
  );
  const error = errorInstead(summary) ?? errorInstead(series) ?? errorInstead(counts);
  if (error) return <ErrorState error={error} retry={() => void Promise.all([summary.refetch(), series.refetch(), counts.refetch()])} />;
  return (
    <ChartContextProvider value={chartContext}>
      <OverviewProvider value={overview}>
        <Toolbar x={x} axisName={axis.name} summary={summary.data} />
        {summary.data ? (
          <>
            <FiringAlerts />
            <Advisories advisories={summary.data.advisories} />
            <Kpis summary={summary.data} />
          </>
        ) : (
          <Skeleton className="h-[150px]" />
        )}
        {why !== undefined && (
          <Suspense fallback={<Skeleton className="h-[120px]" />}>
            <MovePanel step={why} close={() => explain(undefined)} />
          </Suspense>
        )}
        {series.data && summary.data ? (
          <>
            <Grid>
              {summary.data.lens !== 'canonical' && <LensPanels lens={summary.data.lens} kpis={summary.data.kpis} x={x} />}
              <CanonicalPanels answer={series.data} counts={counts.data} />
            </Grid>
            {view.environments.length > 1 && filter.env === undefined && <EnvironmentPanels x={x} />}
          </>
        ) : (
          <Skeleton className="h-[400px]" />
        )}
        <div className="grid grid-cols-[minmax(0,3fr)_minmax(0,2fr)] border-t border-line max-[1000px]:grid-cols-1">
          {!guest && <LatestGroups />}
          {summary.data && <StopBars summary={summary.data} />}
        </div>
      </OverviewProvider>
    </ChartContextProvider>
  );
}

/** A wider screen shows more charts per row, not wider charts. */
function Grid({ children }: { children: ReactNode }) {
  return <div className="chart-grid border-b border-line">{children}</div>;
}

const Skeleton = ({ className }: { className: string }) => (
  <div role="status" aria-busy="true" aria-label="Loading" className={`border-b border-line p-3 ${className}`}>
    <div className="skeleton h-full" />
  </div>
);

/** Returns a function that opens the Explorer with these clauses and the filter of the page. */
function useOpen(): (clauses: readonly string[]) => void {
  const run = useRun();
  const navigate = useNavigate();
  return useCallback(
    (clauses) =>
      void navigate({ to: '/$org/runs/$run/rollouts', params: { org: run.org, run: run.run.name }, search: explorerSearch(run, clauses) }),
    [navigate, run],
  );
}
