import type { RolloutOutline } from '@palestra/protocol';
import { useVirtualizer } from '@tanstack/react-virtual';
import { useEffect, useRef } from 'react';
import { formatReward } from '../format/number.ts';
import { PlainText } from '../text/PlainText.tsx';
import { Minimap } from './Minimap.tsx';
import { errorOf, nameAt, OUTLINE_NUDGE, rewardOf, type TranscriptItem } from './transcript.ts';

const ROW_PX = 22;

const roles: Record<string, readonly [mark: string, label: string, className: string]> = {
  system_message: ['s', 'System', 'text-ink-3'],
  user_message: ['u', 'User', 'text-[var(--role-user)]'],
  assistant_message: ['a', 'Assistant', 'text-ink-2'],
  reasoning: ['r', 'Reasoning', 'text-ink-3'],
};

interface PaneProps {
  outline: RolloutOutline;
  items: readonly TranscriptItem[];
  selected: number;
  decisive: number;
  /** Failure classes of the ledger, by message index. */
  failures: ReadonlyMap<number, string>;
  select: (row: number) => void;
}

const failureMarks: Record<string, readonly [mark: string, className: string]> = {
  environment: ['◆', 'text-environment'],
  infrastructure: ['✕', 'text-infrastructure'],
};

function describe({ outline, decisive, failures }: PaneProps, item: TranscriptItem, row: number): readonly [string, string, string] {
  if (item.kind === 'gap') return ['✕', `${item.to - item.from + 1} missing`, 'text-infrastructure'];
  const error = errorOf(outline, item);
  if (item.kind === 'message') {
    const known = roles[item.type] ?? ['·', item.type, 'text-ink-3'];
    return error & OUTLINE_NUDGE ? ['u', 'Nudge', 'text-ink-3'] : known;
  }
  const name = nameAt(outline, item.call) ?? (item.call === null ? 'Result without a call' : 'tool');
  const failure = failures.get(item.anchor);
  if (failure !== undefined && failureMarks[failure]) return [failureMarks[failure][0], name, failureMarks[failure][1]];
  if (error !== 0 || item.call === null || item.result === null) return ['▲', name, 'text-policy'];
  return row === decisive ? ['●', name, 'text-good'] : ['T', name, 'text-[var(--role-tool)]'];
}

/** The outline at the left: a minimap, and one line per row with its reward. */
export function OutlinePane(props: PaneProps) {
  const { outline, items, selected, decisive, select } = props;
  const scroller = useRef<HTMLDivElement>(null);
  const list = useVirtualizer({
    count: items.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW_PX,
    overscan: 10,
    paddingStart: 6,
    paddingEnd: 6,
  });
  useEffect(() => {
    if (selected >= 0) list.scrollToIndex(selected, { align: 'auto' });
  }, [list, selected]);
  return (
    <nav
      aria-label="Outline"
      className="grid min-h-0 grid-cols-[14px_minmax(0,1fr)] border-r border-line bg-paper-1 max-[760px]:hidden"
      data-screen-only
    >
      <Minimap outline={outline} items={items} selected={selected} decisive={decisive} failures={props.failures} select={select} />
      <div ref={scroller} className="min-h-0 overflow-auto">
        <div className="relative" style={{ height: list.getTotalSize() }}>
          {list.getVirtualItems().map(({ index: row, start }) => {
            const item = items[row]!;
            const [mark, label, className] = describe(props, item, row);
            const reward = rewardOf(outline, item);
            const on = row === selected;
            return (
              <button
                key={row}
                type="button"
                tabIndex={on || (selected < 0 && row === 0) ? 0 : -1}
                onClick={() => select(row)}
                aria-current={on ? 'true' : undefined}
                style={{ transform: `translateY(${start}px)`, height: ROW_PX }}
                className={`absolute inset-x-0 top-0 grid grid-cols-[30px_14px_minmax(0,1fr)_auto] items-center gap-[6px] border-l-2 pl-1 pr-2 text-left text-[12px] hover:bg-paper-2 ${on ? 'border-accent bg-paper-2 text-ink-1' : 'border-transparent text-ink-2'}`}
              >
                <span className="num text-[11px] text-ink-3">{item.anchor}</span>
                <span aria-hidden="true" className={className}>
                  {mark}
                </span>
                <span className={`truncate ${row === decisive ? 'strong' : ''}`}>
                  <PlainText text={label} />
                </span>
                {reward !== null && (
                  <span className={`num text-[11px] ${reward > 0 ? 'text-good' : reward < 0 ? 'text-bad' : 'text-ink-3'}`}>
                    {formatReward(reward)}
                  </span>
                )}
              </button>
            );
          })}
        </div>
      </div>
    </nav>
  );
}
