import { useQuery } from '@tanstack/react-query';
import { Link, Outlet, useNavigate, useParams, useSearch } from '@tanstack/react-router';
import { lazy, Suspense, useCallback, useMemo } from 'react';
import { errorInstead, isGone } from '../data/http.ts';
import { useFocus } from '../data/live/useFeed.ts';
import { runQuery } from '../data/queries.ts';
import type { RunFilter } from '../data/run-queries.ts';
import { useSharedLink } from '../frame/guest.ts';
import { Crumb, Slash, TabBar, tabStyle, TopBar } from '../frame/page.tsx';
import { Deleted, ErrorState, SkeletonRows } from '../frame/states.tsx';
import { RunProvider } from './context.ts';
import { LensMenu } from './LensMenu.tsx';
import { LiveStatus } from './LiveStatus.tsx';
import { readFilter } from './filter.ts';
import { RunName } from './RunName.tsx';

const ShareRun = lazy(async () => ({ default: (await import('./ShareRun.tsx')).ShareRun }));

const tabs = [
  ['/$org/runs/$run', 'Overview'],
  ['/$org/runs/$run/rollouts', 'Rollouts'],
  ['/$org/runs/$run/groups', 'Groups'],
  ['/$org/runs/$run/tasks', 'Tasks'],
  ['/$org/runs/$run/tools', 'Tools'],
  ['/$org/runs/$run/failures', 'Failures'],
  ['/$org/runs/$run/config', 'Config'],
] as const;

function Tabs({ org, run, filter }: { org: string; run: string; filter: RunFilter }) {
  return (
    <TabBar label="Pages of the run">
      {tabs.map(([to, name]) => (
        <Link
          key={to}
          to={to}
          params={{ org, run }}
          search={{ ...filter }}
          className={tabStyle}
          activeOptions={{ exact: to === '/$org/runs/$run', includeSearch: false }}
          activeProps={{ 'aria-current': 'page' }}
        >
          {name}
        </Link>
      ))}
    </TabBar>
  );
}

/** The frame of every page of a run: name, live state, lens and tabs. */
export function RunLayout() {
  // A link to a list does not show the run.
  return useSharedLink()?.kind === 'query' ? <Outlet /> : <Layout />;
}

function Layout() {
  const share = useSharedLink();
  const { org, run: name } = useParams({ from: '/$org/runs/$run' });
  const search = useSearch({ from: '/$org/runs/$run' });
  const navigate = useNavigate();
  const run = useQuery(runQuery(name));
  const error = errorInstead(run);
  const deleted = run.data !== undefined && isGone(run.error);
  useFocus({ ...(run.data && { run: run.data.id }) });
  const { steps, env, phase, lens, den } = readFilter(search);
  const filter = useMemo<RunFilter>(() => ({ steps, env, phase, lens, den }), [steps, env, phase, lens, den]);
  const setFilter = useCallback(
    (change: Partial<RunFilter>) => void navigate({ to: '.', search: (old: object) => ({ ...old, ...change }) as never, replace: true }),
    [navigate],
  );
  const context = useMemo(() => run.data && { org, run: run.data, filter, setFilter }, [org, run.data, filter, setFilter]);
  return (
    <>
      <TopBar
        title={run.data?.name ?? name}
        crumbs={
          <>
            <Link to="/$org/runs" params={{ org }} search={{}} className="hover:text-ink-1">
              {org}
            </Link>
            <Slash />
            <Crumb label={run.data?.name ?? name}>
              <RunName name={run.data?.name ?? name} />
            </Crumb>
          </>
        }
      >
        {context && !deleted && (
          <RunProvider value={context}>
            <LiveStatus run={context.run} />
            <LensMenu />
            <Suspense fallback={null}>
              <ShareRun run={context.run.id} />
            </Suspense>
          </RunProvider>
        )}
      </TopBar>
      <div className="flex h-full flex-col">
        {share === null && <Tabs org={org} run={name} filter={filter} />}
        <div className="min-h-0 flex-1 overflow-auto">
          {deleted ? (
            <Deleted what="run" />
          ) : error ? (
            <ErrorState error={error} retry={() => void run.refetch()} />
          ) : context ? (
            <RunProvider value={context}>
              <Outlet />
            </RunProvider>
          ) : (
            <SkeletonRows />
          )}
        </div>
      </div>
    </>
  );
}
