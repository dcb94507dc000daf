import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { SessionLastCall, SessionRow } from '@palestra/protocol';
import { meQuery } from '../data/queries.ts';
import { formatCount, UNKNOWN } from '../format/number.ts';
import { formatDuration } from '../format/time.ts';
import { Age } from '../frame/Age.tsx';
import { PlainText } from '../text/PlainText.tsx';
import { EndButton } from './EndButton.tsx';
import { holderName, holderText, shortId } from './names.ts';
import { FailureClass, SessionState } from './SessionState.tsx';

const liveGrid =
  'grid-cols-[84px_96px_minmax(140px,1.4fr)_minmax(72px,1fr)_minmax(72px,1fr)_88px_92px_52px_minmax(170px,1.6fr)_188px] max-[560px]:grid-cols-[76px_92px_minmax(0,1fr)_44px]';
const endedGrid =
  'grid-cols-[84px_96px_minmax(140px,1.4fr)_minmax(72px,1fr)_minmax(72px,1fr)_88px_92px_52px_minmax(170px,1.6fr)_minmax(170px,1.4fr)] max-[560px]:grid-cols-[76px_92px_minmax(0,1fr)_44px]';
const sharedHeads = ['Session', 'State', 'Environment', 'Run', 'Holder'];
const heads = {
  live: [...sharedHeads, 'Opened', 'Last seen', 'Calls', 'Last call', ''],
  ended: [...sharedHeads, 'Ended', 'Lasted', 'Calls', 'Last call', 'Failure'],
};
/** Columns that a window as narrow as a phone has no space for. The page of the session has all of them. */
const WIDE = 'max-[560px]:hidden';
const onPhone = new Set(['Session', 'State', 'Environment', 'Calls']);
const numeric = new Set(['Opened', 'Last seen', 'Ended', 'Lasted', 'Calls']);

export function Heads({ ended }: { ended: boolean }) {
  return (
    <div role="row" className={`sticky top-0 z-10 grid border-b border-line bg-paper-0 px-2 ${ended ? endedGrid : liveGrid}`}>
      {heads[ended ? 'ended' : 'live'].map((head) => (
        <span
          key={head}
          role="columnheader"
          className={`head-cell ${numeric.has(head) ? 'justify-end' : ''} ${onPhone.has(head) ? '' : WIDE}`}
        >
          {head || <span className="sr-only">End</span>}
        </span>
      ))}
    </div>
  );
}

export function SessionLink({ sid }: { sid: string }) {
  return (
    <Link to="/sessions/$sid" params={{ sid }} data-row className="mono link" title={sid}>
      {shortId(sid)}
    </Link>
  );
}

export function LastCall({ call }: { call: SessionLastCall | null }) {
  if (call === null) return <span className="text-ink-3">None yet</span>;
  return (
    <span className="flex gap-[6px]">
      <span className="mono truncate" title={call.tool}>
        <PlainText text={call.tool} />
      </span>
      <span className="flex-none text-ink-3">
        {call.state === 'running' ? 'Running, started ' : ''}
        <Age iso={call.started_at} />
      </span>
    </span>
  );
}

export function RunLink({ run }: { run: string }) {
  const me = useQuery(meQuery);
  if (!me.data) return run;
  return (
    <Link to="/$org/runs/$run" params={{ org: me.data.org.name, run }} search={{}} className="link">
      {run}
    </Link>
  );
}

function SharedCells({ session }: { session: SessionRow }) {
  const run = (session.recording ?? session.uploaded)?.run;
  return (
    <>
      <span role="cell" className="cell">
        <SessionLink sid={session.sid} />
      </span>
      <span role="cell" className="cell">
        <SessionState session={session} />
      </span>
      <span role="cell" className="cell" title={session.environment ?? undefined}>
        {session.environment ?? UNKNOWN}
        {session.variant && <span className="text-ink-3"> {session.variant}</span>}
      </span>
      <span role="cell" className={`cell text-ink-2 ${WIDE}`} title={run}>
        {run === undefined ? UNKNOWN : <RunLink run={run} />}
      </span>
      <span role="cell" className={`cell text-ink-2 ${WIDE}`} title={holderText(session.holder)}>
        {holderName(session.holder)}
      </span>
    </>
  );
}

export function LiveRow({ session }: { session: SessionRow }) {
  return (
    <div role="row" className={`row hover px-2 ${liveGrid}`}>
      <SharedCells session={session} />
      <span role="cell" className={`cell num text-ink-3 ${WIDE}`}>
        <Age iso={session.created_at} />
      </span>
      <span role="cell" className={`cell num text-ink-3 ${WIDE}`}>
        <Age iso={session.last_seen_at} />
      </span>
      <span role="cell" className="cell num">
        {formatCount(session.num_calls)}
      </span>
      <span role="cell" className={`cell ${WIDE}`}>
        <LastCall call={session.last_call} />
      </span>
      <span role="cell" className={`cell num ${WIDE}`}>
        <EndButton sid={session.sid} />
      </span>
    </div>
  );
}

export function EndedRow({ session }: { session: SessionRow }) {
  const lasted = session.ended_at === null ? null : Date.parse(session.ended_at) - Date.parse(session.created_at);
  return (
    <div role="row" className={`row hover px-2 ${endedGrid}`}>
      <SharedCells session={session} />
      <span role="cell" className={`cell num text-ink-3 ${WIDE}`}>
        <Age iso={session.ended_at} />
      </span>
      <span role="cell" className={`cell num ${WIDE}`}>
        {formatDuration(lasted)}
      </span>
      <span role="cell" className="cell num">
        {formatCount(session.num_calls)}
      </span>
      <span role="cell" className={`cell ${WIDE}`}>
        <LastCall call={session.last_call} />
      </span>
      <span role="cell" className={`cell ${WIDE}`} title={session.failure?.detail}>
        <FailureClass of={session.failure_class} />
        {session.failure && <span className="mono text-ink-3"> {session.failure.code}</span>}
      </span>
    </div>
  );
}
