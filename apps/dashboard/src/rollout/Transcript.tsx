import type { RolloutOutline } from '@palestra/protocol';
import { useVirtualizer } from '@tanstack/react-virtual';
import { type KeyboardEvent, type Ref, useCallback, useEffect, useImperativeHandle, useLayoutEffect, useRef, useState } from 'react';
import { useTranscriptPages } from '../data/transcript-pages.ts';
import { formatCount } from '../format/number.ts';
import type { Openness } from './context.ts';
import { highlight } from './highlight.ts';
import { Row } from './Row.tsx';
import { rowFacts, rowKey } from './rows.ts';
import { estimateHeight, nameAt, positionsOf, type TranscriptItem } from './transcript.ts';

const OVERSCAN = 5;
/** Nearer to the end than this the reader is at the end, px. */
const NEAR_END = 48;
/** Keys with which a reader scrolls by hand. */
const SCROLL_KEYS = new Set(['ArrowUp', 'ArrowDown', 'PageUp', 'PageDown', 'Home', 'End', ' ']);
const UP_KEYS = new Set(['ArrowUp', 'PageUp', 'Home']);

export interface TranscriptHandle {
  /** Puts the row at the top and holds it there while heights above and below are still measured. */
  land: (row: number) => void;
  /** The same, but a row that is wholly in view stays where it is. */
  reveal: (row: number) => void;
}

interface TranscriptProps {
  id: string;
  outline: RolloutOutline;
  items: readonly TranscriptItem[];
  selected: number;
  decisive: number;
  openness: (item: TranscriptItem) => Openness;
  toggle: (anchor: number) => void;
  select: (row: number) => void;
  /** Follows what comes at the end. */
  tail: boolean;
  setTail: (tail: boolean) => void;
  live: boolean;
  find: string;
  handle: Ref<TranscriptHandle>;
}

const labelOf = (outline: RolloutOutline, item: TranscriptItem): string => {
  if (item.kind === 'gap') return `Missing messages ${item.from} to ${item.to}`;
  if (item.kind === 'message') return `${item.type.replace('_message', '')}, message ${item.anchor}`;
  return `${nameAt(outline, item.call) ?? 'result without a call'}, message ${item.anchor}`;
};

/** The transcript as a list of measured heights: only what is in view is in the page, however long the rollout is. */
export function Transcript(props: TranscriptProps) {
  const { id, outline, items, selected, decisive, openness, toggle, select, tail, setTail, live, find, handle } = props;
  const scroller = useRef<HTMLDivElement>(null);
  /** The row that stays at the top until the reader scrolls. */
  const held = useRef(-1);
  const list = useVirtualizer({
    count: items.length,
    getScrollElement: () => scroller.current,
    estimateSize: (row) => estimateHeight(outline, items[row]!),
    getItemKey: (row) => rowKey(items[row]!),
    // The first render makes the rows that will be in view, where a link leads as far as estimates go.
    initialRect: { width: innerWidth, height: innerHeight },
    initialOffset: () => items.slice(0, Math.max(0, selected)).reduce((sum, item) => sum + estimateHeight(outline, item), 0),
    overscan: OVERSCAN,
    paddingStart: 8,
    paddingEnd: 120,
  });
  const rows = list.getVirtualItems();
  const [first, last] = positionsOf(items, rows[0]?.index ?? 0, rows.at(-1)?.index ?? 0);
  const messageAt = useTranscriptPages(id, outline, first, last);

  const settle = useCallback(() => {
    const element = scroller.current;
    if (!element) return;
    if (tail) element.scrollTop = element.scrollHeight;
    else if (held.current >= 0) {
      const offset = list.getOffsetForIndex(held.current, 'start')?.[0];
      if (offset !== undefined && Math.abs(element.scrollTop - offset) > 1) element.scrollTop = offset;
    }
  }, [list, tail]);
  // After every measurement: what the reader came for stays where it is.
  useLayoutEffect(settle);
  useImperativeHandle(handle, () => {
    const land = (row: number) => {
      held.current = row;
      list.scrollToIndex(row, { align: 'start' });
    };
    const reveal = (row: number) => {
      const element = scroller.current;
      const box = element?.querySelector(`[data-row="${row}"]`)?.getBoundingClientRect();
      const view = element?.getBoundingClientRect();
      if (box && view && box.top >= view.top && box.bottom <= view.bottom) held.current = -1;
      else land(row);
    };
    return { land, reveal };
  }, [list]);
  useEffect(() => highlight(scroller.current, find));

  const release = (up: boolean) => {
    held.current = -1;
    if (up && tail) setTail(false);
  };
  const onKeyDown = (event: KeyboardEvent) => SCROLL_KEYS.has(event.key) && release(UP_KEYS.has(event.key) || event.shiftKey);
  const [seen, setSeen] = useState(items.length);
  const onScroll = () => {
    const { scrollHeight, scrollTop, clientHeight } = scroller.current!;
    if (scrollHeight - scrollTop - clientHeight > NEAR_END) return;
    if (seen !== items.length) setSeen(items.length);
    if (live && !tail && held.current < 0) setTail(true);
  };
  const unseen = items.length - seen;
  return (
    <div className="relative grid min-h-0 min-w-0">
      <div
        ref={scroller}
        className="min-h-0 overflow-auto [overflow-anchor:none]"
        tabIndex={0}
        role="region"
        aria-label="Transcript, scrollable"
        onWheel={(event) => release(event.deltaY < 0)}
        onTouchMove={() => release(true)}
        onPointerDown={(event) => event.target === event.currentTarget && release(true)}
        onKeyDown={onKeyDown}
        onScroll={onScroll}
      >
        <div role="feed" aria-label="Transcript" className="relative max-w-[1040px]" style={{ height: list.getTotalSize() }}>
          {rows.map(({ index: row, key, start }) => {
            const item = items[row]!;
            const { call, result, facts } = rowFacts(outline, item);
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
                  {...facts}
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
      </div>
      {live && !tail && unseen > 0 && (
        <button
          type="button"
          className="button absolute bottom-4 left-1/2 -translate-x-1/2 shadow-lg"
          onClick={() => {
            held.current = -1;
            setTail(true);
          }}
        >
          ↓ {formatCount(unseen)} new
        </button>
      )}
    </div>
  );
}
