import { useInfiniteQuery, useMutation, useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import type { SessionCallView, SessionView } from '@palestra/protocol';
import { type ReactNode, useEffect, useRef, useState } from 'react';
import { callsQuery, forkSession, wholeCallQuery } from '../data/sessions.ts';
import { formatBytes, formatCount, formatReward, UNKNOWN } from '../format/number.ts';
import { formatDuration } from '../format/time.ts';
import { Age } from '../frame/Age.tsx';
import { CopyButton } from '../frame/CopyButton.tsx';
import { useKeys } from '../frame/keyboard.ts';
import { useRowFocus } from '../frame/rowFocus.ts';
import { ErrorState, SkeletonRows } from '../frame/states.tsx';
import { Blocks } from './Blocks.tsx';
import { Gated } from './Gated.tsx';
import { FailureClass } from '../sessions/SessionState.tsx';
import { PlainText } from '../text/PlainText.tsx';

/** When a call began is the first thing that a narrow page does without. */
const grid =
  'grid-cols-[36px_minmax(84px,130px)_minmax(90px,1fr)_minmax(100px,1.3fr)_60px_116px_72px_84px] max-[1400px]:grid-cols-[36px_minmax(72px,110px)_minmax(90px,1fr)_minmax(100px,1.3fr)_60px_116px_72px]';
const heads: [string, string][] = [
  ['#', 'justify-end'],
  ['Tool', ''],
  ['Input', ''],
  ['Result', ''],
  ['Reward', 'justify-end'],
  ['Class', ''],
  ['Latency', 'justify-end'],
  ['Began', 'justify-end max-[1400px]:hidden'],
];

const oneLine = (text: string): string => text.slice(0, 300).replaceAll(/\s+/g, ' ');

function pretty(json: string): string {
  try {
    return JSON.stringify(JSON.parse(json), null, 2);
  } catch {
    return json;
  }
}

function Labelled({ label, children }: { label: ReactNode; children: ReactNode }) {
  return (
    <div className="min-w-0">
      <div className="label mb-[2px]">{label}</div>
      <div
        className="mono max-h-[360px] overflow-auto whitespace-pre-wrap rounded-[4px] border border-line bg-paper-0 px-[10px] py-[7px] [overflow-wrap:anywhere]"
        tabIndex={0}
      >
        {children}
      </div>
    </div>
  );
}

function Long({ text }: { text: string }) {
  const [open, setOpen] = useState(false);
  return <Gated text={text} open={open} toggle={() => setOpen(!open)} render={(shown) => <PlainText text={shown} />} />;
}

function Fork({ sid, atCall }: { sid: string; atCall: number }) {
  const navigate = useNavigate();
  const fork = useMutation({
    mutationFn: () => forkSession(sid, atCall),
    onSuccess: (made) => navigate({ to: '/sessions/$sid', params: { sid: made.sid } }),
  });
  return (
    <>
      <button
        type="button"
        className="button"
        disabled={fork.isPending}
        title={`Opens another session whose first ${atCall} calls are replayed from this one; this one goes on as it is.`}
        onClick={() => fork.mutate()}
      >
        {fork.isPending ? 'Replaying…' : `Fork after call ${atCall}`}
      </button>
      <span role="alert" className="text-bad">
        {fork.error?.message}
      </span>
    </>
  );
}

/** Input and result of one call; cut ones are read whole when asked for. */
function Details({ session, call }: { session: SessionView; call: SessionCallView }) {
  const [whole, setWhole] = useState(false);
  const full = useQuery({ ...wholeCallQuery(session.sid, call), enabled: whole });
  const shown = full.data ?? call;
  const size = call.input_bytes + (call.result_bytes ?? 0);
  return (
    <div className="flex flex-col gap-2 border-b border-line bg-paper-1 px-4 py-3">
      <div className="grid grid-cols-2 gap-3 max-[1000px]:grid-cols-1">
        <Labelled label={`Input, ${formatBytes(shown.input_bytes)}`}>
          <Long text={pretty(shown.input)} />
        </Labelled>
        <Labelled label={<Outcome call={shown} />}>
          {shown.blocks ? (
            <Blocks blocks={shown.blocks} />
          ) : shown.text === null ? (
            <span className="text-ink-3">nothing yet</span>
          ) : (
            <Long text={shown.text} />
          )}
        </Labelled>
      </div>
      <div className="flex flex-wrap items-center gap-2">
        {session.deterministic && call.at_call !== null && <Fork sid={session.sid} atCall={call.at_call} />}
        {call.truncated && !full.data && (
          <button type="button" className="button" disabled={full.isFetching} onClick={() => setWhole(true)}>
            Read the whole, {formatBytes(size)}
          </button>
        )}
        {full.error && <span className="text-bad">{full.error.message}</span>}
        <CopyButton text={call.task_id} label="Copy task id" />
        <span className="label">{call.undelivered ? 'Its result has not reached its client yet.' : ''}</span>
      </div>
    </div>
  );
}

function Outcome({ call }: { call: SessionCallView }) {
  const size = call.result_bytes === null ? '' : `, ${formatBytes(call.result_bytes)}`;
  if (call.state === 'running') return <>Result: it runs</>;
  if (call.state === 'tool_failed') return <>The tool raised an error{size}</>;
  if (call.state === 'refused')
    return <>Not run, or its outcome is unknown{call.code && <span className="font-mono"> {call.code}</span>}</>;
  if (call.ok === false) return <>Refused by the environment{call.reason && <span className="font-mono"> {call.reason}</span>}</>;
  return (
    <>
      Result{size}
      {call.finished ? ', and the episode is over' : ''}
    </>
  );
}

function rewardClass(reward: number | null): string {
  if (reward === null) return 'text-ink-3';
  return reward > 0 ? 'text-good strong' : reward < 0 ? 'text-bad strong' : '';
}

function CallRow({
  session,
  call,
  position,
  onRead,
}: {
  session: SessionView;
  call: SessionCallView;
  position: number;
  onRead: (() => void) | undefined;
}) {
  const [open, setOpen] = useState(false);
  return (
    <li>
      <button
        type="button"
        data-row
        aria-expanded={open}
        onClick={() => {
          if (!open) onRead?.();
          setOpen(!open);
        }}
        className={`row w-full px-2 text-left hover:bg-paper-1 ${grid} ${open ? 'bg-paper-1' : ''}`}
      >
        <span className="cell num text-ink-3">{position}</span>
        <span className="cell mono font-medium text-[var(--role-tool)]">
          <PlainText text={call.tool} />
        </span>
        <span className="cell mono text-ink-2">
          <PlainText text={oneLine(call.input)} />
        </span>
        <span className={`cell mono ${call.failure_class === 'ok' ? 'text-ink-2' : 'text-ink-1'}`}>
          {call.text === null ? <span className="text-ink-3">{UNKNOWN}</span> : <PlainText text={oneLine(call.text)} />}
        </span>
        <span className={`cell num ${rewardClass(call.reward)}`}>{formatReward(call.reward, { signed: true })}</span>
        <span className="cell">
          {call.state === 'running' ? (
            <span className="flex items-center gap-2">
              <span className="live-dot" /> running
            </span>
          ) : (
            <FailureClass of={call.failure_class} />
          )}
        </span>
        <span className="cell num">{formatDuration(call.latency_ms)}</span>
        <span className="cell num text-ink-3 max-[1400px]:hidden">
          <Age iso={call.started_at} />
        </span>
      </button>
      {open && <Details session={session} call={call} />}
    </li>
  );
}

function emptyText({ live, state }: SessionView): string {
  if (!live) return 'It ended without a call.';
  return state === 'failed' ? 'No call can run.' : 'No call yet: the first one appears here as it begins.';
}

/**
 * Which of the calls are shown. Following: all, the newest in view. Frozen: those that there were, and a pill says how many came since;
 * reading one freezes.
 */
function useTail(live: boolean, count: number) {
  const [frozenAt, setFrozenAt] = useState<number | null>(null);
  const frozen = frozenAt !== null;
  return {
    follows: live && !frozen,
    shown: frozenAt ?? count,
    fresh: frozen ? Math.max(0, count - frozenAt) : 0,
    freeze: () => setFrozenAt((before) => before ?? count),
    go: () => setFrozenAt(null),
  };
}

/** Every call of the session in order; a row opens to its input and result. */
export function CallLedger({ session }: { session: SessionView }) {
  const calls = useInfiniteQuery(callsQuery(session.sid));
  const list = useRef<HTMLOListElement>(null);
  const move = useRowFocus(list);
  const rows = (calls.data?.pages ?? []).flatMap((page) => page.calls);
  const tail = useTail(session.live, rows.length);
  const { follows, freeze } = tail;
  useKeys({ j: () => move(1), k: () => move(-1), t: () => (follows ? freeze() : tail.go()) });
  // Only what came while the page was open moves it: it opens at the first call.
  const known = useRef<number | null>(null);
  useEffect(() => {
    if (!calls.data) return;
    if (follows && known.current !== null && rows.length > known.current)
      list.current?.lastElementChild?.scrollIntoView({ block: 'nearest' });
    known.current = rows.length;
  }, [follows, rows.length, calls.data]);
  if (calls.error) return <ErrorState error={calls.error} retry={() => void calls.refetch()} />;
  if (!calls.data) return <SkeletonRows />;
  return (
    <section aria-label="Calls" className="min-w-0 overflow-x-auto">
      {session.live && (
        <p className="flex items-center gap-3 border-b border-line px-4 py-[3px]">
          <button
            type="button"
            className="button"
            aria-pressed={follows}
            aria-keyshortcuts="t"
            title={follows ? 'Keep what is shown as it is (t)' : 'Show calls as they come (t)'}
            onClick={() => (follows ? freeze() : tail.go())}
          >
            {follows ? (
              <>
                <span className="live-dot" /> Following
              </>
            ) : (
              <>
                <span className="rest-dot" /> Frozen
              </>
            )}
          </button>
          <span role="status">
            {tail.fresh > 0 && (
              <button type="button" className="chip text-accent" onClick={tail.go}>
                {tail.fresh} new {tail.fresh === 1 ? 'call' : 'calls'}
              </button>
            )}
          </span>
        </p>
      )}
      <div className="min-w-[700px]">
        <div aria-hidden="true" className={`grid border-b border-line px-2 ${grid}`}>
          {heads.map(([head, className]) => (
            <span key={head} className={`head-cell ${className}`}>
              {head}
            </span>
          ))}
        </div>
        <ol ref={list} aria-label="Calls in order">
          {rows.slice(0, tail.shown).map((call, index) => (
            <CallRow key={call.task_id} session={session} call={call} position={index + 1} onRead={session.live ? freeze : undefined} />
          ))}
        </ol>
      </div>
      {rows.length === 0 && <p className="p-4 text-ink-3">{emptyText(session)}</p>}
      {calls.hasNextPage && (
        <p className="p-3">
          <button type="button" className="button" disabled={calls.isFetchingNextPage} onClick={() => void calls.fetchNextPage()}>
            Show the next ones of {formatCount(session.num_calls)}
          </button>
        </p>
      )}
    </section>
  );
}
