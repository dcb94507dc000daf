import { infiniteQueryOptions, keepPreviousData, queryOptions, useQueries } from '@tanstack/react-query';
import { useCallback } from 'react';
import type { Group, GroupSort, GroupView, RolloutDiff, RolloutHeader } from '@palestra/protocol';
import { asRead } from './client.ts';
import { api, apiOfRun } from './http.ts';
import { diffQuery, lastRead, lookAround } from './rollout.ts';
import type { RunFilter } from './run-reads.ts';

export type GroupMember = GroupView['rollouts'][number];
export interface GroupsAsk extends Pick<RunFilter, 'steps' | 'phase'> {
  q: string;
  sort: GroupSort;
  order: 'asc' | 'desc';
}

/** Pages of groups, which stay as they were read for as long as `snapshot` is the same. */
export const groupsQuery = (run: string, ask: GroupsAsk, snapshot: string) =>
  infiniteQueryOptions({
    queryKey: ['groups', run, ask, snapshot],
    queryFn: ({ pageParam, signal }) => groupsPage(run, ask, pageParam, signal),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (last) => last.next ?? undefined,
    placeholderData: keepPreviousData,
    ...asRead,
  });
const groupsPage = (run: string, ask: GroupsAsk, cursor: string | undefined, signal: AbortSignal) =>
  apiOfRun('GET /v1/runs/{run}/groups', { path: { run }, query: { ...ask, limit: 200, cursor }, signal });
/** The first page as it is now. */
export const groupsNowQuery = (run: string, ask: GroupsAsk) =>
  queryOptions({
    queryKey: ['run', run, 'groups-now', ask] as readonly unknown[],
    queryFn: async ({ signal }) => (await groupsPage(run, ask, undefined, signal)).groups,
  });

export const groupQuery = (run: string, group: string, step?: number | null) =>
  queryOptions({
    queryKey: ['group', run, group, step ?? null],
    queryFn: ({ signal }) => apiOfRun('GET /v1/runs/{run}/groups/{key}', { path: { run, key: group }, query: { step }, signal }),
    refetchOnWindowFocus: false,
  });
/** The group around a rollout that is read: figures, which follow for as long as the rollout may go on. */
export const groupAroundQuery = (header: RolloutHeader) => {
  const { run, group, step, reward, state } = header;
  return queryOptions({
    ...groupQuery(run.id, group ?? '', step),
    queryKey: ['group', run.id, group, step, 'around', header.id, reward, state],
    placeholderData: () => lastRead<GroupView & { version: string | null }>(['group', run.id, group, step, 'around']),
    refetchInterval: lookAround(header),
    enabled: group !== null && run.id !== '',
  });
};
/** The samples of a group as they are now. */
export const groupNowQuery = (run: string, group: string, step?: number | null) =>
  queryOptions({
    queryKey: ['run', run, 'group-now', group, step ?? null] as readonly unknown[],
    queryFn: async ({ signal }) =>
      (await api('GET /v1/runs/{run}/groups/{key}', { path: { run, key: group }, query: { step }, signal })).rollouts,
  });

/** The task's groups at every step: how the same task went before and after. */
export const taskStripQuery = (run: string, task: string, phase: Group['phase']) =>
  queryOptions({
    queryKey: ['run', run, 'task-strip', task, phase],
    queryFn: ({ signal }) =>
      api('GET /v1/runs/{run}/tasks/{task}', { path: { run, task }, query: { phase: phase === 'unknown' ? undefined : phase }, signal }),
    staleTime: 60_000,
    meta: { live: 'replace' },
  });

/** What each member did beside what `centre` did, in the order of `members`, with the messages that they had; undefined until it is here. */
export function useAlignments(centre: GroupMember | undefined, members: readonly GroupMember[]): (RolloutDiff | undefined)[] {
  return useQueries({
    queries: centre ? members.map(({ id, num_messages: count }) => diffQuery(centre.id, id, [centre.num_messages, count])) : [],
    combine: useCallback((answers: { data?: RolloutDiff | undefined }[]) => answers.map(({ data }) => data), []),
  });
}
