import { createRootRoute, createRoute, createRouter, lazyRouteComponent, redirect } from '@tanstack/react-router';
import type { SessionSearch } from './sessions/Filters.tsx';
import { searchIndex, searchText } from './search.ts';
import { queryClient } from './data/client.ts';
import { meQuery } from './data/queries.ts';
import { Frame } from './frame/Frame.tsx';
import { CrashState, NotFound } from './frame/states.tsx';

const rootRoute = createRootRoute({ component: Frame, notFoundComponent: NotFound, errorComponent: CrashState });

/** `/` and `/runs` lead to the runs of the signed-in organisation; without a session the frame shows how to sign in. */
async function toOwnRuns(run?: string): Promise<void> {
  const me = await queryClient.ensureQueryData(meQuery).catch(() => null);
  if (!me) return;
  if (run === undefined) throw redirect({ to: '/$org/runs', params: { org: me.org.name }, replace: true });
  throw redirect({ to: '/$org/runs/$run', params: { org: me.org.name, run }, replace: true });
}

const home = createRoute({ getParentRoute: () => rootRoute, path: '/', beforeLoad: () => toOwnRuns() });
const bareRuns = createRoute({ getParentRoute: () => rootRoute, path: '/runs', beforeLoad: () => toOwnRuns() });
const bareRun = createRoute({
  getParentRoute: () => rootRoute,
  path: '/runs/$run',
  beforeLoad: ({ params }) => toOwnRuns(params.run),
});

const runs = createRoute({
  getParentRoute: () => rootRoute,
  path: '/$org/runs',
  validateSearch: (search): { q?: string } => ({ q: searchText(search['q']) }),
  component: lazyRouteComponent(() => import('./runs/RunsPage.tsx'), 'RunsPage'),
});
const run = createRoute({
  getParentRoute: () => rootRoute,
  path: '/$org/runs/$run',
  validateSearch: (search): { sort?: string; q?: string } => ({ sort: searchText(search['sort']), q: searchText(search['q']) }),
  component: lazyRouteComponent(() => import('./run/RunPage.tsx'), 'RunPage'),
});
const rollout = createRoute({
  getParentRoute: () => rootRoute,
  path: '/rollout/$id',
  component: lazyRouteComponent(() => import('./rollout/RolloutPage.tsx'), 'RolloutPage'),
});
const environments = createRoute({
  getParentRoute: () => rootRoute,
  path: '/environments',
  validateSearch: (search): { q?: string } => ({ q: searchText(search['q']) }),
  component: lazyRouteComponent(() => import('./environments/CatalogPage.tsx'), 'CatalogPage'),
});
const environment = createRoute({
  getParentRoute: () => rootRoute,
  path: '/environments/$owner/$name',
  validateSearch: (search): { variant?: string; split?: string; start?: number } => ({
    variant: searchText(search['variant']),
    split: searchText(search['split']),
    start: searchIndex(search['start']),
  }),
  component: lazyRouteComponent(() => import('./environments/EnvironmentPage.tsx'), 'EnvironmentPage'),
});
const apiKeys = createRoute({
  getParentRoute: () => rootRoute,
  path: '/keys',
  component: lazyRouteComponent(() => import('./keys/KeysPage.tsx'), 'KeysPage'),
});

const sessions = createRoute({
  getParentRoute: () => rootRoute,
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
  getParentRoute: () => rootRoute,
  path: '/sessions/$sid',
  component: lazyRouteComponent(() => import('./session/SessionPage.tsx'), 'SessionPage'),
});

export const router = createRouter({
  routeTree: rootRoute.addChildren([home, bareRuns, bareRun, runs, run, rollout, sessions, session, environments, environment, apiKeys]),
  defaultPreload: 'intent',
  scrollRestoration: false,
});

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router;
  }
}
