import { printText } from '@palestra/query';
import { queryOptions } from '@tanstack/react-query';
import type { Axis, Denominator, KnownPhase, Lens, RunHeatmap, RunSeries, RunSummary } from '@palestra/protocol';
import { keepWithin } from './client.ts';
import { api, type Query } from './http.ts';

/** The part of a run that a page shows, from its address; all pages of a run share it. */
export interface RunFilter {
  /** `40..80`, `40..`, `40`. */
  steps?: string | undefined;
  env?: string | undefined;
  phase?: KnownPhase | undefined;
  lens?: Lens | undefined;
  den?: Denominator | undefined;
}

export type Kpi = RunSummary['kpis'][number];
export type Advisory = RunSummary['advisories'][number];
export type Series = RunSeries['series'][number];
const live = { live: 'replace' } as const;
/** How often an incomplete answer is read again. */
const INCOMPLETE_MS = 1_000;
const untilComplete = (query: { state: { data?: { incomplete: boolean } | undefined } }) =>
  query.state.data?.incomplete ? INCOMPLETE_MS : false;
const filterQuery = ({ steps, env, phase, lens, den }: RunFilter): Query => ({ steps, env, phase, lens, den });

/** KPIs, stop reasons and advisories of the filtered run. */
export const summaryQuery = (run: string, filter: RunFilter) =>
  queryOptions({
    queryKey: ['run', run, 'summary', filter],
    queryFn: ({ signal }) => api('GET /v1/runs/{run}/summary', { path: { run }, query: filterQuery(filter), signal }),
    placeholderData: keepWithin('run', run),
    refetchInterval: untilComplete,
    meta: live,
  });

export type ChartX = Exclude<Axis, 'window'>;
export const CHART_X: readonly ChartX[] = ['step', 'time', 'count'];

export interface SeriesRequest extends RunFilter {
  /** Ids of canonical metrics, or names that trainers print. */
  m: readonly string[];
  x?: ChartX | undefined;
  by?: 'env' | undefined;
}
export const seriesQuery = (run: string, { m, x, by, ...filter }: SeriesRequest) =>
  queryOptions({
    queryKey: ['run', run, 'series', m, x, by, filter],
    queryFn: ({ signal }) => api('GET /v1/runs/{run}/series', { path: { run }, query: { ...filterQuery(filter), m, x, by }, signal }),
    placeholderData: keepWithin('run', run),
    refetchInterval: untilComplete,
    meta: live,
  });

export const heatmapQuery = (run: string, { y, bins, ...filter }: RunFilter & { y: RunHeatmap['y']; bins?: number }) =>
  queryOptions({
    queryKey: ['run', run, 'heatmap', y, bins, filter],
    queryFn: ({ signal }) =>
      api('GET /v1/runs/{run}/heatmap', {
        path: { run },
        query: { steps: filter.steps, env: filter.env, phase: filter.phase, y, bins },
        signal,
      }),
    placeholderData: keepWithin('run', run),
    refetchInterval: untilComplete,
    meta: live,
  });

/** Counts and stop reasons by step. */
export const stepCountsQuery = (run: string, { steps, env, phase }: RunFilter) =>
  queryOptions({
    queryKey: ['run', run, 'steps', steps, env, phase],
    queryFn: ({ signal }) => api('GET /v1/runs/{run}/steps', { path: { run }, query: { steps, env, phase }, signal }),
    placeholderData: keepWithin('run', run),
    meta: live,
  });

export const LATEST_GROUPS = 12;
/** The newest groups of the filtered run. */
export const latestGroupsQuery = (run: string, { steps, env, phase }: RunFilter) =>
  queryOptions({
    queryKey: ['run', run, 'latest-groups', steps, env, phase],
    queryFn: ({ signal }) =>
      api('GET /v1/runs/{run}/groups', {
        path: { run },
        query: {
          steps,
          phase,
          q: env === undefined ? undefined : `env:${printText(env)}`,
          sort: 'step',
          order: 'desc',
          limit: LATEST_GROUPS,
        },
        signal,
      }),
    placeholderData: keepWithin('run', run),
    meta: live,
  });

/** The steps at which the reward moved, each with its first cause. */
export const movesQuery = (run: string, { env, phase }: RunFilter) =>
  queryOptions({
    queryKey: ['run', run, 'moves', env, phase],
    queryFn: ({ signal }) => api('GET /v1/runs/{run}/moves', { path: { run }, query: { env, phase }, signal }),
    placeholderData: keepWithin('run', run),
    meta: live,
  });

/** One step with everything that changed there. */
export const moveQuery = (run: string, { env, phase }: RunFilter, step: number) =>
  queryOptions({
    queryKey: ['run', run, 'move', env, phase, step],
    queryFn: ({ signal }) => api('GET /v1/runs/{run}/moves', { path: { run }, query: { env, phase, step }, signal }),
    meta: live,
  });
