import type { Annotation, RolloutHeader, RolloutOutline } from '@palestra/protocol';
import { useQuery } from '@tanstack/react-query';
import { useCanGoBack, useNavigate, useRouter, useSearch } from '@tanstack/react-router';
import { lazy, Suspense, useCallback, useEffect, useMemo, useRef, useState } from 'react';
import { addAnnotation, annotationsQuery } from '../data/annotations.ts';
import type { FromList } from '../data/list-order.ts';
import { groupAroundQuery } from '../data/groups.ts';
import { runQuery } from '../data/queries.ts';
import { beside, callsQuery } from '../data/rollout.ts';
import { taskLabel } from '../format/task.ts';
import { Dialog } from '../frame/Dialog.tsx';
import { useGuest } from '../frame/guest.ts';
import { TopBar } from '../frame/page.tsx';
import { ShareButton } from '../frame/ShareButton.tsx';
import { type RolloutContext, RolloutProvider } from './context.ts';
import { FindBand } from './FindBand.tsx';
import { Crumbs, Header } from './Header.tsx';
import { OutlinePane } from './OutlinePane.tsx';
import { Printed } from './Printed.tsx';
import './rollout.css';
import { SidePanel, tabOf } from './side/SidePanel.tsx';
import { ListSteps, Stepper } from './Steppers.tsx';
import { Transcript, type TranscriptHandle } from './Transcript.tsx';
import { buildTranscript, decisiveRow, errorOf, rewardOf, rowOfMessage, turnStarts, withDurations } from './transcript.ts';
import { usePrinting } from './usePrinting.ts';
import { useFind } from './useFind.ts';
import { useReaderKeys } from './useReaderKeys.ts';
import { useOpened, useSelection } from './useSelection.ts';
import { useSolved } from './useSolved.ts';

// Neither is needed for the first paint.
const ActionsMenu = lazy(async () => ({ default: (await import('./ActionsMenu.tsx')).ActionsMenu }));
const DiffPanel = lazy(async () => ({ default: (await import('./DiffPanel.tsx')).DiffPanel }));

const NOTICE_MS = 2_500;
const NO_ANNOTATIONS: readonly Annotation[] = [];

/** A word that goes away by itself. */
function useNotice(): [text: string, say: (text: string) => void] {
  const [notice, say] = useState('');
  useEffect(() => {
    if (notice === '') return;
    const timer = setTimeout(() => say(''), NOTICE_MS);
    return () => clearTimeout(timer);
  }, [notice]);
  return [notice, say];
}

const wordsOf = ({ verdict, score, tag, note }: Annotation): string => verdict ?? (score === null ? (tag ?? note ?? '') : `${score} of 5`);

export function Reader({ header, outline: untimed }: { header: RolloutHeader; outline: RolloutOutline }) {
  const { id, run } = header;
  const calls = useQuery(callsQuery(header)).data;
  const outline = useMemo(() => withDurations(untimed, calls?.calls ?? []), [untimed, calls]);
  const navigate = useNavigate();
  const router = useRouter();
  const canGoBack = useCanGoBack();
  const { q, sort, tab, diff, print } = useSearch({ from: '/rollout/$id' });
  const transcript = useRef<TranscriptHandle>(null);
  const items = useMemo(() => buildTranscript(outline), [outline]);
  const decisive = useMemo(() => decisiveRow(outline, items), [outline, items]);
  const { selected, message, select, go } = useSelection(outline, items, transcript);
  const { openness, toggle, expandAll, flipReasoning } = useOpened();
  const [tail, setTail] = useState(false);
  const [focusMode, setFocusMode] = useState(false);
  const [notice, say] = useNotice();
  const [image, setImage] = useState<string | null>(null);
  const [band, setBand] = useState(0);
  const [typed, setTyped] = useState('');
  const find = useFind(header, band > 0 ? typed : '', outline, items);

  const group = useQuery(groupAroundQuery(header)).data;
  const annotations = useQuery(annotationsQuery(id)).data ?? NO_ANNOTATIONS;
  const inferred = header.provenance['step'] === 'inferred';
  const inference = useQuery({ ...runQuery(run.name), enabled: inferred }).data?.inference;
  const confidence = typeof inference?.['confidence'] === 'number' ? inference['confidence'] : null;
  const solved = useSolved(run.id, header.environment);

  const failures = useMemo(
    () => new Map((calls?.calls ?? []).flatMap(({ index, failure_class }) => (failure_class === null ? [] : [[index, failure_class]]))),
    [calls],
  );
  const notes = useMemo(() => {
    const words = new Map<number, string>();
    for (const annotation of annotations.toReversed()) {
      const { from_index: from, to_index: to } = annotation;
      if (from === null) continue;
      for (let index = from; index <= Math.min(to ?? from, from + 1_000); index += 1) words.set(index, wordsOf(annotation));
    }
    return words;
  }, [annotations]);
  const context = useMemo<RolloutContext>(
    () => ({
      id,
      calls: new Map((calls?.calls ?? []).map((call) => [call.index, call])),
      verified: calls?.verified ?? null,
      showImage: setImage,
      notes,
      solved,
    }),
    [id, calls, notes, solved],
  );

  const goMessage = useCallback((index: number) => go(rowOfMessage(outline, items, index)), [go, outline, items]);
  /** A hit may be in a folded text. */
  const goHit = useCallback(
    (row: number) => {
      const item = items[row];
      if (item && openness(item) === 'folded') toggle(item.anchor);
      go(row);
    },
    [go, items, openness, toggle],
  );
  const open = (to: { id: string } | null | undefined, none: string) => {
    if (!to) return say(none);
    void navigate({ to: '/rollout/$id', params: { id: to.id }, search: (old) => ({ ...old, diff: undefined }), replace: true });
  };
  const setDiff = (to: string | undefined) =>
    void navigate({
      to: '.',
      search: (old: object) => ({ ...old, diff: to }) as never,
      hash: location.hash.slice(1),
      replace: true,
      hashScrollIntoView: false,
    });
  const annotate = (what: Partial<Pick<Annotation, 'verdict' | 'score'>>, words: string) => {
    const body = { rollout: id, from_index: null, to_index: null, verdict: null, score: null, tag: null, note: null, ...what };
    addAnnotation(body).then(
      () => say(`${words} saved`),
      (error: Error) => say(`Not saved: ${error.message}`),
    );
  };
  const from: FromList = { q, sort };
  const { neighbours } = header;
  const best = neighbours.best_sample;
  const walkTo = async (step: 1 | -1) => {
    const sides = await beside(id, from).catch((error: Error) => say(error.message));
    if (!sides) return;
    const list = q ? 'query' : 'run';
    open(step > 0 ? sides.next : sides.previous, sides.incomplete ? `none found yet: the ${list} is long` : `no more in the ${list}`);
  };
  const back = () => {
    if (band > 0) setBand(0);
    else if (diff !== undefined) setDiff(undefined);
    else if (canGoBack) router.history.back();
    else void navigate({ to: '/$org/runs/$run', params: { org: run.org, run: run.name }, search: {} });
  };
  const guest = useGuest();
  const printing = usePrinting(print === true, say);
  useReaderKeys(
    {
      turn: (step) => {
        const stops = turnStarts(items);
        const next = step > 0 ? stops.find((row) => row > selected) : stops.findLast((row) => row < selected);
        setTail(false);
        if (next !== undefined) go(next);
      },
      mark: (step) => {
        const marked = (row: number) => rewardOf(outline, items[row]!) !== null || errorOf(outline, items[row]!) !== 0;
        let row = selected + step;
        while (row >= 0 && row < items.length && !marked(row)) row += step;
        if (row >= 0 && row < items.length) go(row);
      },
      sibling: (step) => open(step > 0 ? neighbours.next_sample : neighbours.previous_sample, 'no more samples in the group'),
      otherStep: (step) => open(step > 0 ? neighbours.next_step : neighbours.previous_step, 'the task was not at another step'),
      inQuery: (step) => void walkTo(step),
      ends: (end) => go(end === 'first' ? 0 : items.length - 1),
      diff: () => (diff === undefined ? (best ? setDiff(best.id) : say('this is the best of its group')) : setDiff(undefined)),
      expand: () => items[selected] && toggle(items[selected].anchor),
      expandAll,
      reasoning: flipReasoning,
      tail: () => setTail(!tail),
      focusMode: () => setFocusMode(!focusMode),
      permalink: () =>
        void navigator.clipboard?.writeText(location.href).then(
          () => say('link copied'),
          () => say('the browser does not let the page copy'),
        ),
      score: (score) => annotate({ score }, `score ${score}`),
      verdict: (verdict) => annotate({ verdict }, `verdict ${verdict}`),
      find: () => setBand((asked) => asked + 1),
      print: printing.begin,
      back,
    },
    guest,
  );

  const title = header.rolloutName ?? taskLabel(header);
  const verdict = annotations.find((annotation) => annotation.verdict !== null);
  const score = annotations.find((annotation) => annotation.score !== null);
  const mark = [verdict?.verdict, score && `${score.score} of 5`].filter(Boolean).join(', ') || null;
  const columns = focusMode
    ? 'grid-cols-[minmax(0,1fr)]'
    : diff !== undefined
      ? 'grid-cols-[196px_minmax(0,1fr)_400px] max-[1120px]:grid-cols-[minmax(0,1fr)_340px]'
      : 'grid-cols-[210px_minmax(0,1fr)_312px] max-[1120px]:grid-cols-[210px_minmax(0,1fr)] max-[760px]:grid-cols-[minmax(0,1fr)]';
  return (
    <RolloutProvider value={context}>
      <TopBar title={title} crumbs={<Crumbs header={header} title={title} />}>
        {(q !== undefined || sort !== undefined) && !guest && <ListSteps id={id} from={from} open={open} />}
        <Stepper header={header} size={group && (group.expected ?? group.received)} open={open} />
        <button
          type="button"
          className="button"
          disabled={!best && diff === undefined}
          title={best ? 'Side by side with the best sample of the group' : 'This is the best sample of its group'}
          aria-pressed={diff !== undefined}
          onClick={() => setDiff(diff === undefined ? best?.id : undefined)}
          aria-keyshortcuts="d"
        >
          <kbd>d</kbd> diff with best
        </button>
        <ShareButton rollout={id} message={items[selected]?.anchor} />
        <Suspense
          fallback={
            <button type="button" className="button" disabled>
              More ▾
            </button>
          }
        >
          <ActionsMenu header={header} say={say} print={printing.begin} />
        </Suspense>
      </TopBar>
      <div className="flex h-full min-h-0 flex-col">
        <Header
          {...{ header, outline, items, solved, confidence, notice, mark }}
          member={group?.rollouts.find((rollout) => rollout.id === id)}
        />
        {band > 0 && <FindBand {...{ typed, setTyped, find, selected, run }} asked={band} go={goHit} close={() => setBand(0)} />}
        {!print && (
          <p className="hidden p-2 print:block">
            Only the rows that were on the screen are on this paper. Press Ctrl+P on the page itself, or choose More, Print whole.
          </p>
        )}
        {print ? (
          <Printed {...{ id, outline, items, decisive }} onReady={printing.ready} />
        ) : (
          <div className={`grid min-h-0 flex-1 ${columns}`}>
            {!focusMode && (
              <div className={`grid min-h-0 ${diff === undefined ? 'max-[760px]:hidden' : 'max-[1120px]:hidden'}`}>
                <OutlinePane {...{ outline, items, selected, decisive, failures }} select={go} />
              </div>
            )}
            {items.length === 0 ? (
              <p className="p-4 text-ink-2">This rollout has no message yet. They appear here as its trainer logs them.</p>
            ) : (
              <Transcript
                {...{ id, outline, items, selected, decisive, openness, toggle, select, tail, setTail }}
                live={header.state === 'live'}
                find={find.text}
                handle={transcript}
              />
            )}
            {!focusMode && diff === undefined && (
              <div className="grid min-h-0 max-[1120px]:hidden">
                <SidePanel {...{ header, outline, items, message, group, calls, annotations, solved, go, say }} tab={tabOf(tab)} />
              </div>
            )}
            {!focusMode && diff !== undefined && (
              <Suspense fallback={<div className="border-l border-line" />}>
                <DiffPanel header={header} other={diff} members={group?.rollouts} go={goMessage} close={() => setDiff(undefined)} />
              </Suspense>
            )}
          </div>
        )}
      </div>
      <Dialog title="Image" open={image !== null} onClose={() => setImage(null)} width={1100}>
        <img src={image ?? ''} alt="Of the message, as large as the window lets it be" className="mx-auto max-h-[76vh] max-w-full" />
      </Dialog>
    </RolloutProvider>
  );
}
