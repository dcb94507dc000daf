import { useVirtualizer } from '@tanstack/react-virtual';
import { useMemo, useRef } from 'react';
import type { GroupMember } from '../data/groups.ts';
import { formatReward, plural } from '../format/number.ts';
import { RewardDot } from '../frame/Reward.tsx';
import { PlainText } from '../text/PlainText.tsx';
import { ANSWER, type Board, type Cell, glyphsOf } from './align.ts';

const CELL_PX = 20;
/** Width of a cell where there is space: it shows the name of the tool. */
const NAMED_PX = 132;
const NUMBER_PX = 48;
const HEAD_PX = 96;
const BANNER_PX = 24;

interface MatrixProps {
  members: readonly GroupMember[];
  board: Board;
  lane: number;
  setLane: (lane: number) => void;
  /** Opens the lanes view at this lane. */
  openLane: (lane: number) => void;
  best: string | undefined;
  solved: (reward: number) => boolean;
}

/** All samples: rows are actions, columns are samples, and a letter stands for a tool. Actions that equal the best sample's are grey. */
export function Matrix({ members, board, lane, setLane, openLane, best, solved }: MatrixProps) {
  const scroller = useRef<HTMLDivElement>(null);
  const { rows, firstDivergence, partsAt } = board;
  const glyphs = useMemo(() => {
    const tools = rows.flatMap(({ cells }) => cells.flatMap((cell) => cell?.action.tool ?? []));
    return glyphsOf([...new Set(tools)]);
  }, [rows]);
  const answers = useMemo(() => rows.some(({ cells }) => cells.some((cell) => cell?.action.kind === 'answer')), [rows]);
  const list = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: (row) => CELL_PX + (row === firstDivergence ? BANNER_PX : 0),
    getItemKey: (row) => `${row}:${row === firstDivergence}`,
    paddingStart: HEAD_PX,
    overscan: 4,
  });
  const largest = Math.max(1e-9, ...members.map(({ advantage }) => Math.abs(advantage ?? 0)));
  const template = `${NUMBER_PX}px repeat(${members.length}, minmax(${CELL_PX}px, ${NAMED_PX}px))`;
  return (
    <div className="flex min-h-0 flex-1 flex-col">
      <p
        className="flex min-h-[30px] flex-none flex-wrap items-center gap-x-4 border-b border-line px-4 text-[12px] text-ink-2"
        aria-label="Legend"
      >
        {[...glyphs].map(([tool, glyph]) => (
          <span key={tool} className="max-w-full truncate">
            <span className="mono strong text-ink-1">{glyph}</span> <PlainText text={tool} />
          </span>
        ))}
        {answers && (
          <span>
            <span className="mono strong text-ink-1">{ANSWER}</span> Answer
          </span>
        )}
        <span className="label">
          Grey: same as the best sample · black: different ·{' '}
          <span className="bg-bad-wash px-1 text-ink-1">shaded: diverges from the best</span> ·{' '}
          <span className="text-policy underline decoration-dotted">dotted: failed</span> · underlined: reward
        </span>
      </p>
      <div ref={scroller} className="min-h-0 flex-1 overflow-auto" tabIndex={0} role="region" aria-label="Actions of all samples">
        <div
          role="table"
          aria-label="Actions of all samples"
          aria-colcount={members.length}
          aria-rowcount={rows.length + 1}
          className="relative"
          style={{ height: list.getTotalSize(), minWidth: NUMBER_PX + members.length * CELL_PX }}
        >
          <div
            role="row"
            className="sticky top-0 z-10 grid border-b border-line bg-paper-0"
            style={{ gridTemplateColumns: template, height: HEAD_PX }}
          >
            <div
              role="columnheader"
              className="label sticky left-0 flex flex-col items-end justify-end gap-[3px] border-r border-line bg-paper-1 pb-1 pr-2"
            >
              <span className="flex flex-1 items-center">Adv</span>
              <span>Reward</span>
              <span>Sample</span>
            </div>
            {members.map((member, column) => (
              <Head
                key={member.id}
                {...{ member, column, largest, solved }}
                current={column === lane}
                best={member.id === best}
                choose={() => setLane(column)}
                open={() => openLane(column)}
              />
            ))}
          </div>
          {list.getVirtualItems().map(({ index: row, start }) => (
            <div
              key={row}
              role="row"
              aria-rowindex={row + 2}
              className="absolute inset-x-0 top-0"
              style={{ transform: `translateY(${start}px)` }}
            >
              {row === firstDivergence && (
                <p
                  className="sticky left-0 w-max border-y border-line pl-4 pr-4 text-[12px] text-bad"
                  style={{ height: BANNER_PX, lineHeight: `${BANNER_PX - 2}px` }}
                  data-divergence
                >
                  First divergence
                </p>
              )}
              <div className="grid" style={{ gridTemplateColumns: template, height: CELL_PX }}>
                <div
                  role="rowheader"
                  className="label sticky left-0 z-[5] border-r border-line bg-paper-1 pr-2 text-right leading-[20px] tabular-nums"
                >
                  {row + 1}
                </div>
                {rows[row]!.cells.map((cell, column) => (
                  <Glyph key={column} cell={cell} glyph={glyphOf(cell, glyphs)} parts={partsAt[column] === row} current={column === lane} />
                ))}
              </div>
            </div>
          ))}
        </div>
      </div>
    </div>
  );
}

const glyphOf = (cell: Cell | null, glyphs: ReadonlyMap<string, string>): string =>
  cell === null ? '' : cell.action.kind === 'answer' ? ANSWER : (glyphs.get(cell.action.tool ?? '') ?? '?');

function Head({
  member,
  column,
  largest,
  current,
  best,
  solved,
  choose,
  open,
}: {
  member: GroupMember;
  column: number;
  largest: number;
  current: boolean;
  best: boolean;
  solved: (reward: number) => boolean;
  choose: () => void;
  open: () => void;
}) {
  const { reward, advantage, sample } = member;
  const share = Math.abs(advantage ?? 0) / largest;
  const words = `Sample ${sample ?? column}${best ? ', the best' : ''}: reward ${formatReward(reward)}${member.partial_reward === null ? '' : ` (partial sum ${formatReward(member.partial_reward)})`}, advantage ${formatReward(advantage, { signed: true })}, ${member.stop ?? 'stop unknown'}, ${plural(member.turns, 'turn')}`;
  return (
    <div
      role="columnheader"
      aria-colindex={column + 1}
      aria-current={current ? 'true' : undefined}
      className={current ? 'bg-accent-wash' : ''}
    >
      <button
        type="button"
        title={words}
        aria-label={words}
        onClick={choose}
        onDoubleClick={open}
        className="flex h-full w-full flex-col items-center justify-end gap-[3px] pb-1 hover:bg-paper-2"
        data-advantage={advantage ?? ''}
      >
        <span className="relative w-[8px] flex-1 border-b border-transparent" aria-hidden="true">
          <span className="absolute inset-x-[-6px] top-1/2 border-t border-line" />
          <span
            className={`absolute inset-x-0 ${(advantage ?? 0) < 0 ? 'top-1/2 bg-bad' : 'bottom-1/2 bg-good'}`}
            style={{ height: `${share * 46}%` }}
          />
        </span>
        <RewardDot reward={reward} solved={solved} />
        <span className={`text-[10px] leading-[14px] tabular-nums ${best ? 'strong text-good' : 'text-ink-3'}`}>{sample ?? column}</span>
      </button>
    </div>
  );
}

function Glyph({ cell, glyph, parts, current }: { cell: Cell | null; glyph: string; parts: boolean; current: boolean }) {
  const under = parts ? 'bg-bad-wash' : current ? 'bg-accent-wash' : '';
  const tone = !cell
    ? ''
    : cell.action.error
      ? 'text-policy underline decoration-dotted underline-offset-2'
      : cell.same
        ? 'text-ink-3'
        : 'text-ink-1';
  const scored = cell?.action.reward ? (cell.action.reward > 0 ? 'strong border-b-2 border-b-good' : 'strong border-b-2 border-b-bad') : '';
  const name = !cell ? '' : cell.action.kind === 'answer' ? 'answer' : (cell.action.tool ?? '?');
  const title = cell
    ? `${name} #${cell.action.index}${cell.action.reward === null ? '' : `, reward ${formatReward(cell.action.reward)}`}${cell.action.error ? ', failed' : ''}`
    : undefined;
  return (
    <span
      role="cell"
      title={title}
      className={`@container mono block text-center leading-[20px] ${under} ${tone} ${scored} ${parts ? 'shadow-[inset_2px_0_0_var(--bad)]' : ''}`}
    >
      <span className="@min-[72px]:hidden">{glyph}</span>
      <span className="hidden truncate px-2 text-left @min-[72px]:block">
        <PlainText text={name} />
      </span>
    </span>
  );
}
