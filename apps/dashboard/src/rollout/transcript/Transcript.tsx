import type { RolloutOutline } from '@palestra/protocol';
import { useVirtualizer } from '@tanstack/react-virtual';
import { type KeyboardEvent, type Ref, useCallback, useEffect, useImperativeHandle, useLayoutEffect, useRef, useState } from 'react';
import { useTranscriptPages } from '../../data/transcript-pages.ts';
import { formatCount } from '../../format/number.ts';
import type { Openness } from '../context.ts';
import { FindProvider } from '../../text/find-context.ts';
import { highlight } from './highlight.ts';
import { Row } from './Row.tsx';
import { rowData, rowKey } from './rows.ts';
import type { TranscriptHandle } from './transcript-handle.ts';
import { estimateHeight, nameAt, positionsOf, type TranscriptItem } from '../transcript.ts';

const OVERSCAN = 5;
/** Pixels. Within this distance the reader counts as being at the end. */
const NEAR_END = 48;
/** Keys that scroll. */
const SCROLL_KEYS = new Set(['ArrowUp', 'ArrowDown', 'PageUp', 'PageDown', 'Home', 'End', ' ']);
const UP_KEYS = new Set(['ArrowUp', 'PageUp', 'Home']);

interface TranscriptProps {
  id: string;
  outline: RolloutOutline;
  items: readonly TranscriptItem[];
  selected: number;
  decisive: number;
  openness: (item: TranscriptItem) => Openness;
  toggle: (anchor: number) => void;
  select: (row: number) => void;
  /** The view follows new messages. */
  tail: boolean;
  setTail: (tail: boolean) => void;
  live: boolean;
  find: string;
  handle: Ref<TranscriptHandle>;
}

const labelOf = (outline: RolloutOutline, item: TranscriptItem): string => {
  if (item.kind === 'gap') return `Missing messages ${item.from} to ${item.to}`;
  if (item.kind === 'message') return `${item.type.replace('_message', '')}, message ${item.anchor}`;
  return `${nameAt(outline, item.call) ?? 'Result without a call'}, message ${item.anchor}`;
};

/** A virtual list with measured row heights: only visible rows are in the page. */
export function Transcript(props: TranscriptProps) {
  const { id, outline, items, selected, decisive, openness, toggle, select, tail, setTail, live, find, handle } = props;
  const scroller = useRef<HTMLDivElement>(null);
  /** The row that stays at the top until the reader scrolls; -1: none. At first the linked one. */
  const pinnedRow = useRef(selected);
  const list = useVirtualizer({
    count: items.length,
    getScrollElement: () => scroller.current,
    estimateSize: (row) => estimateHeight(outline, items[row]!),
    getItemKey: (row) => rowKey(items[row]!),
    // The first render already shows the rows near a linked message, as far as the estimates are right.
    initialRect: { width: innerWidth, height: innerHeight },
    initialOffset: () => items.slice(0, Math.max(0, selected)).reduce((sum, item) => sum + estimateHeight(outline, item), 0),
    overscan: OVERSCAN,
    paddingStart: 8,
    paddingEnd: 120,
  });
  const rows = list.getVirtualItems();
  const [first, last] = positionsOf(items, rows[0]?.index ?? 0, rows.at(-1)?.index ?? 0);
  const messageAt = useTranscriptPages(id, outline, first, last);

  const restorePosition = useCallback(() => {
    const element = scroller.current;
    if (!element) return;
    if (tail) element.scrollTop = element.scrollHeight;
    else if (pinnedRow.current >= 0) {
      const offset = list.getOffsetForIndex(pinnedRow.current, 'start')?.[0];
      if (offset !== undefined && Math.abs(element.scrollTop - offset) > 1) element.scrollTop = offset;
    }
  }, [list, tail]);
  // After every measurement, so that the pinned row does not move.
  useLayoutEffect(restorePosition);
  useImperativeHandle(handle, () => {
    const scrollToTop = (row: number) => {
      pinnedRow.current = row;
      list.scrollToIndex(row, { align: 'start' });
    };
    const reveal = (row: number) => {
      const element = scroller.current;
      const box = element?.querySelector(`[data-row="${row}"]`)?.getBoundingClientRect();
      const view = element?.getBoundingClientRect();
      if (box && view && box.top >= view.top && box.bottom <= view.bottom) pinnedRow.current = -1;
      else scrollToTop(row);
    };
    return { scrollToTop, reveal };
  }, [list]);
  useEffect(() => highlight(scroller.current, find));

  const unpin = (up: boolean) => {
    pinnedRow.current = -1;
    if (up && tail) setTail(false);
  };
  const onKeyDown = (event: KeyboardEvent) => SCROLL_KEYS.has(event.key) && unpin(UP_KEYS.has(event.key) || event.shiftKey);
  const [seenCount, setSeenCount] = useState(items.length);
  const onScroll = () => {
    const { scrollHeight, scrollTop, clientHeight } = scroller.current!;
    if (scrollHeight - scrollTop - clientHeight > NEAR_END) return;
    if (seenCount !== items.length) setSeenCount(items.length);
    if (live && !tail && pinnedRow.current < 0) setTail(true);
  };
  const unseen = items.length - seenCount;
  return (
    <div className="relative grid min-h-0 min-w-0">
      <div
        ref={scroller}
        className="min-h-0 overflow-auto [overflow-anchor:none]"
        tabIndex={0}
        role="region"
        aria-label="Transcript, scrollable"
        onWheel={(event) => unpin(event.deltaY < 0)}
        onTouchMove={() => unpin(true)}
        onPointerDown={(event) => event.target === event.currentTarget && unpin(true)}
        onKeyDown={onKeyDown}
        onScroll={onScroll}
      >
        <FindProvider value={find}>
          <div role="feed" aria-label="Transcript" className="relative max-w-[1240px]" style={{ height: list.getTotalSize() }}>
            {rows.map(({ index: row, key, start }) => {
              const item = items[row]!;
              const { call, result, data } = rowData(outline, item);
              return (
                <article
                  key={key}
                  ref={list.measureElement}
                  data-index={row}
                  data-row={row}
                  data-anchor={item.anchor}
                  aria-label={labelOf(outline, item)}
                  aria-posinset={row + 1}
                  aria-setsize={items.length}
                  aria-current={row === selected ? 'true' : undefined}
                  onClick={() => row !== selected && getSelection()?.isCollapsed !== false && select(row)}
                  className={`absolute inset-x-0 top-0 ${row === selected ? 'bg-paper-1' : ''}`}
                  style={{ transform: `translateY(${start}px)` }}
                >
                  <Row
                    item={item}
                    {...data}
                    decisive={row === decisive}
                    message={call === null ? undefined : messageAt(call)}
                    result={result === null ? undefined : messageAt(result)}
                    open={openness(item)}
                    toggle={toggle}
                  />
                </article>
              );
            })}
          </div>
        </FindProvider>
      </div>
      {live && !tail && unseen > 0 && (
        <button
          type="button"
          className="button absolute bottom-4 left-1/2 -translate-x-1/2 shadow-lg"
          onClick={() => {
            pinnedRow.current = -1;
            setTail(true);
          }}
        >
          ↓ {formatCount(unseen)} new
        </button>
      )}
    </div>
  );
}
