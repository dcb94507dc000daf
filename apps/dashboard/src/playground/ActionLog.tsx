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
import { imagesIn, isReset, observationIn } from './action-environment.ts';
import { filterCalls, type LogFilter, NO_FILTER } from './log-filter.ts';
import { LogBar } from './LogBar.tsx';
import { Observation } from './Observation.tsx';

/** Truncated results up to this size, mostly images, are loaded at once. */
const MAX_AUTO_LOAD_BYTES = 4_000_000;
/** Calls that are rendered at first. A button shows the earlier ones. */
const MAX_SHOWN = 100;

interface LogProps {
  session: SessionView;
  calls: readonly SessionCallView[];
  replayed: ReadonlySet<string>;
  /** Task id of the reader's last call. The log scrolls to it, and only to it. */
  lastTaskId: string | null;
  environment: { owner: string; name: string };
  onRepeat: (call: PlayCall) => void;
  /** Results are observations of an action environment. */
  isAction: boolean;
}

/** The calls of the session with their results, rewards and failure classes. */
export function ActionLog({ calls, ...rest }: LogProps) {
  const [all, setAll] = useState(false);
  const [filter, setFilter] = useState<LogFilter>(NO_FILTER);
  const matching = useMemo(() => filterCalls(calls, filter), [calls, filter]);
  const hidden = all ? 0 : Math.max(0, matching.length - MAX_SHOWN);
  return (
    <section aria-label="Actions">
      {calls.length > 0 && <LogBar session={rest.session} filter={filter} onFilter={setFilter} matching={matching} total={calls.length} />}
      {hidden > 0 && (
        <p className="p-3">
          <button type="button" className="button" onClick={() => setAll(true)}>
            Show {hidden} earlier calls
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

const MAX_LINE_CHARACTERS = 100;
function shortJson(value: JsonValue): string {
  const text = JSON.stringify(value) ?? '';
  return text.length <= MAX_LINE_CHARACTERS ? text : JSON.stringify(value, null, 2);
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

const borderClasses = {
  policy: 'border-l-policy',
  environment: 'border-l-environment',
  infrastructure: 'border-l-infrastructure',
} as const;

function Action({
  session,
  call,
  position,
  replayed,
  lastTaskId,
  environment,
  onRepeat,
  isAction,
}: Omit<LogProps, 'calls'> & { call: SessionCallView; position: number }) {
  const item = useRef<HTMLLIElement>(null);
  const isLast = call.task_id === lastTaskId;
  useEffect(() => {
    if (isLast) item.current?.scrollIntoView({ block: 'nearest' });
  }, [isLast, call.state]);
  const whole = useQuery({
    ...wholeCallQuery(session.sid, call),
    enabled: call.truncated && (call.result_bytes ?? 0) + call.input_bytes < MAX_AUTO_LOAD_BYTES,
  });
  const shown = whole.data ?? call;
  const failed = call.failure_class !== null && call.failure_class !== 'ok' ? call.failure_class : null;
  return (
    <li
      ref={item}
      className={`grid grid-cols-[minmax(0,1fr)_72px] gap-x-3 border-b border-l-2 border-b-line px-4 py-[10px] ${failed ? borderClasses[failed] : 'border-l-[var(--role-tool)]'}`}
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
              <span className="live-dot" /> Running
            </span>
          )}
          {failed && <FailureClass of={failed} />}
          {(shown.reason ?? shown.code) && <span className="mono text-ink-3">{shown.reason ?? shown.code}</span>}
          {replayed.has(call.task_id) && (
            <span className="chip" title="The connection broke, and the stored result was read again. The tool ran once.">
              Replayed
            </span>
          )}
        </div>
        <div className="ml-[30px] min-w-0">
          <Arguments input={shown.input} />
        </div>
        {call.state !== 'running' && (
          <div className={`ml-[30px] min-w-0 ${failed ? '' : 'text-ink-1'}`}>
            <Result call={shown} failed={failed !== null} isAction={isAction} />
          </div>
        )}
        <CallActions session={session} call={call} position={position} environment={environment} onRepeat={onRepeat} />
      </div>
      <div className="flex flex-col items-end gap-[2px]">
        <span
          className={`num ${call.reward === null ? 'text-ink-3' : call.reward > 0 ? 'text-good strong' : call.reward < 0 ? 'text-bad strong' : ''}`}
          title={call.reward === null ? 'Unscored, which is not 0' : `Reward ${call.reward}`}
        >
          {formatReward(call.reward)}
          <span className="sr-only"> reward</span>
        </span>
        <span className="num label">{formatDuration(call.latency_ms)}</span>
        <time className="num label" dateTime={call.started_at} title={`Started ${formatAbsolute(call.started_at) ?? ''}`}>
          {formatClock(call.started_at)}
        </time>
        {call.finished && <span className="chip text-good">● Finished</span>}
      </div>
    </li>
  );
}

function Result({ call, failed, isAction }: { call: SessionCallView; failed: boolean; isAction: boolean }) {
  const observation = useMemo(() => (isAction ? observationIn(call.blocks) : null), [isAction, call.blocks]);
  if (observation !== null) return <Observation value={observation} images={imagesIn(call.blocks)} />;
  if (call.blocks) return <Blocks blocks={call.blocks} />;
  if (call.truncated)
    return <p className="label">The result has {formatBytes(call.result_bytes)}. Open the page of the session to read it.</p>;
  return (
    <div role={failed ? 'note' : undefined} className="mono whitespace-pre-wrap [overflow-wrap:anywhere]">
      <PlainText text={call.text ?? ''} />
    </div>
  );
}

function CallActions({
  session,
  call,
  position,
  environment,
  onRepeat,
}: Pick<LogProps, 'session' | 'environment' | 'onRepeat'> & { call: SessionCallView; position: number }) {
  const navigate = useNavigate();
  const fork = useMutation({
    mutationFn: (atCall: number) => forkSession(session.sid, atCall),
    onSuccess: ({ sid }) => navigate({ to: '/environments/$owner/$name/play', params: environment, search: { sid } }),
  });
  const { at_call: atCall } = call;
  const client = useQueryClient();
  // A truncated input is not valid JSON: load it fully first.
  const repeat = useMutation({
    mutationFn: async () => (call.truncated ? client.fetchQuery(wholeCallQuery(session.sid, call)) : call),
    onSuccess: ({ tool, input }) => onRepeat({ tool, input }),
  });
  return (
    <div className="ml-[30px] flex flex-wrap gap-x-3 text-[12px]">
      {session.live && !isReset(session, call) && (
        <button type="button" className="link" onClick={() => repeat.mutate()}>
          Edit and call again
        </button>
      )}
      {session.deterministic && atCall !== null && (
        <button
          type="button"
          className="link"
          disabled={fork.isPending}
          title={`Opens a new session and replays the first ${atCall} calls in it. This session does not change.`}
          onClick={() => fork.mutate(atCall)}
        >
          {fork.isPending ? 'Replaying…' : 'Fork after this call'}
        </button>
      )}
      {call.state !== 'running' && <CopyCall session={session} call={call} position={position} />}
      {(fork.error ?? repeat.error) && (
        <span role="alert" className="text-bad">
          {(fork.error ?? repeat.error)?.message}
        </span>
      )}
    </div>
  );
}
