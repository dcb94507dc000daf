import { useVirtualizer } from '@tanstack/react-virtual';
import { Link } from '@tanstack/react-router';
import { useEffect, useRef, useState } from 'react';
import type { GroupMember } from '../data/groups.ts';
import { formatReward, plural } from '../format/number.ts';
import { PartialSum } from '../frame/PartialSum.tsx';
import { RewardDot } from '../frame/Reward.tsx';
import { Stop } from '../frame/Stop.tsx';
import type { RowSelection } from '../table/DataTable.tsx';
import { PlainText } from '../text/PlainText.tsx';
import type { Board, Cell } from './align.ts';
import { summaryOf, useLaneTexts } from './lane-texts.ts';

const LANE_PX = 280;
const NUMBER_PX = 48;
const HEAD_PX = 58;
const ROW_PX = 52;
const BANNER_PX = 26;
interface LanesProps {
  members: readonly GroupMember[];
  board: Board;
  /** The current column. */
  lane: number;
  setLane: (lane: number) => void;
  best: string | undefined;
  solved: (reward: number) => boolean;
  show: (member: GroupMember, cell: Cell, row: number) => void;
  /** Adds a checkbox to each lane. */
  selection?: RowSelection;
}

/** The samples as lanes side by side, with rows aligned by action. Actions that equal those of the best sample are dimmed. */
export function Lanes({ members, board, lane, setLane, best, solved, show, selection }: LanesProps) {
  const scroller = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(1080);
  useEffect(() => {
    const observer = new ResizeObserver(() => setWidth(scroller.current!.clientWidth));
    observer.observe(scroller.current!);
    return () => observer.disconnect();
  }, []);
  const lanePx = Math.max(LANE_PX, Math.floor((width - NUMBER_PX) / members.length));
  const { rows, firstDivergence, partsAt } = board;
  const columns = useVirtualizer({
    horizontal: true,
    count: members.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => lanePx,
    paddingStart: NUMBER_PX,
    scrollPaddingStart: NUMBER_PX,
    overscan: 1,
  });
  const list = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: (row) => ROW_PX + (row === firstDivergence ? BANNER_PX : 0),
    paddingStart: HEAD_PX,
    scrollPaddingStart: HEAD_PX,
    overscan: 4,
  });
  // Estimated sizes change with the window and with new data.
  useEffect(() => columns.measure(), [columns, lanePx]);
  useEffect(() => list.measure(), [list, firstDivergence]);
  useEffect(() => columns.scrollToIndex(lane, { align: 'auto' }), [columns, lane]);
  const shown = columns.getVirtualItems();
  const inView = list.getVirtualItems();
  const indexes = inView.flatMap(({ index }) => rows[index]!.cells.flatMap((cell) => (cell ? [cell.action.index] : [])));
  const texts = useLaneTexts(
    shown.map(({ index }) => members[index]!),
    indexes.length === 0 ? 0 : Math.min(...indexes),
  );
  const total = columns.getTotalSize();
  const parted = partsAt.filter((at) => at !== null).length;
  const parting = partsAt.filter((at) => at !== null && at === firstDivergence).length;
  return (
    <div ref={scroller} className="min-h-0 flex-1 overflow-auto" tabIndex={0} role="region" aria-label="Samples side by side">
      <div
        role="table"
        aria-label="Samples side by side"
        aria-colcount={members.length}
        aria-rowcount={rows.length + 1}
        className="relative"
        style={{ width: total, height: list.getTotalSize() }}
      >
        <div role="row" className="sticky top-0 z-10 border-b border-line bg-paper-0" style={{ height: HEAD_PX, width: total }}>
          <div role="columnheader" className="sticky left-0 z-10 h-full border-r border-line bg-paper-1" style={{ width: NUMBER_PX }}>
            <span className="sr-only">Action</span>
          </div>
          {shown.map(({ index, start }) => (
            <LaneHead
              key={members[index]!.id}
              member={members[index]!}
              column={index}
              {...{ start, lanePx, solved }}
              current={index === lane}
              best={members[index]!.id === best}
              choose={() => setLane(index)}
              {...(selection && {
                isChosen: selection.has(members[index]!.id),
                toggle: (extend) => selection.toggle(members[index]!.id, extend),
              })}
            />
          ))}
        </div>
        {inView.map(({ index: row, start }) => (
          <div
            key={row}
            role="row"
            aria-rowindex={row + 2}
            className="absolute left-0 top-0"
            style={{ width: total, transform: `translateY(${start}px)` }}
          >
            {row === firstDivergence && (
              <p
                className="sticky left-0 border-b border-line bg-paper-0 pl-4 text-[12px] text-bad"
                style={{ height: BANNER_PX, lineHeight: `${BANNER_PX}px`, width: Math.min(width, total) }}
                data-divergence
              >
                First divergence · {parted} of {members.length} samples diverge from the best, {parting} of them here
              </p>
            )}
            <div className="relative border-b border-line" style={{ height: ROW_PX }}>
              <div
                role="rowheader"
                className="label sticky left-0 z-[5] h-full border-r border-line bg-paper-1 pr-3 pt-2 text-right tabular-nums"
                style={{ width: NUMBER_PX }}
              >
                {row + 1}
              </div>
              {shown.map(({ index, start: left }, i) => (
                <LaneCell
                  key={members[index]!.id}
                  cell={rows[row]!.cells[index] ?? null}
                  {...{ left, lanePx }}
                  parts={partsAt[index] === row}
                  text={rows[row]!.cells[index] ? summaryOf(rows[row]!.cells[index]!.action, texts[i]) : ''}
                  open={() => show(members[index]!, rows[row]!.cells[index]!, row)}
                />
              ))}
            </div>
          </div>
        ))}
      </div>
    </div>
  );
}

function LaneHead({
  member,
  column,
  start,
  lanePx,
  current,
  best,
  solved,
  choose,
  isChosen,
  toggle,
}: {
  member: GroupMember;
  column: number;
  start: number;
  lanePx: number;
  current: boolean;
  best: boolean;
  solved: (reward: number) => boolean;
  choose: () => void;
  isChosen?: boolean;
  toggle?: (extend: boolean) => void;
}) {
  const { reward } = member;
  const tone = reward === null ? 'text-ink-3' : solved(reward) ? 'text-good' : reward > 0 ? '' : 'text-bad';
  return (
    <div
      role="columnheader"
      aria-colindex={column + 1}
      aria-current={current ? 'true' : undefined}
      onClick={choose}
      className={`absolute top-0 h-full border-r border-line px-3 py-2 ${current ? 'bg-paper-1 shadow-[inset_0_2px_0_var(--accent)]' : 'bg-paper-0'}`}
      style={{ left: start, width: lanePx }}
    >
      <div className="flex items-baseline gap-[10px] whitespace-nowrap">
        {toggle && (
          <input
            type="checkbox"
            className="self-center accent-accent"
            aria-label={`Select sample ${member.sample ?? column}`}
            checked={isChosen ?? false}
            onClick={(event) => event.stopPropagation()}
            onChange={(event) => toggle((event.nativeEvent as unknown as { shiftKey?: boolean }).shiftKey === true)}
          />
        )}
        <Link to="/rollout/$id" params={{ id: member.id }} search={{}} preload={false} className="link">
          #{member.sample ?? column}
        </Link>
        <span className={`text-[15px] leading-[20px] strong tabular-nums ${tone}`}>{formatReward(reward)}</span>
        <RewardDot reward={reward} solved={solved} />
        <PartialSum rollout={member} />
        <span className="label">Adv</span>
        <span
          className="tabular-nums"
          title={`(r − mean) / (std + 1e-6); centred ${formatReward(member.advantage_centred, { signed: true })}`}
          data-advantage={member.advantage ?? ''}
        >
          {formatReward(member.advantage, { signed: true })}
        </span>
        {best && <span className="chip text-good">Best</span>}
      </div>
      <div className="label flex gap-2 truncate">
        <Stop stop={member.stop} /> · {plural(member.turns, 'turn')}
        {member.num_errors > 0 && <span className="text-policy">▲ {plural(member.num_errors, 'error')}</span>}
        {member.failure_class !== null && <span className="text-infrastructure">✕ {member.failure_class}, unscored</span>}
      </div>
    </div>
  );
}

function LaneCell({
  cell,
  left,
  lanePx,
  parts,
  text,
  open,
}: {
  cell: Cell | null;
  left: number;
  lanePx: number;
  parts: boolean;
  text: string;
  open: () => void;
}) {
  const position = { left, width: lanePx };
  const edge = parts ? 'border-l-2 border-l-bad' : 'border-l-2 border-l-transparent';
  if (!cell)
    return (
      <div role="cell" className={`absolute top-0 h-full border-r border-line ${edge} ${parts ? 'bg-bad-wash' : ''}`} style={position}>
        {parts && <span className="label px-[10px]">No action here</span>}
      </div>
    );
  const { action, same } = cell;
  const dim = same;
  const tone = action.error ? 'text-policy' : dim ? 'text-ink-3' : 'text-[var(--role-tool)]';
  return (
    <div role="cell" className={`absolute top-0 h-full border-r border-line ${edge} ${parts ? 'bg-bad-wash' : ''}`} style={position}>
      <button type="button" onClick={open} className="block h-full w-full px-[10px] py-[6px] text-left hover:bg-paper-2">
        <span className="flex items-baseline gap-2">
          <span className={`mono truncate ${tone}`}>
            {action.error && '▲ '}
            <PlainText text={action.kind === 'answer' ? 'answer' : (action.tool ?? 'tool')} />
          </span>
          <span className="flex-1" />
          {action.reward !== null && (
            <span
              className={`num text-[12px] ${action.reward > 0 ? 'strong text-good' : action.reward < 0 ? 'strong text-bad' : 'text-ink-3'}`}
            >
              {formatReward(action.reward)}
            </span>
          )}
        </span>
        <span className={`mono block truncate ${dim ? 'text-ink-3' : 'text-ink-2'}`}>
          <PlainText text={text} />
        </span>
        <span className="sr-only">
          , message {action.index}
          {!same && ', differs from the best sample'}
        </span>
      </button>
    </div>
  );
}
