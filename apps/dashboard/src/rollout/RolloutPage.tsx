import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { Link, useNavigate, useParams } from '@tanstack/react-router';
import type { RolloutRow, RolloutView } from '@palestra/protocol';
import { type ReactNode, useCallback, useEffect, useMemo, useState } from 'react';
import { rolloutQuery, rolloutsQuery } from '../data/queries.ts';
import { formatCount, formatReward, UNKNOWN } from '../format/number.ts';
import { Age } from '../frame/Age.tsx';
import { useKeys } from '../frame/keyboard.ts';
import { Crumb, Slash, TopBar } from '../frame/page.tsx';
import { RewardDot } from '../frame/Reward.tsx';
import { ErrorState, SkeletonRows } from '../frame/states.tsx';
import { Stop } from '../frame/Stop.tsx';
import { successThreshold } from '../format/success.ts';
import { taskLabel } from '../format/task.ts';
import { Outline } from './Outline.tsx';
import { SidePanel } from './SidePanel.tsx';
import { buildTranscript, decisiveIndex, rewardOf, rowOfMessage } from './transcript.ts';
import { Transcript } from './Transcript.tsx';

function Figure({ label, children }: { label: string; children: ReactNode }) {
  return (
    <span className="flex items-baseline gap-2 whitespace-nowrap">
      <span className="label">{label}</span>
      <span className="tabular-nums strong">{children}</span>
    </span>
  );
}

function Header({ rollout, solved }: { rollout: RolloutView; solved: (reward: number) => boolean }) {
  const { reward } = rollout;
  return (
    <div className="flex h-[40px] flex-none items-center gap-[18px] overflow-x-auto border-b border-line px-4">
      <Figure label="reward">
        <span
          className={`inline-flex items-center gap-[6px] ${reward === null ? 'text-ink-3' : solved(reward) ? 'text-good' : reward > 0 ? '' : 'text-bad'}`}
        >
          {formatReward(reward)} <RewardDot reward={reward} solved={solved} />
        </span>
      </Figure>
      <Figure label="stop">
        <Stop stop={rollout.stop} />
      </Figure>
      <Figure label="turns">{formatCount(rollout.turns)}</Figure>
      <Figure label="calls">{formatCount(rollout.num_tool_calls)}</Figure>
      <Figure label="messages">{formatCount(rollout.num_messages)}</Figure>
      <Figure label="step">{rollout.step ?? UNKNOWN}</Figure>
      {rollout.state === 'live' && (
        <span className="flex items-center gap-[10px] text-ink-2">
          <span className="live-dot" /> live
        </span>
      )}
      {rollout.missing_indexes.length > 0 && (
        <span className="chip text-infrastructure">✕ {formatCount(rollout.missing_indexes.length)} missing</span>
      )}
      <span className="flex-1" />
      <span className="label whitespace-nowrap">
        {rollout.environment ?? 'no environment named'} · <Age iso={rollout.created_at} />
      </span>
    </div>
  );
}

function useSiblings(rollout: RolloutView | undefined): RolloutRow[] {
  const pages = useInfiniteQuery({ ...rolloutsQuery(rollout?.run.id ?? ''), enabled: rollout !== undefined });
  return useMemo(() => pages.data?.pages.flatMap((page) => page.rollouts) ?? [], [pages.data]);
}

const anchorOfHash = (): number | null => {
  const match = /^#m-(\d+)$/.exec(location.hash);
  return match ? Number(match[1]) : null;
};

/** The transcript with its selection: the selected row is the URL's `#m-<index>`, so that a link always names what is read. */
function Reader({ rollout, rows }: { rollout: RolloutView; rows: RolloutRow[] }) {
  const navigate = useNavigate();
  const items = useMemo(() => buildTranscript(rollout.messages, rollout.missing_indexes), [rollout]);
  const decisive = useMemo(() => decisiveIndex(items), [items]);
  const { solved } = useMemo(() => successThreshold(rows), [rows]);
  const [selected, setSelected] = useState(() => rowOfMessage(items, anchorOfHash() ?? -1));
  const [opened, setOpened] = useState<ReadonlySet<number>>(new Set());

  const select = useCallback(
    (row: number) => {
      const item = items[row];
      if (!item) return;
      setSelected(row);
      history.replaceState(history.state, '', `#m-${item.anchor}`);
    },
    [items],
  );
  useEffect(() => {
    const follow = () => setSelected(rowOfMessage(items, anchorOfHash() ?? -1));
    addEventListener('hashchange', follow);
    return () => removeEventListener('hashchange', follow);
  }, [items]);
  const toggle = useCallback((anchor: number) => {
    setOpened((before) => {
      const after = new Set(before);
      if (!after.delete(anchor)) after.add(anchor);
      return after;
    });
  }, []);

  const toReward = (step: 1 | -1) => {
    for (let row = selected + step; row >= 0 && row < items.length; row += step) if (rewardOf(items[row]!) !== null) return select(row);
  };
  const at = rows.findIndex((row) => row.id === rollout.id);
  const sibling = (step: 1 | -1) => {
    const next = at === -1 ? undefined : rows[at + step];
    if (next) void navigate({ to: '/rollout/$id', params: { id: next.id }, replace: true });
  };
  const back = () => void navigate({ to: '/$org/runs/$run', params: { org: rollout.run.org, run: rollout.run.name }, search: {} });
  useKeys({
    j: () => select(Math.min(items.length - 1, selected + 1)),
    k: () => select(Math.max(0, selected - 1)),
    J: () => toReward(1),
    K: () => toReward(-1),
    '[': () => sibling(-1),
    ']': () => sibling(1),
    gg: () => select(0),
    G: () => select(items.length - 1),
    e: () => items[selected] && toggle(items[selected].anchor),
    y: () => void navigator.clipboard?.writeText(location.href).catch(() => undefined),
    Escape: back,
  });

  const title = rollout.rolloutName ?? taskLabel(rollout);
  return (
    <>
      <TopBar
        title={title}
        crumbs={
          <>
            <Link to="/$org/runs" params={{ org: rollout.run.org }} search={{}} className="hover:text-ink-1">
              Runs
            </Link>
            <Slash />
            <Link
              to="/$org/runs/$run"
              params={{ org: rollout.run.org, run: rollout.run.name }}
              search={{}}
              className="max-w-[240px] truncate hover:text-ink-1"
            >
              {rollout.run.name}
            </Link>
            <Slash />
            <Crumb>{title}</Crumb>
          </>
        }
      >
        {at !== -1 && (
          <span className="label">
            {formatCount(at + 1)} of {formatCount(rows.length)}
          </span>
        )}
        <button type="button" className="button" disabled={at <= 0} onClick={() => sibling(-1)} aria-keyshortcuts="[">
          <kbd>[</kbd> Newer
        </button>
        <button
          type="button"
          className="button"
          disabled={at === -1 || at >= rows.length - 1}
          onClick={() => sibling(1)}
          aria-keyshortcuts="]"
        >
          <kbd>]</kbd> Older
        </button>
      </TopBar>
      <div className="grid h-full grid-rows-[40px_minmax(0,1fr)]">
        <Header rollout={rollout} solved={solved} />
        <div className="grid min-h-0 grid-cols-[196px_minmax(0,1fr)_272px] max-[1120px]:grid-cols-[196px_minmax(0,1fr)] max-[760px]:grid-cols-[minmax(0,1fr)]">
          <Outline items={items} selected={selected} select={select} />
          {items.length === 0 ? (
            <p className="p-4 text-ink-2">This rollout has no message yet. They appear here as its trainer logs them.</p>
          ) : (
            <Transcript items={items} selected={selected} decisive={decisive} opened={opened} toggle={toggle} select={select} />
          )}
          <SidePanel rollout={rollout} items={items} rows={rows} solved={solved} select={select} />
        </div>
      </div>
    </>
  );
}

export function RolloutPage() {
  const { id } = useParams({ from: '/rollout/$id' });
  const rollout = useQuery(rolloutQuery(id));
  const rows = useSiblings(rollout.data);
  if (rollout.error || !rollout.data) {
    return (
      <>
        <TopBar title="Rollout" crumbs={<Crumb>Rollout</Crumb>} />
        {rollout.error ? <ErrorState error={rollout.error} retry={() => void rollout.refetch()} /> : <SkeletonRows />}
      </>
    );
  }
  return <Reader key={id} rollout={rollout.data} rows={rows} />;
}
