import type { RolloutRow } from '@palestra/protocol';
import { useInfiniteQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useMemo } from 'react';
import { sharedListQuery } from '../data/explorer.ts';
import { formatCount, formatReward, plural, UNKNOWN } from '../format/number.ts';
import { taskLabel } from '../format/task.ts';
import { Age } from '../frame/Age.tsx';
import { useSharedLink } from '../frame/guest.ts';
import { TopBar } from '../frame/page.tsx';
import { errorInstead } from '../data/http.ts';
import { ErrorState, SkeletonRows } from '../frame/states.tsx';
import { Stop } from '../frame/Stop.tsx';
import { type Column, DataTable } from '../table/DataTable.tsx';
import { nextPageOf } from '../table/next-page.ts';
import { PlainText } from '../text/PlainText.tsx';

const columns: readonly Column<RolloutRow>[] = [
  {
    id: 'task',
    head: 'Task',
    track: 'minmax(110px,1fr)',
    phone: 'minmax(0,1fr)',
    cell: (row) => <PlainText text={taskLabel(row)} />,
    title: taskLabel,
  },
  {
    id: 'reward',
    head: 'Reward',
    track: '72px',
    phone: '64px',
    align: 'right',
    cell: ({ reward }) => (reward === null ? UNKNOWN : formatReward(reward)),
  },
  { id: 'stop', head: 'Stop reason', track: 'minmax(110px,0.8fr)', phone: '118px', cell: ({ stop }) => <Stop stop={stop} /> },
  {
    id: 'step',
    head: 'Step',
    track: '60px',
    phone: '48px',
    align: 'right',
    cell: ({ step }) => (step === null ? UNKNOWN : formatCount(step)),
  },
  { id: 'turns', head: 'Turns', track: '60px', align: 'right', cell: ({ turns }) => formatCount(turns) },
  {
    id: 'environment',
    head: 'Environment',
    track: 'minmax(140px,1.2fr)',
    cell: ({ environment }) => <PlainText text={environment ?? UNKNOWN} />,
    title: ({ environment }) => environment ?? undefined,
  },
  {
    id: 'model',
    head: 'Model',
    track: 'minmax(120px,1fr)',
    cell: ({ model }) => <PlainText text={model ?? UNKNOWN} />,
    title: ({ model }) => model ?? undefined,
  },
  { id: 'updated', head: 'Last event', track: '110px', align: 'right', cell: ({ updated_at: at }) => <Age iso={at} /> },
];

/** The rollouts of a share link, read-only: those that match its query now. */
export function SharedListPage() {
  const share = useSharedLink()!;
  const run = share.runs[0]!;
  const pages = useInfiniteQuery(sharedListQuery(run.id));
  const navigate = useNavigate();
  const rows = useMemo(() => pages.data?.pages.flatMap((page) => page.rollouts) ?? [], [pages.data]);
  const first = pages.data?.pages[0];
  const q = share.q ?? '';
  const error = errorInstead(pages);
  return (
    <>
      <TopBar title={run.name} crumbs={null} />
      {error ? (
        <ErrorState error={error} retry={() => void pages.refetch()} />
      ) : !first ? (
        <SkeletonRows />
      ) : (
        <div className="flex h-full min-h-0 flex-col">
          <p className="flex flex-none flex-wrap items-baseline gap-x-3 border-b border-line px-4 py-2">
            <span className="strong">
              {plural(pages.hasNextPage ? first.total : rows.length, 'rollout')}
              {pages.hasNextPage && first.total_is === 'at_least' && ' or more'}
            </span>
            {q === '' ? (
              <span className="text-ink-2">of the run</span>
            ) : (
              <span className="min-w-0 text-ink-2 [overflow-wrap:anywhere]">
                match <code>{q}</code> now
              </span>
            )}
          </p>
          <div className="min-h-0 flex-1">
            <DataTable
              label="Shared rollouts, newest first"
              columns={columns}
              rows={rows}
              rowKey={({ id }) => id}
              {...(first.total_is === 'exact' && { total: first.total })}
              {...(share.with_rollouts && {
                onOpen: (row: RolloutRow, newTab: boolean) =>
                  newTab
                    ? window.open(`/rollout/${row.id}`, '_blank', 'noopener')
                    : void navigate({ to: '/rollout/$id', params: { id: row.id }, search: {} }),
              })}
              {...nextPageOf(pages)}
              minWidth={820}
              empty={<p className="p-4 text-ink-2">No rollouts match now.</p>}
            />
          </div>
        </div>
      )}
    </>
  );
}
