import type { HostingLogLine, LogSeverity } from '@palestra/protocol';
import { useVirtualizer } from '@tanstack/react-virtual';
import { type ReactNode, useEffect, useMemo, useRef } from 'react';
import type { Log } from '../data/hosting/log.ts';
import { plural } from '../format/number.ts';
import { formatClock } from '../format/time.ts';
import { PlainText } from '../text/PlainText.tsx';

const LINE_PX = 18;
/** Within this distance of the end a reader follows the log. */
const NEAR_END_PX = 40;

/** The letter is the second channel of the colour. */
const severities: Record<LogSeverity, readonly [letter: string, className: string]> = {
  debug: ['D', 'text-ink-3'],
  info: ['I', 'text-ink-1'],
  warning: ['W', 'text-policy'],
  error: ['E', 'text-infrastructure'],
};

export interface NumberedLine {
  line: HostingLogLine;
  /** In the whole log, from 1; null: not known. */
  number: number | null;
}

interface Props {
  label: string;
  log: Log;
  lines: readonly NumberedLine[];
  /** Number of the line that failed, which is highlighted. */
  failed?: number | null;
  /** Number of the line to scroll to; `at` makes a repeated jump another one. */
  jump?: { number: number; at: number } | null;
  /** Keeps the newest line in sight until the reader scrolls up. */
  follow: boolean;
  /** A column before the text. */
  source?: (line: HostingLogLine) => ReactNode;
  /** When there are no lines. */
  empty: ReactNode;
}

/** The lines of a log. Only visible lines are rendered. */
export function LogView({ label, log, lines, failed = null, jump = null, follow, source, empty }: Props) {
  const scroller = useRef<HTMLDivElement>(null);
  const isAtEnd = useRef(true);
  const virtual = useVirtualizer({
    count: lines.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => LINE_PX,
    overscan: 30,
    getItemKey: (index) => lines[index]!.line.seq,
  });
  useEffect(() => {
    if (follow && isAtEnd.current && lines.length > 0) virtual.scrollToIndex(lines.length - 1, { align: 'end' });
  }, [follow, lines.length, virtual]);
  const target = useMemo(() => (jump === null ? -1 : lines.findIndex(({ number }) => number === jump.number)), [jump, lines]);
  useEffect(() => {
    if (target === -1) return;
    isAtEnd.current = false;
    virtual.scrollToIndex(target, { align: 'center' });
  }, [jump, target, virtual]);
  const onScroll = () => {
    const { scrollHeight, scrollTop, clientHeight } = scroller.current!;
    isAtEnd.current = scrollHeight - scrollTop - clientHeight < NEAR_END_PX;
  };
  const width = String(lines.at(-1)?.number ?? '').length;
  return (
    <div
      ref={scroller}
      role="log"
      aria-label={label}
      aria-live="off"
      aria-busy={log.state === 'reading' ? 'true' : undefined}
      tabIndex={0}
      onScroll={onScroll}
      className="h-full min-h-0 overflow-auto bg-paper-1 py-1"
    >
      {log.error && <p className="px-4 py-2 font-sans text-bad">{log.error.message}</p>}
      {lines.length === 0 && !log.error && log.state !== 'reading' && <div className="px-4 py-2 text-ink-3">{empty}</div>}
      <div className="relative" style={{ height: virtual.getTotalSize() }}>
        {virtual.getVirtualItems().map((item) => {
          const { line, number } = lines[item.index]!;
          const isFailed = number !== null && number === failed;
          const [letter, className] = severities[line.severity];
          return (
            <div
              key={item.key}
              ref={virtual.measureElement}
              data-index={item.index}
              data-failed={isFailed || undefined}
              className={`mono absolute inset-x-0 flex min-h-[18px] gap-2 px-4 max-[560px]:gap-1 max-[560px]:px-2 ${
                isFailed ? 'border-l-2 border-infrastructure bg-bad-wash pl-[calc(1rem-2px)] max-[560px]:pl-[calc(0.5rem-2px)]' : ''
              }`}
              style={{ transform: `translateY(${item.start}px)` }}
            >
              {number !== null && (
                <span className="num flex-none text-ink-3 select-none" style={{ width: `${width}ch` }}>
                  {number}
                </span>
              )}
              <time className="flex-none text-ink-3 select-none max-[560px]:hidden" dateTime={line.at} title={line.at}>
                {formatClock(line.at)}
              </time>
              {source && <span className="flex-none text-ink-3 max-[560px]:hidden">{source(line)}</span>}
              <span className={`flex-none select-none ${className}`} title={line.severity}>
                <span aria-hidden="true">{letter}</span>
                <span className="sr-only">{line.severity}</span>
              </span>
              <span
                className={`min-w-0 flex-1 whitespace-pre-wrap [overflow-wrap:anywhere] ${line.stream === 'palestra' ? 'text-ink-2 italic' : className}`}
              >
                {isFailed && <span className="sr-only">The line that failed: </span>}
                <PlainText text={line.text} />
              </span>
            </div>
          );
        })}
      </div>
    </div>
  );
}

/** How many lines there are, and whether more arrive. */
export function LogStatus({ log, shown }: { log: Log; shown: number }) {
  const total = log.first + log.lines.length - 1;
  const count = shown === log.lines.length ? plural(total, 'line') : `${shown} of ${plural(total, 'line')}`;
  return (
    <span className="label flex items-center gap-2" role="status">
      {count}
      {log.first > 1 && ', the newest are shown'}
      {log.state === 'following' && (
        <span className="flex items-center gap-[6px]">
          <span className="live-dot" aria-hidden="true" />
          Live
        </span>
      )}
      {log.state === 'interrupted' && 'Reconnecting…'}
    </span>
  );
}
