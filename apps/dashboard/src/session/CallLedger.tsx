import { useInfiniteQuery, useMutation, useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import type { SessionCallView, SessionView } from '@palestra/protocol';
import { type ReactNode, useEffect, useRef, useState } from 'react';
import { errorInstead } from '../data/http.ts';
import { callsQuery, forkSession, wholeCallQuery } from '../data/sessions.ts';
import { formatBytes, formatCount, formatReward, UNKNOWN } from '../format/number.ts';
import { formatDuration } from '../format/time.ts';
import { Age } from '../frame/Age.tsx';
import { CopyButton } from '../frame/CopyButton.tsx';
import { useKeys } from '../frame/keyboard.ts';
import { useRowFocus } from '../frame/rowFocus.ts';
import { ErrorState, SkeletonRows } from '../frame/states.tsx';
import { Blocks, LongText } from './Blocks.tsx';
import { FailureClass } from '../sessions/SessionState.tsx';
import { PlainText } from '../text/PlainText.tsx';

/** A narrow page hides the column with the start of the call; a phone also input, result and latency, which the open row shows. */
const grid =
  'grid-cols-[36px_minmax(84px,130px)_minmax(90px,1fr)_minmax(100px,1.3fr)_60px_116px_72px_100px] max-[1400px]:grid-cols-[36px_minmax(72px,110px)_minmax(90px,1fr)_minmax(100px,1.3fr)_60px_116px_72px] max-[560px]:grid-cols-[44px_minmax(0,1fr)_60px_116px]';
const heads: [string, string][] = [
  ['#', 'justify-end'],
  ['Tool', ''],
  ['Input', 'max-[560px]:hidden'],
  ['Result', 'max-[560px]:hidden'],
  ['Reward', 'justify-end'],
  ['Class', ''],
  ['Latency', 'justify-end max-[560px]:hidden'],
  ['Started', 'justify-end max-[1400px]:hidden'],
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

function Fork({ sid, atCall }: { sid: string; atCall: number }) {
  const navigate = useNavigate();
  const fork = useMutation({
    mutationFn: () => forkSession(sid, atCall),
    onSuccess: ({ sid: forkSid }) => navigate({ to: '/sessions/$sid', params: { sid: forkSid } }),
  });
  return (
    <>
      <button
        type="button"
        className="button"
        disabled={fork.isPending}
        title={`Opens a new session and replays the first ${atCall} calls in it. This session does not change.`}
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

/** Input and result of one call. A button loads them fully if the list has truncated them. */
function Details({ session, call }: { session: SessionView; call: SessionCallView }) {
  const [whole, setWhole] = useState(false);
  const full = useQuery({ ...wholeCallQuery(session.sid, call), enabled: whole });
  const shown = full.data ?? call;
  const size = call.input_bytes + (call.result_bytes ?? 0);
  return (
    <div className="flex flex-col gap-2 border-b border-line bg-paper-1 px-4 py-3">
      <div className="grid grid-cols-2 gap-3 max-[1000px]:grid-cols-1">
        <Labelled label={`Input, ${formatBytes(shown.input_bytes)}`}>
          <LongText text={pretty(shown.input)} />
        </Labelled>
        <Labelled label={<Outcome call={shown} />}>
          {shown.blocks ? (
            <Blocks blocks={shown.blocks} />
          ) : shown.text === null ? (
            <span className="text-ink-3">No result yet</span>
          ) : (
            <LongText text={shown.text} />
          )}
        </Labelled>
      </div>
      <div className="flex flex-wrap items-center gap-2">
        {session.deterministic && call.at_call !== null && <Fork sid={session.sid} atCall={call.at_call} />}
        {call.truncated && !full.data && (
          <button type="button" className="button" disabled={full.isFetching} onClick={() => setWhole(true)}>
            Load all, {formatBytes(size)}
          </button>
        )}
        {full.error && <span className="text-bad">{full.error.message}</span>}
        <CopyButton text={call.task_id} label="Copy task id" />
        <span className="label">{call.undelivered && undelivered(session)}</span>
      </div>
    </div>
  );
}

const undelivered = ({ live }: SessionView): string =>
  live ? 'The result has not reached the client yet.' : 'The session ended before the client got the result.';

function Outcome({ call }: { call: SessionCallView }) {
  const size = call.result_bytes === null ? '' : `, ${formatBytes(call.result_bytes)}`;
  if (call.state === 'running') return <>Result: running</>;
  if (call.state === 'tool_failed') return <>The tool raised an error{size}</>;
  if (call.state === 'refused')
    return <>The call did not run, or its outcome is unknown{call.code && <span className="font-mono"> {call.code}</span>}</>;
  if (call.ok === false) return <>Refused by the environment{call.reason && <span className="font-mono"> {call.reason}</span>}</>;
  return (
    <>
      Result{size}
      {call.finished ? ', episode finished' : ''}
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
  onOpen,
}: {
  session: SessionView;
  call: SessionCallView;
  position: number;
  onOpen: (() => void) | undefined;
}) {
  const [open, setOpen] = useState(false);
  return (
    <li>
      <button
        type="button"
        data-row
        aria-expanded={open}
        onClick={() => {
          if (!open) onOpen?.();
          setOpen(!open);
        }}
        className={`row w-full px-2 text-left hover:bg-paper-1 ${grid} ${open ? 'bg-paper-1' : ''}`}
      >
        <span className="cell num text-ink-3">{position}</span>
        <span className="cell mono font-medium text-[var(--role-tool)]">
          <PlainText text={call.tool} />
        </span>
        <span className="cell mono text-ink-2 max-[560px]:hidden">
          <PlainText text={oneLine(call.input)} />
        </span>
        <span className={`cell mono max-[560px]:hidden ${call.failure_class === 'ok' ? 'text-ink-2' : 'text-ink-1'}`}>
          {call.text === null ? <span className="text-ink-3">{UNKNOWN}</span> : <PlainText text={oneLine(call.text)} />}
        </span>
        <span className={`cell num ${rewardClass(call.reward)}`}>{formatReward(call.reward)}</span>
        <span className="cell">
          {call.state === 'running' ? (
            <span className="flex items-center gap-2">
              <span className="live-dot" /> running
            </span>
          ) : (
            <FailureClass of={call.failure_class} />
          )}
        </span>
        <span className="cell num max-[560px]:hidden">{formatDuration(call.latency_ms)}</span>
        <span className="cell num text-ink-3 max-[1400px]:hidden">
          <Age iso={call.started_at} />
        </span>
      </button>
      {open && <Details session={session} call={call} />}
    </li>
  );
}

function emptyText({ live, state }: SessionView): string {
  if (!live) return 'The session ended without a call.';
  return state === 'failed' ? 'No call can run.' : 'No calls yet. Calls appear here when they start.';
}

/**
 * Which calls are shown. Following: all, and the page scrolls to the newest. Frozen: the calls known at that time, and a pill with the
 * number of new ones. Opening a call freezes.
 */
function useTail(live: boolean, count: number) {
  const [frozenAt, setFrozenAt] = useState<number | null>(null);
  const frozen = frozenAt !== null;
  return {
    follows: live && !frozen,
    shown: frozenAt ?? count,
    newCount: frozen ? Math.max(0, count - frozenAt) : 0,
    freeze: () => setFrozenAt((before) => before ?? count),
    follow: () => setFrozenAt(null),
  };
}

/** The calls of the session in order. A row opens to its input and result. */
export function CallLedger({ session }: { session: SessionView }) {
  const calls = useInfiniteQuery(callsQuery(session.sid));
  const list = useRef<HTMLOListElement>(null);
  const move = useRowFocus(list);
  const rows = (calls.data?.pages ?? []).flatMap((page) => page.calls);
  const tail = useTail(session.live, rows.length);
  const { follows, freeze } = tail;
  useKeys({ j: () => move(1), k: () => move(-1), t: () => (follows ? freeze() : tail.follow()) });
  // The page opens at the first call. It scrolls only for calls that arrive later.
  const knownCount = useRef<number | null>(null);
  useEffect(() => {
    if (!calls.data) return;
    if (follows && knownCount.current !== null && rows.length > knownCount.current)
      list.current?.lastElementChild?.scrollIntoView({ block: 'nearest' });
    knownCount.current = rows.length;
  }, [follows, rows.length, calls.data]);
  const error = calls.isFetchNextPageError ? calls.error : errorInstead(calls);
  if (error) return <ErrorState error={error} retry={() => void calls.refetch()} />;
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
            title={follows ? 'Stop showing new calls (t)' : 'Show new calls (t)'}
            onClick={() => (follows ? freeze() : tail.follow())}
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
            {tail.newCount > 0 && (
              <button type="button" className="chip text-accent" onClick={tail.follow}>
                {tail.newCount} new {tail.newCount === 1 ? 'call' : 'calls'}
              </button>
            )}
          </span>
        </p>
      )}
      <div className="min-w-[700px] max-[560px]:min-w-0">
        <div aria-hidden="true" className={`grid border-b border-line px-2 ${grid}`}>
          {heads.map(([head, className]) => (
            <span key={head} className={`head-cell ${className}`}>
              {head}
            </span>
          ))}
        </div>
        <ol ref={list} aria-label="Calls in order">
          {rows.slice(0, tail.shown).map((call, index) => (
            <CallRow key={call.task_id} session={session} call={call} position={index + 1} onOpen={session.live ? freeze : undefined} />
          ))}
        </ol>
      </div>
      {rows.length === 0 && <p className="p-4 text-ink-3">{emptyText(session)}</p>}
      {calls.hasNextPage && (
        <p className="p-3">
          <button type="button" className="button" disabled={calls.isFetchingNextPage} onClick={() => void calls.fetchNextPage()}>
            Show more of {formatCount(session.num_calls)}
          </button>
        </p>
      )}
    </section>
  );
}
