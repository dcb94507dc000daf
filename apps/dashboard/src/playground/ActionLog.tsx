import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import type { JsonValue, SessionCallView, SessionView } from '@palestra/protocol';
import { useEffect, useMemo, useRef, useState } from 'react';
import type { PlayCall } from '../data/playground.ts';
import { forkSession, wholeCallQuery } from '../data/sessions.ts';
import { formatBytes, formatReward } from '../format/number.ts';
import { formatAbsolute, formatClock, formatDuration } from '../format/time.ts';
import { Blocks } from '../session/Blocks.tsx';
import { FailureClass } from '../sessions/SessionState.tsx';
import { PlainText } from '../text/PlainText.tsx';
import { CopyCall } from './CopyCall.tsx';
import { isReset, observationIn } from './episode.ts';
import { filtered, type LogFilter, NO_FILTER } from './log.ts';
import { LogBar } from './LogBar.tsx';
import { Observation } from './Observation.tsx';

/** Results of up to so many bytes are read whole without being asked for: images mostly. */
const READ_WHOLE_BYTES = 4_000_000;
/** Cards that are drawn at once; earlier ones wait behind a button. */
const SHOWN = 100;

interface LogProps {
  session: SessionView;
  calls: readonly SessionCallView[];
  replayed: ReadonlySet<string>;
  /** Task id of the call that the player just made: it is brought into view, nothing else moves. */
  mine: string | null;
  /** Leads from a fork to the playground of its environment. */
  place: { owner: string; name: string };
  onRepeat: (call: PlayCall) => void;
  /** Results are observations of an action environment. */
  action: boolean;
}

/** The session's ledger as the player reads it: each call with its result, reward, and whose failure it was. */
export function ActionLog({ calls, ...rest }: LogProps) {
  const [all, setAll] = useState(false);
  const [filter, setFilter] = useState<LogFilter>(NO_FILTER);
  const matching = useMemo(() => filtered(calls, filter), [calls, filter]);
  const hidden = all ? 0 : Math.max(0, matching.length - SHOWN);
  return (
    <section aria-label="Actions">
      {calls.length > 0 && <LogBar session={rest.session} filter={filter} onFilter={setFilter} matching={matching} total={calls.length} />}
      {hidden > 0 && (
        <p className="p-3">
          <button type="button" className="button" onClick={() => setAll(true)}>
            Show the {hidden} earlier ones
          </button>
        </p>
      )}
      <ol aria-label="Calls in order" aria-live="polite">
        {matching.slice(hidden).map(({ call, n }) => (
          <Action key={call.task_id} call={call} position={n} {...rest} />
        ))}
      </ol>
    </section>
  );
}

function argumentsOf(input: string): [name: string, value: JsonValue][] | null {
  try {
    const value = JSON.parse(input) as JsonValue;
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? Object.entries(value) : null;
  } catch {
    return null;
  }
}

const ONE_LINE = 100;
function shortJson(value: JsonValue): string {
  const text = JSON.stringify(value) ?? '';
  return text.length <= ONE_LINE ? text : JSON.stringify(value, null, 2);
}

function Arguments({ input }: { input: string }) {
  const entries = argumentsOf(input);
  if (entries === null || entries.length > 30)
    return <pre className="mono whitespace-pre-wrap [overflow-wrap:anywhere]">{input.slice(0, 20_000)}</pre>;
  if (entries.length === 0) return null;
  return (
    <dl className="grid grid-cols-[minmax(0,max-content)_minmax(0,1fr)] gap-x-3">
      {entries.map(([name, value]) => (
        <div key={name} className="contents">
          <dt className="mono max-w-[200px] truncate text-ink-3" title={name}>
            <PlainText text={name} />
          </dt>
          <dd className="mono max-h-[144px] overflow-auto whitespace-pre-wrap [overflow-wrap:anywhere]">
            <PlainText text={typeof value === 'string' ? value : shortJson(value)} />
          </dd>
        </div>
      ))}
    </dl>
  );
}

const rules = { policy: 'border-l-policy', environment: 'border-l-environment', infrastructure: 'border-l-infrastructure' } as const;

function Action({
  session,
  call,
  position,
  replayed,
  mine,
  place,
  onRepeat,
  action,
}: Omit<LogProps, 'calls'> & { call: SessionCallView; position: number }) {
  const item = useRef<HTMLLIElement>(null);
  const isMine = call.task_id === mine;
  useEffect(() => {
    if (isMine) item.current?.scrollIntoView({ block: 'nearest' });
  }, [isMine, call.state]);
  const whole = useQuery({
    ...wholeCallQuery(session.sid, call),
    enabled: call.truncated && (call.result_bytes ?? 0) + call.input_bytes < READ_WHOLE_BYTES,
  });
  const shown = whole.data ?? call;
  const failed = call.failure_class !== null && call.failure_class !== 'ok' ? call.failure_class : null;
  return (
    <li
      ref={item}
      className={`grid grid-cols-[minmax(0,1fr)_72px] gap-x-3 border-b border-l-2 border-b-line px-4 py-[10px] ${failed ? rules[failed] : 'border-l-[var(--role-tool)]'}`}
      aria-label={`Call ${position}: ${call.tool}`}
      data-task={call.task_id}
    >
      <div className="flex min-w-0 flex-col gap-[6px]">
        <div className="flex flex-wrap items-center gap-x-2">
          <span className="num label w-[22px] text-left">{position}</span>
          <span className="mono font-medium text-[var(--role-tool)]">
            <PlainText text={call.tool} />
          </span>
          {call.state === 'running' && (
            <span className="flex items-center gap-2 text-ink-3">
              <span className="live-dot" /> running
            </span>
          )}
          {failed && <FailureClass of={failed} />}
          {(shown.reason ?? shown.code) && <span className="mono text-ink-3">{shown.reason ?? shown.code}</span>}
          {replayed.has(call.task_id) && (
            <span className="chip" title="The connection broke. The stored result was read again; the tool ran once.">
              replayed
            </span>
          )}
        </div>
        <div className="ml-[30px] min-w-0">
          <Arguments input={shown.input} />
        </div>
        {call.state !== 'running' && (
          <div className={`ml-[30px] min-w-0 ${failed ? '' : 'text-ink-1'}`}>
            <Result call={shown} failed={failed !== null} action={action} />
          </div>
        )}
        <Below session={session} call={call} position={position} place={place} onRepeat={onRepeat} />
      </div>
      <div className="flex flex-col items-end gap-[2px]">
        <span
          className={`num ${call.reward === null ? 'text-ink-3' : call.reward > 0 ? 'text-good strong' : call.reward < 0 ? 'text-bad strong' : ''}`}
          title={call.reward === null ? 'Not scored, which is not 0' : `Reward ${call.reward}`}
        >
          {formatReward(call.reward, { signed: true, digits: 3 })}
          <span className="sr-only"> reward</span>
        </span>
        <span className="num label">{formatDuration(call.latency_ms)}</span>
        <time className="num label" dateTime={call.started_at} title={`Began ${formatAbsolute(call.started_at) ?? ''}`}>
          {formatClock(call.started_at)}
        </time>
        {call.finished && <span className="chip text-good">● finished</span>}
      </div>
    </li>
  );
}

function Result({ call, failed, action }: { call: SessionCallView; failed: boolean; action: boolean }) {
  const seen = useMemo(() => (action ? observationIn(call.blocks) : null), [action, call.blocks]);
  if (seen !== null) return <Observation value={seen} />;
  if (call.blocks) return <Blocks blocks={call.blocks} />;
  if (call.truncated) return <p className="label">The result is {formatBytes(call.result_bytes)}: open the session’s page to read it.</p>;
  return (
    <div role={failed ? 'note' : undefined} className="mono whitespace-pre-wrap [overflow-wrap:anywhere]">
      <PlainText text={call.text ?? ''} />
    </div>
  );
}

function Below({
  session,
  call,
  position,
  place,
  onRepeat,
}: Pick<LogProps, 'session' | 'place' | 'onRepeat'> & { call: SessionCallView; position: number }) {
  const navigate = useNavigate();
  const fork = useMutation({
    mutationFn: (atCall: number) => forkSession(session.sid, atCall),
    onSuccess: ({ sid }) => navigate({ to: '/environments/$owner/$name/play', params: place, search: { sid } }),
  });
  const { at_call: atCall } = call;
  const client = useQueryClient();
  // A cut input is read whole first: half a JSON text is none.
  const again = useMutation({
    mutationFn: async () => (call.truncated ? client.fetchQuery(wholeCallQuery(session.sid, call)) : call),
    onSuccess: ({ tool, input }) => onRepeat({ tool, input }),
  });
  return (
    <div className="ml-[30px] flex flex-wrap gap-x-3 text-[12px]">
      {session.live && !isReset(session, call) && (
        <button type="button" className="link" onClick={() => again.mutate()}>
          edit and call again
        </button>
      )}
      {session.deterministic && atCall !== null && (
        <button
          type="button"
          className="link"
          disabled={fork.isPending}
          title={`Opens another session that begins with the first ${atCall} calls, replayed and checked; this one goes on as it is.`}
          onClick={() => fork.mutate(atCall)}
        >
          {fork.isPending ? 'replaying…' : 'fork from here'}
        </button>
      )}
      {call.state !== 'running' && <CopyCall session={session} call={call} position={position} />}
      {(fork.error ?? again.error) && (
        <span role="alert" className="text-bad">
          {(fork.error ?? again.error)?.message}
        </span>
      )}
    </div>
  );
}
