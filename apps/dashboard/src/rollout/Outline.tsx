import { useVirtualizer } from '@tanstack/react-virtual';
import { useEffect, useRef } from 'react';
import { formatReward } from '../format/number.ts';
import { isFinished, rewardOf, type TranscriptItem } from './transcript.ts';

const rowHeight = 22;

const roles: Record<string, [mark: string, label: string, className: string]> = {
  system_message: ['s', 'system', 'text-ink-3'],
  user_message: ['u', 'user', 'text-[var(--role-user)]'],
  assistant_message: ['a', 'assistant', 'text-ink-2'],
  reasoning: ['r', 'reasoning', 'text-ink-3'],
};

function describe(item: TranscriptItem): [mark: string, label: string, className: string] {
  if (item.kind === 'gap') return ['✕', `${item.to - item.from + 1} missing`, 'text-infrastructure'];
  if (item.kind === 'message') return roles[item.message.type]!;
  if (isFinished(item)) return ['●', item.call?.name ?? 'result', 'text-good'];
  return item.call ? ['T', item.call.name ?? 'tool', 'text-[var(--role-tool)]'] : ['T', 'result without call', 'text-policy'];
}

/** The minimap at the left: one line a row of the transcript, rewards at its right edge. */
export function Outline({ items, selected, select }: { items: TranscriptItem[]; selected: number; select: (row: number) => void }) {
  const scroller = useRef<HTMLElement>(null);
  const list = useVirtualizer({
    count: items.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => rowHeight,
    overscan: 10,
    paddingStart: 6,
    paddingEnd: 6,
  });
  useEffect(() => {
    if (selected >= 0) list.scrollToIndex(selected, { align: 'auto' });
  }, [list, selected]);
  return (
    <nav ref={scroller} aria-label="Outline" className="min-h-0 overflow-auto border-r border-line bg-paper-1 max-[760px]:hidden">
      <div className="relative" style={{ height: list.getTotalSize() }}>
        {list.getVirtualItems().map(({ index, start }) => {
          const item = items[index]!;
          const [mark, label, className] = describe(item);
          const reward = rewardOf(item);
          const on = index === selected;
          return (
            <button
              key={index}
              type="button"
              onClick={() => select(index)}
              aria-current={on ? 'true' : undefined}
              style={{ transform: `translateY(${start}px)` }}
              className={`absolute inset-x-0 top-0 grid h-[22px] grid-cols-[28px_14px_minmax(0,1fr)_auto] items-center gap-[6px] border-l-2 pl-1 pr-3 text-left text-[12px] hover:bg-paper-2 ${on ? 'border-accent bg-paper-2 text-ink-1' : 'border-transparent text-ink-2'}`}
            >
              <span className="num text-[11px] text-ink-3">{item.anchor}</span>
              <span aria-hidden="true" className={className}>
                {mark}
              </span>
              <span className={`truncate ${isFinished(item) ? 'strong' : ''}`}>{label}</span>
              {reward !== null && (
                <span className={`num text-[11px] ${reward > 0 ? 'text-good' : reward < 0 ? 'text-bad' : 'text-ink-3'}`}>
                  {formatReward(reward, { signed: true })}
                </span>
              )}
            </button>
          );
        })}
      </div>
    </nav>
  );
}
