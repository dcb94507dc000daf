import { useVirtualizer } from '@tanstack/react-virtual';
import { useEffect, useRef } from 'react';
import { Row } from './Row.tsx';
import type { TranscriptItem } from './transcript.ts';

interface TranscriptProps {
  items: TranscriptItem[];
  selected: number;
  decisive: number;
  /** Anchors of the rows whose folded parts are open. */
  opened: ReadonlySet<number>;
  toggle: (anchor: number) => void;
  select: (row: number) => void;
}

/** The transcript as a list of measured heights: only what is in view is in the page, however long the rollout is. */
export function Transcript({ items, selected, decisive, opened, toggle, select }: TranscriptProps) {
  const scroller = useRef<HTMLDivElement>(null);
  const list = useVirtualizer({
    count: items.length,
    getScrollElement: () => scroller.current,
    estimateSize: (index) => (items[index]!.kind === 'call' ? 130 : 70),
    getItemKey: (index) => items[index]!.anchor,
    overscan: 5,
    paddingStart: 8,
    paddingEnd: 120,
  });
  useEffect(() => {
    if (selected >= 0) list.scrollToIndex(selected, { align: 'auto' });
  }, [list, selected]);
  return (
    <div ref={scroller} className="min-h-0 overflow-auto" tabIndex={0} aria-label="Transcript, scrollable">
      <div role="feed" aria-label="Transcript" className="relative max-w-[980px]" style={{ height: list.getTotalSize() }}>
        {list.getVirtualItems().map(({ index, key, start }) => {
          const item = items[index]!;
          return (
            <article
              key={key}
              ref={list.measureElement}
              data-index={index}
              id={`m-${item.anchor}`}
              aria-posinset={index + 1}
              aria-setsize={items.length}
              aria-current={index === selected ? 'true' : undefined}
              onClick={() => index !== selected && getSelection()?.isCollapsed !== false && select(index)}
              className={`absolute inset-x-0 top-0 ${index === selected ? 'bg-paper-1' : ''}`}
              style={{ transform: `translateY(${start}px)` }}
            >
              <Row item={item} decisive={index === decisive} open={opened.has(item.anchor)} toggle={toggle} />
            </article>
          );
        })}
      </div>
    </div>
  );
}
