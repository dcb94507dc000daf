import { useVirtualizer } from '@tanstack/react-virtual';
import {
  type KeyboardEvent,
  type MouseEvent,
  type ReactNode,
  useCallback,
  useEffect,
  useImperativeHandle,
  useLayoutEffect,
  useRef,
  type Ref,
} from 'react';
import { useKeys } from '../frame/keyboard.ts';
import { useMedia } from '../frame/media.ts';
import { useRowHeight } from '../theme/density.ts';
import type { Unread } from './next-page.ts';

export interface Column<Row> {
  id: string;
  head: ReactNode;
  /** A grid track: `88px`, `minmax(120px,2fr)`. */
  track: string;
  /** The track on a phone. Columns without it are hidden there. `line`: the column takes a separate line above the others. */
  phone?: string;
  align?: 'right';
  /** Explains the head on hover. */
  explain?: string;
  sortable?: boolean;
  cell: (row: Row, index: number) => ReactNode;
  title?: (row: Row) => string | undefined;
}

export interface Sort {
  id: string;
  order: 'asc' | 'desc';
}

export interface DataTableHandle {
  /** Scrolls to the row and focuses it. */
  focus: (index: number) => void;
}

/** Rows that the reader chose. */
export interface RowSelection {
  has: (key: string) => boolean;
  /** `extend`: all rows from the last toggled row to this one. */
  toggle: (key: string, extend: boolean) => void;
}

interface Props<Row> {
  label: string;
  columns: readonly Column<Row>[];
  rows: readonly Row[];
  rowKey: (row: Row) => string;
  /** The number of all rows, if known and larger than the number of loaded rows. */
  total?: number;
  sort?: Sort;
  onSort?: (sort: Sort) => void;
  /** Called on Enter or a click on a row; `newTab` with Ctrl, ⌘ or the middle button. */
  onOpen?: (row: Row, newTab: boolean) => void;
  /** Called with the focused row, which a preview panel shows, or null. */
  onFocusRow?: (row: Row | null) => void;
  /** The row marked as current. */
  current?: string | null;
  /** Loads the next page; null if there is none or it is loading. */
  more?: (() => void) | null;
  /** What could not be read; the rows stay. */
  unread?: Unread | null;
  /** Adds a column of checkboxes: `x` toggles the row that has the focus, Shift extends from the last toggled row. */
  selection?: RowSelection;
  /** For rows taller than a line of text; default: the reader's setting. */
  rowHeight?: number;
  minWidth?: number;
  handle?: Ref<DataTableHandle>;
  empty?: ReactNode;
}

/** Width of the column of checkboxes. */
const MARK_PX = 26;
const OVERSCAN = 8;
const PREFETCH_ROWS = 30;

/**
 * A virtualised table: only visible rows are rendered. `j`/`k` and the arrow keys move the focus, Enter opens a row, and the head is sticky.
 * The table fills its parent and scrolls inside it.
 */
export function DataTable<Row>(props: Props<Row>) {
  const {
    label,
    columns: given,
    rows,
    rowKey,
    total,
    sort,
    onSort,
    onOpen,
    onFocusRow,
    current,
    more,
    unread,
    selection,
    rowHeight: fixedHeight,
    minWidth: width = 0,
    handle,
    empty,
  } = props;
  const isPhone = useMedia('(max-width: 560px)') && given.some(({ phone }) => phone !== undefined);
  const columns = isPhone ? given.flatMap((column) => (column.phone ? { ...column, track: column.phone } : [])) : given;
  const isLine = (column: Column<Row>) => isPhone && column.phone === 'line';
  const minWidth = isPhone ? 0 : width;
  const density = useRowHeight();
  const rowHeight = columns.some(isLine) ? 2 * density : (fixedHeight ?? density);
  const scroller = useRef<HTMLDivElement>(null);
  /** The row that gets the focus as soon as it is rendered. */
  const wanted = useRef<number | null>(null);
  const focused = useRef<number>(-1);
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => rowHeight,
    overscan: OVERSCAN,
    getItemKey: (index) => rowKey(rows[index]!),
  });
  const items = virtual.getVirtualItems();
  const last = items.at(-1)?.index ?? 0;
  useEffect(() => {
    if (more && last >= rows.length - PREFETCH_ROWS) more();
  }, [more, last, rows.length]);

  const rowElement = (index: number) => scroller.current?.querySelector<HTMLElement>(`[data-index="${index}"]`);
  const focus = useCallback(
    (index: number) => {
      if (index < 0 || index >= rows.length) return;
      const element = rowElement(index);
      wanted.current = element ? null : index;
      virtual.scrollToIndex(index, { align: 'auto' });
      element?.focus({ preventScroll: true });
    },
    [rows.length, virtual],
  );
  // Before the next key: the row that had the focus may have left the page.
  useLayoutEffect(() => {
    if (wanted.current === null) return;
    const element = rowElement(wanted.current);
    if (!element) return;
    wanted.current = null;
    element.focus({ preventScroll: true });
  });
  useImperativeHandle(handle, () => ({ focus }), [focus]);
  const move = (by: number) => focus(Math.max(0, Math.min(rows.length - 1, (wanted.current ?? focused.current) + by)));
  useKeys({ j: () => move(1), k: () => move(-1), gg: () => focus(0), G: () => focus(rows.length - 1) });

  const onKeyDown = (event: KeyboardEvent, row: Row) => {
    const steps: Record<string, number> = { ArrowDown: 1, ArrowUp: -1, PageDown: 20, PageUp: -20 };
    const by = steps[event.key];
    if (by !== undefined) {
      event.preventDefault();
      move(by);
    } else if (event.key === 'Enter' && event.target === event.currentTarget) {
      event.preventDefault();
      onOpen?.(row, event.ctrlKey || event.metaKey);
    }
  };
  const toggleFocused = (extend: boolean) => {
    const row = rows[focused.current];
    if (row !== undefined) selection?.toggle(rowKey(row), extend);
  };
  useKeys(selection ? { x: () => toggleFocused(false), X: () => toggleFocused(true) } : {});
  const onClick = (event: MouseEvent, row: Row) => {
    if (isControl(event)) return;
    if (selection && event.shiftKey) selection.toggle(rowKey(row), true);
    else onOpen?.(row, event.ctrlKey || event.metaKey);
  };
  const template = [...(selection ? [`${MARK_PX}px`] : []), ...columns.filter((column) => !isLine(column)).map(({ track }) => track)].join(
    ' ',
  );
  return (
    <div ref={scroller} className="h-full min-h-0 overflow-auto">
      <div role="table" aria-label={label} aria-rowcount={(total ?? rows.length) + 1} style={{ minWidth }}>
        <div
          role="row"
          aria-rowindex={1}
          className="sticky top-0 z-10 grid border-b border-line bg-paper-0 px-2"
          style={{ gridTemplateColumns: template }}
        >
          {selection && (
            <span role="columnheader">
              <span className="sr-only">Selected</span>
            </span>
          )}
          {columns.map((column) => (
            <Head key={column.id} column={column} sort={sort} onSort={onSort} isHidden={isLine(column)} />
          ))}
        </div>
        <div role="rowgroup" className="relative" style={{ height: virtual.getTotalSize() }}>
          {items.map((item) => {
            const row = rows[item.index]!;
            const key = rowKey(row);
            return (
              <div
                key={key}
                role="row"
                data-row
                data-index={item.index}
                aria-rowindex={item.index + 2}
                aria-current={current === key ? 'true' : undefined}
                data-chosen={selection?.has(key) ? 'true' : undefined}
                tabIndex={item.index === Math.max(0, focused.current) ? 0 : -1}
                className={`row absolute inset-x-0 px-2 aria-[current=true]:bg-accent-wash data-[chosen=true]:bg-accent-wash ${onOpen ? 'hover cursor-pointer' : ''}`}
                style={{ gridTemplateColumns: template, height: rowHeight, transform: `translateY(${item.start}px)` }}
                onFocus={() => {
                  focused.current = item.index;
                  wanted.current = null;
                  onFocusRow?.(row);
                }}
                onKeyDown={(event) => onKeyDown(event, row)}
                onClick={(event) => onClick(event, row)}
                // A second click with Shift would select the text between.
                onMouseDown={(event) => selection && event.shiftKey && event.preventDefault()}
                // The browser itself opens a link.
                onAuxClick={(event) => event.button === 1 && !isControl(event) && onOpen?.(row, true)}
              >
                {selection && <Mark isChosen={selection.has(key)} at={item.index} onToggle={(extend) => selection.toggle(key, extend)} />}
                {columns.map((column) => (
                  <span
                    key={column.id}
                    role="cell"
                    className={`cell ${column.align === 'right' ? 'num' : ''} ${isLine(column) ? 'order-first col-span-full' : ''}`}
                    title={column.title?.(row)}
                  >
                    {column.cell(row, item.index)}
                  </span>
                ))}
              </div>
            );
          })}
        </div>
      </div>
      {rows.length === 0 && empty}
      {unread && (
        <p role="alert" className="sticky bottom-0 left-0 z-10 flex items-center gap-2 border-t border-line bg-paper-0 px-4 py-1 text-bad">
          ▲ {unread.error.message}
          <button type="button" className="button" disabled={unread.retry === null} onClick={unread.retry ?? undefined}>
            Try again
          </button>
        </p>
      )}
    </div>
  );
}

/** Whether a click is on a link or a control in the row. */
const isControl = ({ target }: MouseEvent): boolean => (target as HTMLElement).closest('a,button,input,label') !== null;

/** The checkbox of a row. It takes no stop of the Tab key: `x` toggles the row. */
function Mark({ isChosen, at, onToggle }: { isChosen: boolean; at: number; onToggle: (extend: boolean) => void }) {
  return (
    <span role="cell" className="grid h-full place-items-center">
      <label
        className="grid h-full w-full cursor-pointer place-items-center"
        onMouseDown={(event) => event.shiftKey && event.preventDefault()}
      >
        <input
          type="checkbox"
          tabIndex={-1}
          className="accent-accent opacity-45 checked:opacity-100 hover:opacity-100"
          aria-label={`Select row ${at + 1}`}
          checked={isChosen}
          onChange={(event) => onToggle((event.nativeEvent as unknown as { shiftKey?: boolean }).shiftKey === true)}
        />
      </label>
    </span>
  );
}

interface HeadProps<Row> {
  column: Column<Row>;
  sort: Sort | undefined;
  onSort: ((sort: Sort) => void) | undefined;
  isHidden: boolean;
}

function Head<Row>({ column, sort, onSort, isHidden }: HeadProps<Row>) {
  const sorted = sort?.id === column.id ? sort.order : undefined;
  const aria = sorted && (sorted === 'asc' ? 'ascending' : 'descending');
  return (
    <span
      role="columnheader"
      aria-sort={aria}
      title={column.explain}
      className={isHidden ? 'sr-only' : `head-cell ${column.align === 'right' ? 'justify-end' : ''}`}
    >
      {column.sortable && onSort ? (
        <button
          type="button"
          className="hover:text-ink-1"
          onClick={() => onSort({ id: column.id, order: sorted === 'desc' ? 'asc' : 'desc' })}
        >
          {column.head}
          <span aria-hidden="true">{sorted === 'asc' ? ' ↑' : sorted === 'desc' ? ' ↓' : ''}</span>
        </button>
      ) : (
        column.head
      )}
    </span>
  );
}
