import { createRootRoute, createRoute, createRouter, lazyRouteComponent, parseSearchWith, redirect } from '@tanstack/react-router';
import { type AlertTab, readAlertTab } from './alerts/tabs.ts';
import type { SessionSearch } from './sessions/Filters.tsx';
import { readSearchValue, searchIndex, searchList, searchText } from './search.ts';
import { queryClient } from './data/client.ts';
import { chooseOrganisation, organisation } from './data/organisation.ts';
import { meQuery } from './data/queries.ts';
import type { FromList } from './data/list-order.ts';
import { prefetchRollout } from './data/rollout.ts';
import { Frame } from './frame/Frame.tsx';
import { CrashState, NotFound } from './frame/states.tsx';
import type { RunFilter } from './data/run-queries.ts';
import { runOfSegment, segmentOfRun } from './run/address.ts';
import { readFilter } from './run/filter.ts';
import { readSettingsTab, type SettingsTab } from './settings/tabs.ts';

const rootRoute = createRootRoute({ component: Frame, notFoundComponent: NotFound, errorComponent: CrashState });
const root = { getParentRoute: () => rootRoute } as const;

/** Redirects `/` and `/runs/...` to the pages of the signed-in organisation. Without a session the frame shows the sign-in page. */
async function redirectToOrganisation(under = '/runs'): Promise<void> {
  const me = await queryClient.ensureQueryData(meQuery).catch(() => null);
  if (me) throw redirect({ href: `/${encodeURIComponent(me.org.name)}${under}`, replace: true });
}

const home = createRoute({ ...root, path: '/', beforeLoad: () => redirectToOrganisation() });
const bareRuns = createRoute({ ...root, path: '/runs', beforeLoad: ({ location }) => redirectToOrganisation(location.href) });
/** Every page of a run. */
const bareRun = createRoute({ ...root, path: '/runs/$', beforeLoad: ({ location }) => redirectToOrganisation(location.href) });

/** Reloads a page of another organisation, so that it shows the data of that organisation. */
async function enterOrganisation(org: string, href: string, preload: boolean): Promise<void> {
  const shown = organisation();
  if (preload || shown === null || shown === org) return;
  chooseOrganisation(org);
  window.location.assign(href);
  await new Promise(() => {});
}

const runs = createRoute({
  ...root,
  path: '/$org/runs',
  validateSearch: (search): { q?: string; tag?: string } => ({ q: searchText(search['q']), tag: searchText(search['tag']) }),
  beforeLoad: ({ params, location, preload }) => enterOrganisation(params.org, location.href, preload),
  component: lazyRouteComponent(() => import('./runs/RunsPage.tsx'), 'RunsPage'),
});

/** All pages of a run share its filter: steps, environment, phase, lens, denominator. */
const run = createRoute({
  ...root,
  path: '/$org/runs/$run',
  params: {
    parse: (raw) => ({ ...raw, run: runOfSegment(raw.run) }),
    stringify: (named) => ({ ...named, run: segmentOfRun(named.run) }),
  },
  validateSearch: readFilter,
  beforeLoad: ({ params, location, preload }) => enterOrganisation(params.org, location.href, preload),
  component: lazyRouteComponent(() => import('./run/RunLayout.tsx'), 'RunLayout'),
});
const ofRun = { getParentRoute: () => run } as const;
const overview = createRoute({
  ...ofRun,
  path: '/',
  /** `why`: the step whose change is explained. */
  validateSearch: (search): { x?: 'time' | 'count'; why?: number } => ({
    x: search['x'] === 'time' || search['x'] === 'count' ? search['x'] : undefined,
    why: searchIndex(search['why'], 0),
  }),
  component: lazyRouteComponent(() => import('./overview/OverviewPage.tsx'), 'OverviewPage'),
});
const explorer = createRoute({
  ...ofRun,
  path: '/rollouts',
  validateSearch: (search): { q?: string; sort?: string; cols?: string; sel?: string; find?: string; mode?: 'regex' } => ({
    q: searchText(search['q']),
    sort: searchText(search['sort']),
    cols: searchText(search['cols']),
    sel: searchText(search['sel']),
    find: searchText(search['find']),
    mode: search['mode'] === 'regex' ? 'regex' : undefined,
  }),
  component: lazyRouteComponent(() => import('./explorer/ExplorerRoute.tsx'), 'ExplorerRoute'),
});
const groups = createRoute({
  ...ofRun,
  path: '/groups',
  validateSearch: (search): { sort?: string; q?: string } => ({ sort: searchText(search['sort']), q: searchText(search['q']) }),
  component: lazyRouteComponent(() => import('./groups/GroupsPage.tsx'), 'GroupsPage'),
});
const group = createRoute({
  ...ofRun,
  path: '/groups/$group',
  /** `at`: the step, for a group key that occurs at several steps; `lane`: the current sample. */
  validateSearch: (search): { at?: number; view?: 'matrix' | 'lanes'; pin?: true; order?: 'reward'; lane?: number } => ({
    at: searchIndex(search['at'], 0),
    view: search['view'] === 'matrix' || search['view'] === 'lanes' ? search['view'] : undefined,
    pin: search['pin'] === true || undefined,
    order: search['order'] === 'reward' ? 'reward' : undefined,
    lane: searchIndex(search['lane'], 0),
  }),
  component: lazyRouteComponent(() => import('./groups/GroupPage.tsx'), 'GroupPage'),
});
const tasks = createRoute({
  ...ofRun,
  path: '/tasks',
  validateSearch: (search): { from?: number; to?: number; show?: string; sort?: string } => ({
    from: searchIndex(search['from'], 0),
    to: searchIndex(search['to'], 0),
    show: searchText(search['show']),
    sort: searchText(search['sort']),
  }),
  component: lazyRouteComponent(() => import('./tasks/TasksPage.tsx'), 'TasksPage'),
});
const task = createRoute({
  ...ofRun,
  path: '/tasks/$task',
  /** `at`: the steps side by side; `list`: the order of the rollouts; `step`: only the rollouts of this step. */
  validateSearch: (search): { at?: string; list?: string; step?: number; view?: 'steps' } => ({
    at: searchText(search['at']),
    list: searchText(search['list']),
    step: searchIndex(search['step'], 0),
    view: search['view'] === 'steps' ? 'steps' : undefined,
  }),
  component: lazyRouteComponent(() => import('./tasks/TaskPage.tsx'), 'TaskPage'),
});
const tools = createRoute({
  ...ofRun,
  path: '/tools',
  /** `tool`: the open tool. */
  validateSearch: (search): { tool?: string } => ({ tool: searchText(search['tool']) }),
  component: lazyRouteComponent(() => import('./tools/ToolsPage.tsx'), 'ToolsPage'),
});
const failures = createRoute({
  ...ofRun,
  path: '/failures',
  component: lazyRouteComponent(() => import('./failures/FailuresPage.tsx'), 'FailuresPage'),
});
const config = createRoute({
  ...ofRun,
  path: '/config',
  component: lazyRouteComponent(() => import('./config/ConfigPage.tsx'), 'ConfigPage'),
});

const rollout = createRoute({
  ...root,
  path: '/rollout/$id',
  /** `q`, `sort`: the list that the rollout was opened from, for the keys `n` and `p`; `diff`: the rollout to compare with. */
  validateSearch: (search): FromList & { tab?: string; diff?: string; print?: true } => ({
    q: searchText(search['q']),
    sort: searchText(search['sort']),
    tab: searchText(search['tab']),
    diff: searchText(search['diff']),
    // Renders all rows, for printing.
    print: search['print'] === true || search['print'] === '' || search['print'] === 'true' || undefined,
  }),
  // Loads data while the code of the page loads, but not when a link is only hovered.
  loader: ({ params, preload, location }) => {
    if (!preload) prefetchRollout(params.id, location.hash);
  },
  component: lazyRouteComponent(() => import('./rollout/RolloutPage.tsx'), 'RolloutPage'),
});
const compare = createRoute({
  ...root,
  path: '/compare',
  /** `org`: the organisation of the runs or rollouts; names or ids of runs; `steps`: common steps unless `all`; `sort`: order of the tasks, such as `delta:1:desc`. */
  validateSearch: (search): RunFilter & { org?: string; runs?: string; rollouts?: string; x?: 'time' | 'count'; sort?: string } => ({
    ...readFilter(search),
    org: searchText(search['org']),
    ...(search['steps'] === 'all' && { steps: 'all' }),
    runs: searchList(search['runs']),
    rollouts: searchList(search['rollouts']),
    x: search['x'] === 'time' || search['x'] === 'count' ? search['x'] : undefined,
    sort: searchText(search['sort']),
  }),
  component: lazyRouteComponent(() => import('./compare/ComparePage.tsx'), 'ComparePage'),
});
const exports_ = createRoute({
  ...root,
  path: '/exports',
  validateSearch: (search): { job?: string } => ({ job: searchText(search['job']) }),
  component: lazyRouteComponent(() => import('./exports/ExportsPage.tsx'), 'ExportsPage'),
});

const reviews = createRoute({
  ...root,
  path: '/reviews',
  /** `queue`: the selected one. */
  validateSearch: (search): { queue?: string } => ({ queue: searchText(search['queue']) }),
  component: lazyRouteComponent(() => import('./review/ReviewsPage.tsx'), 'ReviewsPage'),
});
const review = createRoute({
  ...root,
  path: '/reviews/$queue',
  component: lazyRouteComponent(() => import('./review/ReviewPage.tsx'), 'ReviewPage'),
});

const environments = createRoute({
  ...root,
  path: '/environments',
  validateSearch: (search): { q?: string } => ({ q: searchText(search['q']) }),
  component: lazyRouteComponent(() => import('./environments/CatalogPage.tsx'), 'CatalogPage'),
});
interface EnvironmentSearch {
  tab?: string;
  variant?: string;
  split?: string;
  sort?: string;
  order?: 'asc' | 'desc';
  only?: 'mixed';
  task?: number;
  deploy?: string;
  from?: number;
  to?: number;
  q?: string;
  severity?: string;
  instance?: string;
  of?: number;
  follow?: false;
}
const environment = createRoute({
  ...root,
  path: '/environments/$owner/$name',
  /**
   * `task`: the open task; `only=mixed`: tasks with 0 < avg < 1; `deploy`: the open deploy, or the one whose log is shown; `from`, `to`: the
   * compared versions; `q`, `severity`, `instance`, `of` (a version), `follow`: of the log.
   */
  validateSearch: (search): EnvironmentSearch => ({
    tab: searchText(search['tab']),
    variant: searchText(search['variant']),
    split: searchText(search['split']),
    sort: searchText(search['sort']),
    order: search['order'] === 'desc' ? 'desc' : search['order'] === 'asc' ? 'asc' : undefined,
    only: search['only'] === 'mixed' ? 'mixed' : undefined,
    task: searchIndex(search['task'], 0),
    deploy: searchText(search['deploy']),
    from: searchIndex(search['from']),
    to: searchIndex(search['to']),
    q: searchText(search['q']),
    severity: searchText(search['severity']),
    instance: searchText(search['instance']),
    of: searchIndex(search['of']),
    follow: search['follow'] === false ? false : undefined,
  }),
  component: lazyRouteComponent(() => import('./environments/EnvironmentPage.tsx'), 'EnvironmentPage'),
});
const playground = createRoute({
  ...root,
  path: '/environments/$owner/$name/play',
  validateSearch: (search): { variant?: string; split?: string; task?: number; sid?: string } => ({
    variant: searchText(search['variant']),
    split: searchText(search['split']),
    task: searchIndex(search['task'], 0),
    sid: searchText(search['sid']),
  }),
  component: lazyRouteComponent(() => import('./playground/PlaygroundPage.tsx'), 'PlaygroundPage'),
});

const apiKeys = createRoute({ ...root, path: '/keys', component: lazyRouteComponent(() => import('./keys/KeysPage.tsx'), 'KeysPage') });
const settings = createRoute({
  ...root,
  path: '/settings',
  validateSearch: (search): { tab?: SettingsTab } => ({ tab: readSettingsTab(search['tab']) }),
  component: lazyRouteComponent(() => import('./settings/SettingsPage.tsx'), 'SettingsPage'),
});
const checker = createRoute({
  ...root,
  path: '/check',
  validateSearch: (search): { example?: string | undefined } => ({ example: searchText(search['example']) }),
  component: lazyRouteComponent(() => import('./checker/CheckerPage.tsx'), 'CheckerPage'),
});

const alerts = createRoute({
  ...root,
  path: '/alerts',
  /** `alert`, `webhook`: ids. */
  validateSearch: (search): { tab?: AlertTab; alert?: string; webhook?: string } => ({
    tab: readAlertTab(search['tab']),
    alert: searchText(search['alert']),
    webhook: searchText(search['webhook']),
  }),
  component: lazyRouteComponent(() => import('./alerts/AlertsPage.tsx'), 'AlertsPage'),
});
const sessions = createRoute({
  ...root,
  path: '/sessions',
  validateSearch: (search): SessionSearch => ({
    tab: search['tab'] === 'ended' || search['tab'] === 'slots' ? search['tab'] : undefined,
    state: searchText(search['state']),
    environment: searchText(search['environment']),
    run: searchText(search['run']),
    key: searchText(search['key']),
    failure: searchText(search['failure']),
  }),
  component: lazyRouteComponent(() => import('./sessions/SessionsPage.tsx'), 'SessionsPage'),
});
const session = createRoute({
  ...root,
  path: '/sessions/$sid',
  component: lazyRouteComponent(() => import('./session/SessionPage.tsx'), 'SessionPage'),
});

const pagesOfRun = run.addChildren([overview, explorer, groups, group, tasks, task, tools, failures, config]);
const pages = [home, bareRuns, bareRun, runs, pagesOfRun, rollout, compare, reviews, review, exports_, alerts, sessions, session];
const otherPages = [environments, environment, playground, apiKeys, settings, checker];

export const router = createRouter({
  parseSearch: parseSearchWith(readSearchValue),
  routeTree: rootRoute.addChildren([...pages, ...otherPages]),
  defaultPreload: 'intent',
  scrollRestoration: false,
});

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router;
  }
}
