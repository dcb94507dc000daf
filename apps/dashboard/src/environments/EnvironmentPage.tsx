import { useQuery, useQueryClient } from '@tanstack/react-query';
import { Link, useNavigate, useParams, useSearch } from '@tanstack/react-router';
import type { EnvironmentDetails } from '@palestra/protocol';
import { lazy, Suspense, useEffect, useRef } from 'react';
import { errorInstead } from '../data/http.ts';
import { environmentRunsQuery, versionsQuery } from '../data/environments.ts';
import { discoveryQuery, environmentQuery } from '../data/queries.ts';
import { useKeys } from '../frame/keyboard.ts';
import { Crumb, SearchTabs, Slash, TopBar } from '../frame/page.tsx';
import { ErrorState, SkeletonRows } from '../frame/states.tsx';
import { CardTab } from './CardTab.tsx';
import { EnvironmentStatus } from './EnvironmentStatus.tsx';
import { variantOf } from './split.ts';
import { ReportTab } from './ReportTab.tsx';
import { RunsTab } from './RunsTab.tsx';
import { SessionsTab } from './SessionsTab.tsx';
import { TasksTab } from './TasksTab.tsx';
import { ToolsTab } from './ToolsTab.tsx';

const hosted = {
  versions: lazy(async () => ({ default: (await import('../hosting/VersionsTab.tsx')).VersionsTab })),
  deploys: lazy(async () => ({ default: (await import('../hosting/DeploysTab.tsx')).DeploysTab })),
  instances: lazy(async () => ({ default: (await import('../hosting/InstancesTab.tsx')).InstancesTab })),
  logs: lazy(async () => ({ default: (await import('../hosting/LogsTab.tsx')).LogsTab })),
  settings: lazy(async () => ({ default: (await import('../hosting/HostingSettingsTab.tsx')).HostingSettingsTab })),
};

const from = '/environments/$owner/$name' as const;
const allTabs = ['card', 'tasks', 'tools', 'report', 'runs', 'sessions', 'versions', 'deploys', 'instances', 'logs', 'settings'] as const;
type Tab = (typeof allTabs)[number];
const isHosted = (tab: Tab): tab is keyof typeof hosted => tab in hosted;

/** Members of the organisation also see how it is deployed; where it never was, only deploys, which have the button for the first one. */
function tabsOf(environment: EnvironmentDetails | undefined): readonly Tab[] {
  const { can_manage: canManage = false, deployed = false, source } = environment ?? {};
  return allTabs.filter((tab) => {
    if (tab === 'deploys') return canManage && source?.kind !== 'bundled';
    if (tab === 'instances' || tab === 'logs' || tab === 'settings') return canManage && (deployed || source?.kind === 'none');
    return true;
  });
}
const titles: Record<Tab, string> = {
  card: 'Card',
  tasks: 'Tasks',
  tools: 'Tools',
  report: 'Report',
  runs: 'Runs',
  sessions: 'Sessions and slots',
  versions: 'Versions',
  deploys: 'Deploys',
  instances: 'Instances',
  logs: 'Logs',
  settings: 'Settings',
};

function Tabs({ environment, tab }: { environment: EnvironmentDetails; tab: Tab }) {
  const { owner, name } = environment;
  const discovery = useQuery({ ...discoveryQuery(owner, name), enabled: environment.source.kind !== 'none' });
  const runs = useQuery(environmentRunsQuery(owner, name));
  const versions = useQuery(versionsQuery(owner, name));
  const search = useSearch({ from });
  const tools = discovery.data && variantOf(discovery.data, search.variant)?.tools.tools.length;
  const counts: Partial<Record<Tab, number | null | undefined>> = {
    tasks: environment.total_task_count,
    tools,
    runs: runs.data?.runs.length,
    versions: versions.data?.versions.length,
  };
  return (
    <SearchTabs
      label="Pages of the environment"
      tabs={tabsOf(environment).map((name) => ({ name, label: titles[name], count: counts[name] }))}
      current={tab}
      keep={({ variant, split }) => ({ variant, split })}
    />
  );
}

function Content({ environment, tab }: { environment: EnvironmentDetails; tab: Tab }) {
  const { owner, name } = environment;
  const discovery = useQuery({ ...discoveryQuery(owner, name), enabled: environment.source.kind !== 'none' });
  if (tab === 'runs') return <RunsTab owner={owner} name={name} />;
  if (tab === 'sessions') return <SessionsTab environment={`${owner}/${name}`} />;
  if (tab === 'report') return <ReportTab environment={environment} />;
  if (isHosted(tab)) {
    const Page = hosted[tab];
    return (
      <Suspense fallback={<SkeletonRows />}>
        <Page environment={environment} />
      </Suspense>
    );
  }
  if (tab === 'card') return <CardTab environment={environment} discovery={discovery.data} problem={discovery.error} />;
  if (environment.source.kind === 'none')
    return <p className="p-4 text-ink-3">This environment has no version yet. Deploy it, or add its server.</p>;
  const error = errorInstead(discovery);
  if (error) return <ErrorState error={error} retry={() => void discovery.refetch()} />;
  if (!discovery.data) return <SkeletonRows />;
  return tab === 'tools' ? <ToolsTab discovery={discovery.data} /> : <TasksTab owner={owner} name={name} discovery={discovery.data} />;
}

/** Refetches splits, tasks and tools when the status or version of the environment changes while its page is open. */
function useDiscoveryRefresh(environment: EnvironmentDetails | undefined): void {
  const client = useQueryClient();
  const seen = useRef<string | null>(null);
  const { owner, name, status, version } = environment ?? {};
  useEffect(() => {
    if (owner === undefined || name === undefined) return;
    const now = `${owner}/${name}@${version} ${status}`;
    const before = seen.current;
    seen.current = now;
    if (before === null || before === now || !before.startsWith(`${owner}/${name}@`)) return;
    void client.invalidateQueries({ queryKey: ['environment', owner, name], predicate: ({ queryKey }) => queryKey.length > 3 });
  }, [client, owner, name, status, version]);
}

/** An environment: card, tasks with difficulty, tools, report, runs, sessions and slots, versions, and how it is deployed. */
export function EnvironmentPage() {
  const { owner, name } = useParams({ from });
  const search = useSearch({ from });
  const navigate = useNavigate({ from });
  const environment = useQuery(environmentQuery(owner, name));
  useDiscoveryRefresh(environment.data);
  const tabs = tabsOf(environment.data);
  const tab = tabs.find((one) => one === search.tab) ?? 'card';
  const isPlayable = environment.data !== undefined && environment.data.source.kind !== 'none';
  const step = (by: number) => {
    const next = tabs[(tabs.indexOf(tab) + by + tabs.length) % tabs.length]!;
    void navigate({ search: (before) => ({ variant: before.variant, split: before.split, tab: next === 'card' ? undefined : next }) });
  };
  useKeys({
    '[': () => step(-1),
    ']': () => step(1),
    p: () => {
      if (isPlayable) void navigate({ to: '/environments/$owner/$name/play', search: { variant: search.variant, split: search.split } });
    },
  });
  const bar = (
    <TopBar
      title={`${owner}/${name}`}
      crumbs={
        <>
          <Link to="/environments" search={{}} className="hover:text-ink-1">
            Environments
          </Link>
          <Slash />
          <span>{owner}</span>
          <Slash />
          <Crumb>{name}</Crumb>
        </>
      }
    >
      {environment.data && (
        <>
          <EnvironmentStatus environment={environment.data} />
          {isPlayable && (
            <Link
              to="/environments/$owner/$name/play"
              params={{ owner, name }}
              search={{ variant: search.variant, split: search.split }}
              className="button primary"
              aria-keyshortcuts="p"
              title="Play a task by hand (p)"
            >
              Play
            </Link>
          )}
        </>
      )}
    </TopBar>
  );
  const error = errorInstead(environment);
  if (error || !environment.data)
    return (
      <>
        {bar}
        {error ? <ErrorState error={error} retry={() => void environment.refetch()} /> : <SkeletonRows />}
      </>
    );
  return (
    <>
      {bar}
      <div className="flex h-full flex-col">
        <Tabs environment={environment.data} tab={tab} />
        <div className="min-h-0 flex-1 overflow-auto">
          <Content environment={environment.data} tab={tab} />
        </div>
      </div>
    </>
  );
}
