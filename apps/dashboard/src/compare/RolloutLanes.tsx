import type { RolloutHeader } from '@palestra/protocol';
import { useQueries } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useMemo, useState } from 'react';
import { type GroupMember, useAlignments } from '../data/groups.ts';
import { headerQuery } from '../data/rollout.ts';
import { formatReward, UNKNOWN } from '../format/number.ts';
import { taskLabel } from '../format/task.ts';
import { Crumb, Slash, TopBar } from '../frame/page.tsx';
import { ShareButton } from '../frame/ShareButton.tsx';
import { ErrorState, SkeletonRows } from '../frame/states.tsx';
import { boardOf } from '../groups/align.ts';
import { CellDialog, type Chosen } from '../groups/CellDialog.tsx';
import { Lanes } from '../groups/Lanes.tsx';
import { byReward } from '../groups/pairs.ts';
import { useSolved } from '../rollout/useSolved.ts';

interface Loading {
  data?: RolloutHeader | undefined;
  error: Error | null;
  refetch: () => unknown;
}
type Member = GroupMember & Pick<RolloutHeader, 'run'>;
const NONE: Member[] = [];

/** The members once all have arrived. Advantages belong to a group, which the rollouts need not share. */
const membersOf = (headers: readonly Loading[]): { members: Member[]; failed: Loading | undefined } => ({
  failed: headers.find(({ error }) => error),
  members: headers.every(({ data }) => data)
    ? headers.map(({ data }) => ({ ...data!, advantage: null, advantage_centred: null, reward_trained: null }))
    : NONE,
});

/** Three or four rollouts as lanes, aligned with the one of the highest reward. */
export function RolloutLanes({ ids }: { ids: readonly string[] }) {
  const { members: whole, failed } = useQueries({ queries: ids.map((id) => headerQuery(id)), combine: membersOf });
  const best = whole.toSorted(byReward)[0];
  const alignments = useAlignments(best, whole);
  const board = useMemo(() => boardOf(alignments), [alignments]);
  const solved = useSolved(best?.run.id ?? '', best?.environment ?? null);
  const [lane, setLane] = useState(0);
  const [chosen, setChosen] = useState<Chosen | null>(null);
  return (
    <>
      <TopBar
        title={`Compare ${ids.length} rollouts`}
        crumbs={
          <>
            <span>Compare</span>
            <Slash />
            <Crumb>{ids.length} rollouts</Crumb>
          </>
        }
      >
        <ShareButton target={{ kind: 'rollouts', rollouts: ids }} />
      </TopBar>
      {failed ? (
        <ErrorState error={failed.error!} retry={() => void failed.refetch()} />
      ) : !best ? (
        <SkeletonRows />
      ) : (
        <div className="flex h-full min-h-0 flex-col">
          <p className="flex flex-none flex-wrap gap-x-4 border-b border-line px-4 py-2 text-ink-2">
            {whole.map((member, at) => (
              <span key={member.id}>
                <span className="strong">{'ABCD'[at]}</span>{' '}
                <Link to="/rollout/$id" params={{ id: member.id }} search={{}} className="link underline">
                  {taskLabel(member)}
                </Link>{' '}
                step {member.step ?? UNKNOWN}, sample {member.sample ?? UNKNOWN}, {formatReward(member.reward)}
              </span>
            ))}
          </p>
          <Lanes
            {...{ board, lane, setLane, solved }}
            members={whole}
            best={best.id}
            show={(member, cell, row) => {
              const bestCell = board.rows[row]?.cells[whole.indexOf(best)] ?? null;
              setChosen({ member, cell, best: bestCell && { id: best.id, cell: bestCell } });
            }}
          />
          <CellDialog chosen={chosen} close={() => setChosen(null)} />
        </div>
      )}
    </>
  );
}
