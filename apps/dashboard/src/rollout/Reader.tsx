import type { NewAnnotation, RolloutHeader, RolloutOutline } from '@palestra/protocol';
import { useSearch } from '@tanstack/react-router';
import { useCallback, useMemo, useRef, useState } from 'react';
import { addAnnotation } from '../data/annotations.ts';
import { taskLabel } from '../format/task.ts';
import { Dialog } from '../frame/Dialog.tsx';
import { useGuest } from '../frame/guest.ts';
import { annotationTexts, assessmentOf } from './annotation-text.ts';
import { type RolloutContext, RolloutProvider } from './context.ts';
import { CauseLine } from './CauseLine.tsx';
import { FindBar } from './FindBar.tsx';
import { Header } from './Header.tsx';
import { PrintedTranscript } from './transcript/PrintedTranscript.tsx';
import { ReaderColumns } from './ReaderColumns.tsx';
import { ReaderTopBar } from './ReaderTopBar.tsx';
import './rollout.css';
import type { TranscriptHandle } from './transcript/transcript-handle.ts';
import { nextMarked, nextTurn } from './transcript.ts';
import { useFind } from './useFind.ts';
import { useNotice } from './useNotice.ts';
import { usePrinting } from './usePrinting.ts';
import { type ReaderData, useReaderData } from './useReaderData.ts';
import { useReaderKeys } from './useReaderKeys.ts';
import { useSideTab } from './useSideTab.ts';
import { useReaderNavigation } from './useReaderNavigation.ts';
import { useOpenRows, useSelection } from './useSelection.ts';

/** The page of a rollout whose header and outline are loaded. */
export function Reader({ header, outline: uploadedOutline }: { header: RolloutHeader; outline: RolloutOutline }) {
  const { id, run, neighbours } = header;
  const data = useReaderData(header, uploadedOutline);
  const { outline, items, largest, decisive, failedRow, group, annotations, solved, confidence } = data;
  const { print } = useSearch({ from: '/rollout/$id' });
  const transcript = useRef<TranscriptHandle>(null);
  const { selected, message, select, go: scrollTo } = useSelection(outline, items, transcript);
  const { narrow, tab, chooseTab } = useSideTab();
  const go = useCallback(
    (row: number) => {
      scrollTo(row);
      if (narrow && tab !== undefined) chooseTab(undefined);
    },
    [scrollTo, narrow, tab, chooseTab],
  );
  const { openness, toggle, expandAll, toggleReasoning } = useOpenRows();
  const [tail, setTail] = useState(false);
  const [focusMode, setFocusMode] = useState(false);
  const [notice, notify] = useNotice();
  const [image, setImage] = useState<string | null>(null);
  const [findCount, setFindCount] = useState(0);
  const [typed, setTyped] = useState('');
  const finding = findCount > 0;
  const closeFind = () => setFindCount(0);
  const find = useFind(header, finding ? typed : '', outline, items);
  const navigation = useReaderNavigation(header, notify);
  const printing = usePrinting(print === true, notify);
  const context = useRolloutContext(id, data, setImage);

  /** A hit can be in a collapsed text. */
  const goToHit = useCallback(
    (row: number) => {
      const item = items[row];
      if (item && openness(item) === 'folded') toggle(item.anchor);
      go(row);
    },
    [go, items, openness, toggle],
  );
  const annotate = (part: Partial<Pick<NewAnnotation, 'verdict' | 'score'>>, name: string) => {
    const body = { rollout: id, from_index: null, to_index: null, verdict: null, score: null, tag: null, note: null, ...part };
    addAnnotation(body).then(
      () => notify(`${name} saved`),
      (error: Error) => notify(`The annotation was not saved: ${error.message}`),
    );
  };
  useReaderKeys(
    {
      turn: (step) => {
        const row = nextTurn(items, selected, step);
        setTail(false);
        if (row !== undefined) go(row);
      },
      mark: (step) => {
        const row = nextMarked(outline, items, selected, step, failedRow);
        if (row !== undefined) go(row);
      },
      sibling: (step) =>
        navigation.openRollout(step > 0 ? neighbours.next_sample : neighbours.previous_sample, 'The group has no more samples'),
      otherStep: (step) =>
        navigation.openRollout(step > 0 ? neighbours.next_step : neighbours.previous_step, 'No other step has this task'),
      list: (step) => void navigation.stepInList(step),
      ends: (end) => go(end === 'first' ? 0 : items.length - 1),
      diff: navigation.toggleDiff,
      expand: () => items[selected] && toggle(items[selected].anchor),
      expandAll,
      reasoning: toggleReasoning,
      tail: () => setTail(!tail),
      focusMode: () => setFocusMode(!focusMode),
      copyLink: () =>
        // A page without HTTPS has no clipboard.
        void (navigator.clipboard?.writeText(location.href) ?? Promise.reject(new Error('no clipboard'))).then(
          () => notify('Link copied'),
          () => notify('The browser does not allow copying'),
        ),
      score: (score) => annotate({ score }, `Score ${score}`),
      verdict: (verdict) => annotate({ verdict }, `Verdict ${verdict}`),
      find: () => setFindCount((count) => count + 1),
      print: printing.begin,
      back: () => (finding ? closeFind() : navigation.back()),
    },
    useGuest(),
  );

  const title = header.rolloutName ?? taskLabel(header);
  return (
    <RolloutProvider value={context}>
      <ReaderTopBar {...{ header, title, group, navigation, notify }} message={items[selected]?.anchor} print={printing.begin} />
      <div className="flex h-full min-h-0 flex-col">
        <Header
          {...{ header, outline, items, solved, confidence, notice }}
          assessment={assessmentOf(annotations)}
          member={group?.rollouts.find((rollout) => rollout.id === id)}
        />
        {!print && <CauseLine {...{ header, outline, items, solved, go }} decisive={largest} />}
        {finding && <FindBar {...{ typed, setTyped, find, selected, run }} openCount={findCount} go={goToHit} close={closeFind} />}
        {!print && (
          <p className="hidden p-2 print:block">
            This print contains only the visible rows. To print the whole rollout, press Ctrl+P on the page or choose More, Print the whole
            rollout.
          </p>
        )}
        {print ? (
          <PrintedTranscript {...{ id, outline, items, decisive }} onReady={printing.ready} />
        ) : (
          <ReaderColumns
            {...{ header, data, focusMode, narrow, tab, chooseTab, selected, message, select, go, openness, toggle, tail, setTail, notify }}
            diff={navigation.diff}
            closeDiff={() => navigation.setDiff(undefined)}
            find={find.text}
            handle={transcript}
          />
        )}
      </div>
      <Dialog title="Image" open={image !== null} onClose={() => setImage(null)} width={1100}>
        <img src={image ?? ''} alt="Image of the message, enlarged" className="mx-auto max-h-[76vh] max-w-full" />
      </Dialog>
    </RolloutProvider>
  );
}

/** The context of the rows of this rollout. */
function useRolloutContext(id: string, { calls, annotations, solved }: ReaderData, showImage: (url: string) => void): RolloutContext {
  const notes = useMemo(() => annotationTexts(annotations), [annotations]);
  return useMemo(
    () => ({
      id,
      calls: new Map((calls?.calls ?? []).map((call) => [call.index, call])),
      verified: calls?.verified ?? null,
      showImage,
      notes,
      solved,
    }),
    [id, calls, notes, solved, showImage],
  );
}
