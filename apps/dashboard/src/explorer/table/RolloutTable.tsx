import type { RolloutRow } from '@palestra/protocol';
import { type ReactNode, type RefObject, useEffect, useRef } from 'react';
import type { RolloutPages } from '../rollout-pages.ts';
import { type Column, DataTable, type DataTableHandle, type RowSelection, type Sort } from '../../table/DataTable.tsx';

const LIST = 'rollouts';

interface Props {
  pages: RolloutPages;
  empty: ReactNode;
  columns: readonly Column<RolloutRow>[];
  sort: Sort;
  onSort: (sort: Sort) => void;
  selected: string | null;
  onSelect: (id: string) => void;
  onOpen: (row: RolloutRow, newTab: boolean) => void;
  /** Whether a panel previews the selected row. Then the first click only selects. */
  previewing: boolean;
  /** Scroll positions of the history entry. */
  saved: Map<string, number>;
  total: number | undefined;
  selection: RowSelection;
}

/** The rollouts of the query. Focus and scroll position are restored when the reader returns. */
export function RolloutTable({
  pages,
  columns,
  sort,
  onSort,
  selected,
  onSelect,
  onOpen,
  previewing,
  saved,
  total,
  selection,
  empty,
}: Props) {
  const { rows, more, unread } = pages;
  const holder = useRef<HTMLDivElement>(null);
  const table = useRef<DataTableHandle>(null);
  const beforeClick = useRef<string | null>(null);
  useRestored(holder, table, saved, rows, selected);
  const open = (row: RolloutRow, newTab: boolean) => {
    const clicked = beforeClick.current;
    beforeClick.current = null;
    if (previewing && clicked !== null && clicked !== row.id && !newTab) return;
    onOpen(row, newTab);
  };
  return (
    <div
      ref={holder}
      className="min-h-0 min-w-0 flex-1"
      onPointerDownCapture={() => (beforeClick.current = selected ?? '')}
      onKeyDownCapture={() => (beforeClick.current = null)}
    >
      <DataTable
        label="Rollouts of the query"
        columns={columns}
        rows={rows}
        rowKey={(row) => row.id}
        {...(total !== undefined && { total })}
        sort={sort}
        onSort={onSort}
        onOpen={open}
        onFocusRow={(row) => row && onSelect(row.id)}
        current={selected}
        more={more}
        unread={unread}
        selection={selection}
        minWidth={minWidthOf(columns)}
        handle={table}
        empty={empty}
      />
    </div>
  );
}

/** The sum of the minimum widths of the columns. */
function minWidthOf(columns: readonly Column<RolloutRow>[]): number {
  return columns.reduce((sum, { track }) => sum + Number(/\d+/.exec(track)?.[0] ?? 0), 16);
}

/** Saves the scroll position, and restores it and the focus when the first rows arrive. */
function useRestored(
  holder: RefObject<HTMLDivElement | null>,
  table: RefObject<DataTableHandle | null>,
  saved: Map<string, number>,
  rows: readonly RolloutRow[],
  selected: string | null,
): void {
  const done = useRef<Map<string, number> | null>(null);
  useEffect(() => {
    const scroller = holder.current?.querySelector('[role=table]')?.parentElement;
    if (!scroller) return;
    const write = () => saved.set(LIST, scroller.scrollTop);
    scroller.addEventListener('scroll', write, { passive: true });
    return () => scroller.removeEventListener('scroll', write);
  }, [holder, saved]);
  useEffect(() => {
    if (done.current === saved || rows.length === 0) return;
    const top = saved.get(LIST);
    // Runs after the table has measured itself, which sets an initial position.
    const frame = requestAnimationFrame(() => {
      done.current = saved;
      const scroller = holder.current?.querySelector('[role=table]')?.parentElement;
      if (!scroller || top === undefined) return;
      scroller.scrollTop = top;
      const index = rows.findIndex(({ id }) => id === selected);
      if (index >= 0) requestAnimationFrame(() => table.current?.focus(index));
    });
    return () => cancelAnimationFrame(frame);
  }, [holder, table, saved, rows, selected]);
}
