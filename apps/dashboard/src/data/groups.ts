import { infiniteQueryOptions, queryOptions, useQueries } from '@tanstack/react-query';
import { useCallback } from 'react';
import type { Group, GroupSort, GroupView, RolloutDiff, RolloutHeader } from '@palestra/protocol';
import { keepWithin, manualRefresh } from './client.ts';
import { api, apiOfRun } from './http.ts';
import { diffQuery, lastRead, relatedInterval } from './rollout.ts';
import type { RunFilter } from './run-queries.ts';

export type GroupMember = GroupView['rollouts'][number];
export interface GroupListRequest extends Pick<RunFilter, 'steps' | 'phase'> {
  q: string;
  sort: GroupSort;
  order: 'asc' | 'desc';
}

/** Pages of groups. They stay as read for as long as `snapshot` is the same. */
export const groupsQuery = (run: string, request: GroupListRequest, snapshot: string) =>
  infiniteQueryOptions({
    queryKey: ['groups', run, request, snapshot],
    queryFn: ({ pageParam, signal }) => groupsPage(run, request, pageParam, signal),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (last) => last.next ?? undefined,
    placeholderData: keepWithin('groups', run),
    ...manualRefresh,
  });
const groupsPage = (run: string, request: GroupListRequest, cursor: string | undefined, signal: AbortSignal) =>
  apiOfRun('GET /v1/runs/{run}/groups', { path: { run }, query: { ...request, limit: 200, cursor }, signal });
/** The current first page. */
export const groupsNowQuery = (run: string, request: GroupListRequest) =>
  queryOptions({
    queryKey: ['run', run, 'groups-now', request] as readonly unknown[],
    queryFn: async ({ signal }) => (await groupsPage(run, request, undefined, signal)).groups,
  });

export const groupQuery = (run: string, group: string, step?: number | null) =>
  queryOptions({
    queryKey: ['group', run, group, step ?? null],
    queryFn: ({ signal }) => apiOfRun('GET /v1/runs/{run}/groups/{key}', { path: { run, key: group }, query: { step }, signal }),
    refetchOnWindowFocus: false,
  });
/** The group of the rollout on the page, refetched for as long as the rollout can change. */
export const groupAroundQuery = (header: RolloutHeader) => {
  const { run, group, step, reward, state } = header;
  return queryOptions({
    ...groupQuery(run.id, group ?? '', step),
    queryKey: ['group', run.id, group, step, 'around', header.id, reward, state],
    placeholderData: () => lastRead<GroupView & { version: string | null }>(['group', run.id, group, step, 'around']),
    refetchInterval: relatedInterval(header),
    enabled: group !== null && run.id !== '',
  });
};
/** The current samples of a group. */
export const groupNowQuery = (run: string, group: string, step?: number | null) =>
  queryOptions({
    queryKey: ['run', run, 'group-now', group, step ?? null] as readonly unknown[],
    queryFn: async ({ signal }) =>
      (await api('GET /v1/runs/{run}/groups/{key}', { path: { run, key: group }, query: { step }, signal })).rollouts,
  });

/** The groups of a task at every step. */
export const taskStripQuery = (run: string, task: string, phase: Group['phase']) =>
  queryOptions({
    queryKey: ['run', run, 'task-strip', task, phase],
    queryFn: ({ signal }) =>
      api('GET /v1/runs/{run}/tasks/{task}', { path: { run, task }, query: { phase: phase === 'unknown' ? undefined : phase }, signal }),
    staleTime: 60_000,
    meta: { live: 'replace' },
  });

/** The alignment of each member with `centre`, in the order of `members`; undefined while it loads. */
export function useAlignments(centre: GroupMember | undefined, members: readonly GroupMember[]): (RolloutDiff | undefined)[] {
  return useQueries({
    queries: centre ? members.map(({ id, num_messages: count }) => diffQuery(centre.id, id, [centre.num_messages, count])) : [],
    combine: useCallback((answers: { data?: RolloutDiff | undefined }[]) => answers.map(({ data }) => data), []),
  });
}
