import type { GroupView } from '@palestra/protocol';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { Link, useNavigate, useParams, useRouter, useSearch } from '@tanstack/react-router';
import { useLayoutEffect, useMemo, useRef, useState } from 'react';
import { type GroupMember, groupNowQuery, groupQuery, taskStripQuery, useAlignments } from '../data/groups.ts';
import { type News, useNews } from '../data/news.ts';
import { headerQuery } from '../data/rollout.ts';
import { useKeys } from '../frame/keyboard.ts';
import { NewsPill } from '../frame/NewsPill.tsx';
import { ErrorState, SkeletonRows } from '../frame/states.tsx';
import { useSolved } from '../rollout/useSolved.ts';
import { useRun } from '../run/context.ts';
import { RolloutSelection } from '../selection/RolloutSelection.tsx';
import { searchIndex } from '../search.ts';
import { useRowSelection } from '../selection/useRowSelection.ts';
import { boardOf } from './align.ts';
import { CellDialog, type Chosen } from './CellDialog.tsx';
import { GroupHeader, TaskLine } from './GroupHeader.tsx';
import { Lanes } from './Lanes.tsx';
import { Matrix } from './Matrix.tsx';
import { byReward, pairsOf } from './pairs.ts';

/** Groups with more samples open as a matrix. */
const MOST_LANES = 8;

/** Handles Enter unless a control has the focus. */
function useEnter(open: () => void): void {
  const latest = useRef(open);
  useLayoutEffect(() => {
    latest.current = open;
  });
  useLayoutEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key !== 'Enter' || event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
      if (document.querySelector('dialog[open]') || (event.target as Element).closest('a,button,input,textarea,select')) return;
      latest.current();
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, []);
}

const idOf = ({ id }: GroupMember): string => id;
const bySample = (a: GroupMember, b: GroupMember) => (a.sample ?? Infinity) - (b.sample ?? Infinity) || a.id.localeCompare(b.id);

/** The samples of a group side by side: their rewards, and where their actions diverge. */
export function GroupPage() {
  const { run } = useRun();
  const { group: key } = useParams({ from: '/$org/runs/$run/groups/$group' });
  const { at } = useSearch({ from: '/$org/runs/$run/groups/$group' });
  const group = useQuery(groupQuery(run.id, key, at));
  const shown = { rows: group.data?.rollouts ?? [], version: group.data?.version, whole: true, key: idOf };
  const news = useNews(run.version, shown, groupNowQuery(run.id, key, at));
  if (group.error) return <ErrorState error={group.error} retry={() => void group.refetch()} />;
  if (!group.data) return <SkeletonRows />;
  return <GroupBoard key={`${key}:${group.data.step}`} group={group.data} news={news} reload={() => void group.refetch()} />;
}

function GroupBoard({ group, news, reload }: { group: GroupView; news: News; reload: () => void }) {
  const { org, run } = useRun();
  const search = useSearch({ from: '/$org/runs/$run/groups/$group' });
  const navigate = useNavigate({ from: '/$org/runs/$run/groups/$group' });
  const solved = useSolved(run.id, group.environment);
  const ranked = useMemo(() => group.rollouts.toSorted(byReward), [group]);
  const best = ranked[0];
  const worst = ranked.findLast(({ reward }) => reward !== null);
  const pinned = search.pin === true && worst !== undefined && best !== worst;
  const members = useMemo(() => {
    if (pinned) return [best!, worst];
    return search.order === 'reward' ? ranked : group.rollouts.toSorted(bySample);
  }, [pinned, best, worst, ranked, search.order, group]);
  const alignments = useAlignments(best, members);
  const board = useMemo(() => boardOf(alignments), [alignments]);
  const arrived = alignments.filter((one) => one !== undefined).length;
  const matrix = (search.view ?? (members.length > MOST_LANES ? 'matrix' : 'lanes')) === 'matrix';
  const [chosen, setChosen] = useState<Chosen | null>(null);

  const change = (to: Partial<typeof search>) => void navigate({ search: (old) => ({ ...old, ...to }), replace: true });
  const lane = Math.min(members.length - 1, search.lane ?? 0);
  const clampLane = (to: number) => Math.max(0, Math.min(members.length - 1, to));
  const setLane = (to: number) => change({ lane: clampLane(to) });
  // Starts from the current address, because a held key is faster than rendering.
  const stepLane = (by: 1 | -1) => void navigate({ search: (old) => ({ ...old, lane: clampLane((old.lane ?? 0) + by) }), replace: true });
  const { history } = useRouter();
  const [path] = useState(history.location.pathname);
  /** Also of the current address, unless it is that of the next page. */
  const currentMember = (): GroupMember | undefined => {
    const { pathname, search: address } = history.location;
    return members[pathname === path ? clampLane(searchIndex(new URLSearchParams(address).get('lane'), 0) ?? 0) : lane];
  };
  const client = useQueryClient();
  const stripQuery = taskStripQuery(run.id, group.task?.id ?? '', group.phase);
  const strip = useQuery({ ...stripQuery, enabled: group.task !== null }).data;
  const spec = useQuery({ ...headerQuery(best?.id ?? ''), enabled: best !== undefined }).data?.task_spec;

  const otherStep = async (step: 1 | -1) => {
    if (group.task === null) return;
    // The steps can still be loading.
    const { groups } = await client.ensureQueryData(stripQuery).catch(() => ({ groups: [] }));
    if (history.location.pathname !== path) return;
    const steps = groups.toSorted((a, b) => (a.step ?? 0) - (b.step ?? 0));
    const here = steps.findIndex((one) => one.key === group.key && one.step === group.step);
    const to = here < 0 ? undefined : steps[here + step];
    if (!to) return;
    const params = { org, run: run.name, group: to.key };
    void navigate({ params, search: (old) => ({ ...old, at: to.step ?? undefined, lane: undefined }), replace: true });
  };
  const selection = useRowSelection(members, idOf, `${group.key} ${group.step}`);
  const selectCurrent = (extend: boolean) => {
    const member = currentMember();
    if (member) selection.toggle(member.id, extend);
  };
  const pairs = pairsOf(group.rollouts);
  const open = (member: GroupMember | undefined) => member && void navigate({ to: '/rollout/$id', params: { id: member.id }, search: {} });
  useEnter(() => open(currentMember()));
  useKeys({
    x: () => selectCurrent(false),
    X: () => selectCurrent(true),
    h: () => stepLane(-1),
    l: () => stepLane(1),
    '{': () => void otherStep(-1),
    '}': () => void otherStep(1),
    d: () => {
      const member = currentMember();
      if (member && best)
        void navigate({ to: '/rollout/$id', params: { id: member.id }, search: member === best ? {} : { diff: best.id } });
    },
    Escape: () =>
      void navigate({
        to: '/$org/runs/$run/groups',
        params: { org, run: run.name },
        search: (old: object) => ({ ...old, at: undefined, view: undefined, pin: undefined, order: undefined, lane: undefined }) as never,
      }),
  });
  const pressed = 'button aria-pressed:border-accent aria-pressed:bg-accent-wash aria-pressed:text-ink-1';
  return (
    <div className="flex h-full min-h-0 flex-col">
      <GroupHeader group={group} />
      <TaskLine group={group} spec={spec} strip={strip} org={org} run={run.name} />
      <div className="flex min-h-[38px] flex-none flex-wrap items-center gap-2 border-b border-line px-4 py-1">
        <span className="flex gap-1" role="group" aria-label="View">
          <button type="button" className={pressed} aria-pressed={matrix} onClick={() => change({ view: 'matrix' })}>
            Matrix
          </button>
          <button type="button" className={pressed} aria-pressed={!matrix} onClick={() => change({ view: 'lanes' })}>
            Lanes
          </button>
        </span>
        <button
          type="button"
          className={pressed}
          aria-pressed={search.order === 'reward'}
          onClick={() => change({ order: search.order === 'reward' ? undefined : 'reward', lane: undefined })}
        >
          Order by reward
        </button>
        <button
          type="button"
          className={pressed}
          aria-pressed={pinned}
          disabled={worst === undefined || best === worst}
          onClick={() => change({ pin: pinned ? undefined : true, view: pinned ? search.view : 'lanes', lane: undefined })}
        >
          Pin best and worst
        </button>
        <CompareLink rollouts={pairs.bestAndWorst}>Compare best and worst</CompareLink>
        <CompareLink rollouts={pairs.twoBest}>Compare two best</CompareLink>
        <span className="label" role="status">
          {arrived < members.length
            ? `${arrived} of ${members.length} samples aligned`
            : `Aligned with sample ${best?.sample ?? '–'}, the best`}
          {alignments.some((one) => one?.truncated) && '; only the first 2 000 actions of each'}
        </span>
        <span className="flex-1" />
        <NewsPill news={news} noun="samples" onShow={reload} />
        <span className="label max-[1500px]:hidden">
          <kbd>x</kbd> Select <kbd>h</kbd> <kbd>l</kbd> Sample <kbd>Enter</kbd> Open <kbd>d</kbd> Compare <kbd>{'{'}</kbd> <kbd>{'}'}</kbd>{' '}
          Other step
        </span>
      </div>
      {group.note && <p className="label flex-none border-b border-line px-4 py-1">{group.note}</p>}
      {members.length === 0 ? (
        <p className="p-4 text-ink-2">All rollouts of this group were erased.</p>
      ) : matrix ? (
        <Matrix {...{ members, board, lane, setLane, solved }} best={best?.id} openLane={(to) => change({ view: 'lanes', lane: to })} />
      ) : (
        <Lanes
          {...{ members, board, lane, setLane, solved, selection }}
          best={best?.id}
          show={(member, cell, row) => {
            const centre = members.findIndex(({ id }) => id === best?.id);
            const bestCell = centre < 0 ? null : (board.rows[row]?.cells[centre] ?? null);
            setChosen({ member, cell, best: bestCell && best ? { id: best.id, cell: bestCell } : null });
          }}
        />
      )}
      <RolloutSelection selection={selection} q={`group:${group.key}${group.step === null ? '' : ` step:${group.step}`}`} more />
      <CellDialog chosen={chosen} close={() => setChosen(null)} />
    </div>
  );
}

/** A comparison side by side; disabled without two scored samples. */
function CompareLink({ rollouts, children }: { rollouts: string | null; children: string }) {
  if (rollouts === null)
    return (
      <button type="button" className="button" disabled title="Fewer than two samples have a reward">
        {children}
      </button>
    );
  return (
    <Link to="/compare" search={{ rollouts }} className="button">
      {children}
    </Link>
  );
}
