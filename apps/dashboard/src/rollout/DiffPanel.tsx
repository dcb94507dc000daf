import type { RolloutDiff, RolloutHeader } from '@palestra/protocol';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useEffect, useMemo, useRef, useState } from 'react';
import { equalStart } from '../compare/pairing.ts';
import type { GroupMember } from '../data/groups.ts';
import { diffQuery, messagesAtQuery } from '../data/rollout.ts';
import { formatCount, formatReward } from '../format/number.ts';
import { Pill } from '../frame/NewsPill.tsx';
import { ErrorState, SkeletonRows } from '../frame/states.tsx';
import { PlainText } from '../text/PlainText.tsx';
import { TextDiff } from './TextDiff.tsx';

type Action = NonNullable<RolloutDiff['rows'][number]['a']>;

type DiffRow = RolloutDiff['rows'][number];

/** Pairs differing actions: what `a` did, and what `b` did instead. */
export function sideBySide(rows: readonly DiffRow[]): DiffRow[] {
  const paired: DiffRow[] = [];
  let block: DiffRow[] = [];
  const pairBlock = () => {
    const [left, right] = [block.flatMap(({ a }) => a ?? []), block.flatMap(({ b }) => b ?? [])];
    for (let i = 0; i < Math.max(left.length, right.length); i += 1) paired.push({ a: left[i] ?? null, b: right[i] ?? null, same: false });
    block = [];
  };
  for (const row of rows) {
    if (!row.same) block.push(row);
    else {
      pairBlock();
      paired.push(row);
    }
  }
  pairBlock();
  return paired;
}

/** Rows shown before and after the first divergence. A button shows the others. */
const CONTEXT_ROWS = 60;

function ActionCell({ action, same, go }: { action: Action | null; same: boolean; go: ((index: number) => void) | null }) {
  if (!action)
    return (
      <span className="cell h-full border-l-2 border-transparent">
        <span className="sr-only">No action</span>
      </span>
    );
  const text = (
    <>
      <span className={`mono truncate ${action.error ? 'text-policy' : same ? 'text-ink-2' : 'text-ink-1'}`}>
        {action.error && '▲ '}
        <PlainText text={action.kind === 'answer' ? 'answer' : (action.tool ?? 'tool')} />
      </span>
      <span className="flex-1 text-[11px] text-ink-2">#{action.index}</span>
      {action.reward !== null && <span className="num text-[11px]">{formatReward(action.reward)}</span>}
    </>
  );
  const className = `flex h-full min-w-0 items-center gap-2 border-l-2 px-2 text-left ${same ? 'border-transparent' : 'border-bad'}`;
  if (!go) return <span className={className}>{text}</span>;
  return (
    <button type="button" className={`${className} hover:bg-paper-2`} onClick={() => go(action.index)}>
      {text}
    </button>
  );
}

/** Texts of the first divergence: arguments or answers, then results. */
function Divergence({ rows, row, diff: { a: one, b: other } }: { rows: readonly DiffRow[]; row: number; diff: RolloutDiff }) {
  // If one rollout has an additional action here, compare it with the next action of the other.
  const a = rows.slice(row).find((candidate) => candidate.a)?.a ?? null;
  const b = rows.slice(row).find((candidate) => candidate.b)?.b ?? null;
  const left = useQuery({ ...messagesAtQuery(one.id, a?.index ?? 0, 2, one.num_messages), enabled: a !== null });
  const right = useQuery({ ...messagesAtQuery(other.id, b?.index ?? 0, 2, other.num_messages), enabled: b !== null });
  const text = (messages: typeof left.data, at: number) => messages?.[at]?.content ?? '';
  const returned = [left.data?.[1], right.data?.[1]].some((message) => message?.type === 'tool_result');
  if ((a && !left.data) || (b && !right.data)) return <SkeletonRows count={3} />;
  return (
    <div className="grid gap-2 border-b border-line px-3 py-2 text-[12px]" aria-label="Text of the first divergence">
      <p className="label">
        <del className="bg-bad-wash text-ink-1 decoration-bad">
          This rollout{a ? ` #${a.index} ${a.tool ?? 'answer'}` : ': no further action'}
        </del>{' '}
        <ins className="bg-good-wash text-ink-1 no-underline">
          The other{b ? ` #${b.index} ${b.tool ?? 'answer'}` : ': no further action'}
        </ins>
      </p>
      <TextDiff a={text(left.data, 0)} b={text(right.data, 0)} />
      {returned && (
        <div className="border-t border-dashed border-line-strong pt-2">
          <TextDiff a={text(left.data, 1)} b={text(right.data, 1)} />
        </div>
      )}
    </div>
  );
}

/** Actions of two rollouts side by side, aligned where tool and arguments are equal. Opens at the first divergence. */
export function DiffPanel({
  header,
  other,
  members,
  go,
  close,
}: {
  header: RolloutHeader;
  other: string;
  /** The current rollouts of the group. */
  members: readonly GroupMember[] | undefined;
  go: (index: number) => void;
  close: () => void;
}) {
  const currentCounts = [header.num_messages, members?.find(({ id }) => id === other)?.num_messages];
  // A comparison does not change while it is read; a pill offers new messages.
  const [counted, setCounted] = useState<readonly (number | undefined)[]>([]);
  const diff = useQuery(diffQuery(header.id, other, counted));
  const newMessages = [diff.data?.a, diff.data?.b].reduce(
    (sum, side, i) => sum + Math.max(0, (currentCounts[i] ?? 0) - (side?.num_messages ?? Infinity)),
    0,
  );
  const first = diff.data?.first_divergence ?? null;
  const [all, setAll] = useState(false);
  const scrolledFor = useRef('');
  useEffect(() => {
    if (!diff.data || scrolledFor.current === other) return;
    scrolledFor.current = other;
    const from = first === null ? [] : diff.data.rows.slice(first);
    const action = from.find(({ a }) => a)?.a ?? diff.data.rows.findLast(({ a }) => a)?.a;
    if (first !== null && action) go(action.index);
  }, [diff.data, other, first, go]);
  const rows = useMemo(() => sideBySide(diff.data?.rows ?? []), [diff.data]);
  const start = all ? 0 : Math.max(0, (first ?? 0) - CONTEXT_ROWS);
  const end = all ? rows.length : Math.min(rows.length, (first ?? 0) + CONTEXT_ROWS);
  return (
    <aside aria-label="Difference" className="grid min-h-0 grid-rows-[34px_minmax(0,1fr)] border-l border-line" data-screen-only>
      <div className="flex items-center gap-2 border-b border-line px-3">
        <h2 className="strong">Difference</h2>
        {diff.data && (
          <span className="label truncate">
            {equalStart(first)}, {formatCount(diff.data.same)} of {formatCount(rows.length)} in all
            {diff.data.truncated ? '; only the first 2 000 actions are compared' : ''}
          </span>
        )}
        <span className="flex-1" />
        {newMessages > 0 && (
          <Pill title="There are new messages. Click to compare again." onShow={() => setCounted(currentCounts)}>
            {formatCount(newMessages)} new
          </Pill>
        )}
        <button type="button" className="button" onClick={close}>
          Close <kbd>d</kbd>
        </button>
      </div>
      <div className="min-h-0 overflow-auto" tabIndex={0} role="region" aria-label="Actions of both, side by side">
        {diff.error && <ErrorState error={diff.error} retry={() => void diff.refetch()} />}
        {!diff.data && !diff.error && <SkeletonRows count={8} />}
        {diff.data && (
          <>
            <div className="sticky top-0 grid grid-cols-2 border-b border-line bg-paper-1 text-[12px]">
              <span className="px-2 py-1">
                This rollout <span className="num strong">{formatReward(diff.data.a.reward)}</span>
              </span>
              <Link to="/rollout/$id" params={{ id: other }} search={{ diff: header.id }} replace className="link px-2 py-1">
                Sample {diff.data.b.sample ?? '–'} <span className="num strong">{formatReward(diff.data.b.reward)}</span>
              </Link>
            </div>
            {start > 0 && (
              <button type="button" className="link px-3 py-1" onClick={() => setAll(true)}>
                Show {formatCount(start)} equal rows above
              </button>
            )}
            {rows.slice(start, end).map((row, i) => (
              <div key={start + i}>
                {start + i === first && (
                  <p className="border-b border-line px-3 py-1 text-[12px] text-bad" data-divergence>
                    First divergence
                  </p>
                )}
                <div className={`grid h-[26px] grid-cols-2 border-b border-line text-[12px] ${start + i === first ? 'bg-bad-wash' : ''}`}>
                  <ActionCell action={row.a} same={row.same} go={go} />
                  <ActionCell action={row.b} same={row.same} go={null} />
                </div>
                {start + i === first && <Divergence rows={rows} row={first} diff={diff.data} />}
              </div>
            ))}
            {end < rows.length && (
              <button type="button" className="link px-3 py-1" onClick={() => setAll(true)}>
                Show {formatCount(rows.length - end)} more rows
              </button>
            )}
          </>
        )}
      </div>
    </aside>
  );
}
