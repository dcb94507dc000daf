import type { RolloutHeader } from '@palestra/protocol';
import { lazy, type Ref, Suspense, useCallback } from 'react';
import { useMedia } from '../frame/media.ts';
import type { Openness } from './context.ts';
import { OutlinePane } from './OutlinePane.tsx';
import { SidePanel, type Tab, tabOf } from './side/SidePanel.tsx';
import { Transcript } from './transcript/Transcript.tsx';
import type { TranscriptHandle } from './transcript/transcript-handle.ts';
import { rowOfMessage, type TranscriptItem } from './transcript.ts';
import type { ReaderData } from './useReaderData.ts';

// The first paint does not need it.
const DiffPanel = lazy(async () => ({ default: (await import('./DiffPanel.tsx')).DiffPanel }));

interface ReaderColumnsProps {
  header: RolloutHeader;
  data: ReaderData;
  /** Only the transcript is shown. */
  focusMode: boolean;
  /** No space beside the transcript for the side panel. */
  narrow: boolean;
  tab: string | undefined;
  chooseTab: (tab: Tab | undefined) => void;
  /** Id of the rollout that is compared with this one. */
  diff: string | undefined;
  closeDiff: () => void;
  selected: number;
  /** Index of the selected message, or null. */
  message: number | null;
  select: (row: number) => void;
  go: (row: number) => void;
  openness: (item: TranscriptItem) => Openness;
  toggle: (anchor: number) => void;
  tail: boolean;
  setTail: (tail: boolean) => void;
  find: string;
  handle: Ref<TranscriptHandle>;
  notify: (text: string) => void;
}

function gridColumns(focusMode: boolean, comparing: boolean): string {
  if (focusMode) return 'grid-cols-[minmax(0,1fr)]';
  return comparing
    ? 'grid-cols-[196px_minmax(0,1fr)_400px] max-[1120px]:grid-cols-[minmax(0,1fr)_340px] max-[760px]:grid-cols-[minmax(0,1fr)]'
    : 'grid-cols-[210px_minmax(0,1fr)_312px] min-[1700px]:grid-cols-[240px_minmax(0,1fr)_400px] max-[1500px]:grid-cols-[172px_minmax(0,1fr)_288px] max-[1120px]:grid-cols-[172px_minmax(0,1fr)] max-[760px]:grid-cols-[minmax(0,1fr)]';
}

/** Outline, transcript, and the side panel or the comparison. */
export function ReaderColumns(props: ReaderColumnsProps) {
  const { header, data, focusMode, narrow, tab, chooseTab, diff, closeDiff, selected, message, select, go, notify, ...transcript } = props;
  const { outline, items, decisive, failures, group, calls, annotations, solved } = data;
  const phone = useMedia('screen and (max-width: 760px)');
  const comparing = diff !== undefined;
  const side = !focusMode && !comparing;
  const goToMessage = useCallback(
    (index: number) => {
      if (phone) closeDiff();
      go(rowOfMessage(outline, items, index));
    },
    [phone, closeDiff, go, outline, items],
  );
  const panel = { header, outline, items, message, group, calls, annotations, solved, go, notify, tab: tabOf(tab), choose: chooseTab };
  const reading = (
    <>
      {!focusMode && (
        <div className={`grid min-h-0 ${comparing ? 'max-[1120px]:hidden' : 'max-[760px]:hidden'}`}>
          <OutlinePane {...{ outline, items, selected, decisive, failures }} select={go} />
        </div>
      )}
      {items.length === 0 ? (
        <p className="p-4 text-ink-2">This rollout has no message yet. Messages appear here when the trainer uploads them.</p>
      ) : (
        !(phone && comparing) && (
          <Transcript {...{ outline, items, selected, decisive, select }} {...transcript} id={header.id} live={header.state === 'live'} />
        )
      )}
    </>
  );
  const columns = gridColumns(focusMode, comparing);
  if (side && narrow) return <SidePanel {...panel} transcript={<div className={`grid min-h-0 min-w-0 ${columns}`}>{reading}</div>} />;
  return (
    <div className={`grid min-h-0 flex-1 ${columns}`}>
      {reading}
      {side && <SidePanel {...panel} />}
      {!focusMode && comparing && (
        <Suspense fallback={<div className="border-l border-line" />}>
          <DiffPanel header={header} other={diff} members={group?.rollouts} go={goToMessage} close={closeDiff} />
        </Suspense>
      )}
    </div>
  );
}
