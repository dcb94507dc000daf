import type { ComparedRuns, RunConfig, RunSeries, RunSummary, RunView } from '@palestra/protocol';
import { useQueries, useQuery, type UseQueryResult, useQueryClient } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { useMemo } from 'react';
import { comparedRunsQuery } from '../data/compare.ts';
import { configQuery } from '../data/insights.ts';
import { runQuery } from '../data/queries.ts';
import { type ChartX, type RunFilter, seriesQuery, summaryQuery } from '../data/run-queries.ts';
import { Crumb, Slash, TopBar } from '../frame/page.tsx';
import { useGuest } from '../frame/guest.ts';
import { MemberLink } from '../frame/MemberLink.tsx';
import { Popover } from '../frame/Popover.tsx';
import { ShareButton } from '../frame/ShareButton.tsx';
import { ErrorState, SkeletonRows } from '../frame/states.tsx';
import { RunName } from '../run/RunName.tsx';
import { CompareMenu } from './CompareMenu.tsx';
import { Differences } from './Differences.tsx';
import { shortNames, useRunHues } from './hues.ts';
import { COMPARED_METRICS, RunCurves } from './RunCurves.tsx';
import { RunChooser } from './RunChooser.tsx';
import { comparisonWarnings, type ComparedRun, settingsOf } from './runs.ts';
import { StepsChoice } from './StepsChoice.tsx';
import { ConfigDiff, KpiTable, RunMark } from './Tables.tsx';
import { TaskTable } from './TaskTable.tsx';

const MOST = 4;
const axes: readonly (readonly [ChartX, string])[] = [
  ['step', 'Step'],
  ['time', 'Time'],
  ['count', 'Rollouts'],
];

/** All answers once all have arrived, and the first error of a query without data. */
const collect = <T,>(results: readonly UseQueryResult<T>[]) => ({
  data: results.every(({ data }) => data !== undefined) ? results.map(({ data }) => data as T) : undefined,
  error: results.find(({ error, data }) => error !== null && data === undefined)?.error ?? null,
});
const NONE: never[] = [];

/** The range of the compared steps for queries of one run; undefined: all steps. */
const rangeOf = ({ from, to }: ComparedRuns['steps']): string | undefined => (from === null || to === null ? undefined : `${from}..${to}`);

/** The data of these runs; `runs` is undefined until all of it has arrived. */
function useComparedRuns(names: readonly string[], filter: RunFilter, x: ChartX) {
  const client = useQueryClient();
  // A link to a comparison does not show settings.
  const guest = useGuest();
  const views = useQueries({ queries: names.map((name) => runQuery(name)), combine: collect<RunView> });
  const ids = useMemo(() => views.data?.map(({ id }) => id) ?? NONE, [views.data]);
  const hues = useRunHues(ids);
  const comparison = useQuery(comparedRunsQuery(ids, filter));
  const compared = comparison.data;
  const aligned = compared ? { ...filter, steps: rangeOf(compared.steps) } : null;
  const summaries = useQueries({ queries: aligned ? ids.map((id) => summaryQuery(id, aligned)) : [], combine: collect<RunSummary> });
  // Points of a run without steps are arrival windows, which only a time axis can show.
  const stepless = summaries.data?.some(({ windows }) => windows !== null) ?? false;
  const axis: ChartX = stepless && x === 'step' ? 'time' : x;
  const request = { ...filter, steps: filter.steps === 'all' ? undefined : filter.steps, lens: undefined, m: COMPARED_METRICS, x: axis };
  const series = useQueries({ queries: ids.map((id) => seriesQuery(id, request)), combine: collect<RunSeries> });
  const configs = useQueries({ queries: guest ? [] : ids.map((id) => configQuery(id)), combine: collect<RunConfig> });
  const runs = useMemo(() => {
    if (!views.data || !series.data || !configs.data || summaries.data?.length !== views.data.length) return undefined;
    const short = shortNames(views.data.map(({ name }) => name));
    return views.data.map((run, i): ComparedRun => ({
      run,
      letter: 'ABCD'[i]!,
      hue: hues[i]!,
      short: short[i]!,
      summary: summaries.data![i]!,
      series: series.data![i]!,
      config: configs.data![i] ?? null,
    }));
  }, [views.data, summaries.data, series.data, configs.data, hues]);
  const error = views.error ?? (compared ? null : comparison.error) ?? summaries.error ?? series.error ?? configs.error;
  return { runs, compared, axis, stepless, error, retry: () => void client.refetchQueries({ type: 'active' }) };
}

function Legend({ runs, names }: { runs: readonly ComparedRun[]; names: readonly string[] }) {
  const guest = useGuest();
  const navigate = useNavigate({ from: '/compare' });
  const setRuns = (list: readonly string[]) => void navigate({ search: (old) => ({ ...old, runs: list.join(','), sort: undefined }) });
  const reference = (at: number) => [names[at]!, ...names.filter((_, i) => i !== at)];
  return (
    <ul aria-label="Compared runs" className="flex min-w-0 flex-wrap items-center gap-x-5 gap-y-1">
      {runs.map((run, i) => (
        <li key={run.run.id} className="flex min-w-0 max-w-full items-center gap-2">
          <RunMark run={run} />
          <MemberLink
            to="/$org/runs/$run"
            params={{ org: run.run.org, run: run.run.name }}
            search={{}}
            className="min-w-0 truncate hover:text-accent hover:underline"
            aria-label={run.run.name}
          >
            <RunName name={run.run.name} />
          </MemberLink>
          {i > 0 && guest ? null : i === 0 ? (
            <span className="label flex-none">Reference</span>
          ) : (
            <button type="button" className="label link flex-none" onClick={() => setRuns(reference(i))}>
              Use as reference<span className="sr-only">: {run.run.name}</span>
            </button>
          )}
          {runs.length > 2 && !guest && (
            <button
              type="button"
              className="label link"
              aria-label={`Remove ${run.run.name}`}
              onClick={() => setRuns(names.filter((_, at) => at !== i))}
            >
              ×
            </button>
          )}
        </li>
      ))}
      {runs.length < MOST && !guest && (
        <li>
          <Popover label="Add a run" button="Add a run" className="label link">
            <RunChooser chosen={names} />
          </Popover>
        </li>
      )}
    </ul>
  );
}

/** Compares two to four runs: curves, figures, settings, and shared tasks. */
export function RunsComparison({ names }: { names: readonly string[] }) {
  const search = useSearch({ from: '/compare' });
  const navigate = useNavigate({ from: '/compare' });
  const { steps, env, phase, lens, den } = search;
  const filter = useMemo<RunFilter>(() => ({ steps, env, phase, lens, den }), [steps, env, phase, lens, den]);
  const x: ChartX = search.x ?? 'step';
  const { runs, compared, axis, stepless, error, retry } = useComparedRuns(names, filter, x);
  const setFilter = (change: Partial<RunFilter>) => void navigate({ search: (old) => ({ ...old, ...change }), replace: true });
  const settings = useMemo(() => (runs ? settingsOf(runs) : []), [runs]);
  const warnings = useMemo(() => (runs ? comparisonWarnings(runs, settings) : []), [runs, settings]);
  return (
    <>
      <TopBar
        title={`Compare ${(runs?.map(({ run }) => run.name) ?? names).join(', ')}`}
        crumbs={
          <>
            <span>Compare</span>
            <Slash />
            <Crumb>{`${names.length} runs`}</Crumb>
          </>
        }
      >
        <CompareMenu filter={filter} setFilter={setFilter} />
        {runs && <ShareButton target={{ kind: 'runs', runs: runs.map(({ run }) => run.id) }} />}
      </TopBar>
      {error ? (
        <ErrorState error={error} retry={retry} />
      ) : !runs || !compared ? (
        <SkeletonRows />
      ) : (
        <div className="h-full overflow-auto">
          <div className="flex flex-wrap items-center gap-x-6 gap-y-2 border-b border-line px-4 py-2">
            <Legend runs={runs} names={names} />
            <span className="ml-auto flex flex-wrap items-center gap-x-3 gap-y-1 max-[760px]:ml-0">
              <StepsChoice steps={steps} setFilter={setFilter} />
              <span role="group" aria-label="Axis of the charts" className="flex gap-1">
                {axes.map(([value, label]) => (
                  <button
                    key={value}
                    type="button"
                    className="button aria-pressed:border-accent aria-pressed:text-ink-1"
                    aria-pressed={axis === value}
                    disabled={stepless && value === 'step'}
                    title={stepless && value === 'step' ? 'The steps of a run are unknown. Choose time or rollouts.' : undefined}
                    onClick={() => void navigate({ search: (old) => ({ ...old, x: value === 'step' ? undefined : value }), replace: true })}
                  >
                    {label}
                  </button>
                ))}
              </span>
            </span>
          </div>
          {warnings.length > 0 && (
            <ul aria-label="Differences that affect the comparison" className="border-b border-line bg-paper-1 px-4 py-2 text-ink-2">
              {warnings.map((one) => (
                <li key={one}>
                  <span className="text-policy" aria-hidden="true">
                    ▲{' '}
                  </span>
                  {one}
                </li>
              ))}
            </ul>
          )}
          <Differences compared={compared} runs={runs} />
          <RunCurves key={axis} runs={runs} x={axis} />
          <div
            className={
              runs.length === 2
                ? 'grid grid-cols-[minmax(0,3fr)_minmax(0,2fr)] divide-x divide-line max-[1500px]:grid-cols-1 max-[1500px]:divide-x-0'
                : ''
            }
          >
            <KpiTable runs={runs} />
            {settings.length > 0 && <ConfigDiff runs={runs} settings={settings} />}
          </div>
          <TaskTable runs={runs} filter={filter} />
        </div>
      )}
    </>
  );
}
