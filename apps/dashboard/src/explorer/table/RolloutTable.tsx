import type { RolloutRow } from '@palestra/protocol';
import { type ReactNode, type RefObject, useEffect, useRef } from 'react';
import type { RolloutPages } from '../pages.ts';
import { DataTable, type Column, type DataTableHandle, type Sort } from '../../table/DataTable.tsx';

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
  /** Whether a panel shows the selected row: then a first click only selects. */
  peeking: boolean;
  /** Of this entry of the history: where the list was. */
  left: Map<string, number>;
  total: number | undefined;
}

/** The rollouts of the query: the focus moves with ↑ and ↓, and comes back where it was. */
export function RolloutTable({ pages, columns, sort, onSort, selected, onSelect, onOpen, peeking, left, total, empty }: Props) {
  const { rows, more } = pages;
  const holder = useRef<HTMLDivElement>(null);
  const table = useRef<DataTableHandle>(null);
  const beforeClick = useRef<string | null>(null);
  useRestored(holder, table, left, rows, selected);
  const open = (row: RolloutRow, newTab: boolean) => {
    const clicked = beforeClick.current;
    beforeClick.current = null;
    if (peeking && clicked !== null && clicked !== row.id && !newTab) return;
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
        minWidth={minWidthOf(columns)}
        handle={table}
        empty={empty}
      />
    </div>
  );
}

/** The sum of the tracks' smallest widths. */
function minWidthOf(columns: readonly Column<RolloutRow>[]): number {
  return columns.reduce((sum, { track }) => sum + Number(/\d+/.exec(track)?.[0] ?? 0), 16);
}

/** Writes the scroll position down as it changes; at the first rows puts it, and the focus, back where they were. */
function useRestored(
  holder: RefObject<HTMLDivElement | null>,
  table: RefObject<DataTableHandle | null>,
  left: Map<string, number>,
  rows: readonly RolloutRow[],
  selected: string | null,
): void {
  const done = useRef<Map<string, number> | null>(null);
  useEffect(() => {
    const scroller = holder.current?.querySelector('[role=table]')?.parentElement;
    if (!scroller) return;
    const write = () => left.set(LIST, scroller.scrollTop);
    scroller.addEventListener('scroll', write, { passive: true });
    return () => scroller.removeEventListener('scroll', write);
  }, [holder, left]);
  useEffect(() => {
    if (done.current === left || rows.length === 0) return;
    const top = left.get(LIST);
    // After the table has measured itself: it begins at its own idea of the position.
    const frame = requestAnimationFrame(() => {
      done.current = left;
      const scroller = holder.current?.querySelector('[role=table]')?.parentElement;
      if (!scroller || top === undefined) return;
      scroller.scrollTop = top;
      const index = rows.findIndex(({ id }) => id === selected);
      if (index >= 0) requestAnimationFrame(() => table.current?.focus(index));
    });
    return () => cancelAnimationFrame(frame);
  }, [holder, table, left, rows, selected]);
}
