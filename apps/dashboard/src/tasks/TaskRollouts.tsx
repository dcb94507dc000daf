import { ROLLOUT_SORTS, type RolloutRow } from '@palestra/protocol';
import { useNavigate, useRouter } from '@tanstack/react-router';
import { useMemo, useState } from 'react';
import { type FromList, type ListOrder, printOrder } from '../data/list-order.ts';
import type { RolloutPages } from '../explorer/rollout-pages.ts';
import { rolloutColumns } from '../explorer/table/columns.tsx';
import { RolloutTable } from '../explorer/table/RolloutTable.tsx';
import { useSolved } from '../explorer/table/solved.ts';
import { ErrorState, SkeletonRows } from '../frame/states.tsx';
import { useRun } from '../run/context.ts';
import { RolloutSelection } from '../selection/RolloutSelection.tsx';
import { useRowSelection } from '../selection/useRowSelection.ts';
import type { HistoryEntry } from '../table/history-entry.ts';

const COLUMNS = ['step', 'sample', 'reward', 'stop', 'turns', 'calls', 'errors', 'tokens', 'flags', 'created_at'] as const;
const idOf = ({ id }: RolloutRow): string => id;

/** The rollouts of a task, with a selection. */
export function TaskRollouts({
  q,
  pages,
  order,
  entry,
  onOrder,
}: {
  q: string;
  pages: RolloutPages;
  order: ListOrder;
  entry: HistoryEntry;
  onOrder: (list: string | undefined) => void;
}) {
  const { run } = useRun();
  const navigate = useNavigate();
  const router = useRouter();
  const solved = useSolved(run.id);
  const from = useMemo<FromList>(() => ({ q, sort: printOrder(order) ?? '-created_at' }), [q, order]);
  const columns = useMemo(() => rolloutColumns(COLUMNS, solved, from), [solved, from]);
  const selection = useRowSelection(pages.rows, idOf, `${entry.snapshot} ${q}`);
  const [focused, setFocused] = useState<string | null>(null);
  const open = (row: RolloutRow, newTab: boolean) => {
    const target = { to: '/rollout/$id', params: { id: row.id }, search: from } as const;
    if (newTab) window.open(router.buildLocation(target).href, '_blank', 'noopener');
    else void navigate(target);
  };
  if (pages.error) return <ErrorState error={pages.error} retry={pages.retry} />;
  if (pages.loading) return <SkeletonRows />;
  return (
    <>
      <RolloutTable
        pages={pages}
        columns={columns}
        sort={order}
        onSort={({ id, order: direction }) => {
          const by = ROLLOUT_SORTS.find((one) => one === id);
          if (by) onOrder(printOrder({ id: by, order: direction }));
        }}
        selected={focused}
        onSelect={setFocused}
        onOpen={open}
        previewing={false}
        saved={entry.saved}
        total={pages.total && !pages.total.atLeast ? pages.total.count : undefined}
        selection={selection}
        empty={<p className="p-4 text-ink-3">No rollout of this task matches the filter.</p>}
      />
      <RolloutSelection selection={selection} q={q} more />
    </>
  );
}
