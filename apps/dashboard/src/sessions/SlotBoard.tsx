import { useQuery } from '@tanstack/react-query';
import type { SlotGroup, SlotHolder } from '@palestra/protocol';
import { Link } from '@tanstack/react-router';
import { useRef } from 'react';
import { errorInstead } from '../data/http.ts';
import { slotsQuery } from '../data/sessions.ts';
import { formatCount, plural, UNKNOWN } from '../format/number.ts';
import { Age } from '../frame/Age.tsx';
import { useKeys } from '../frame/keyboard.ts';
import { useRowFocus } from '../frame/rowFocus.ts';
import { ErrorState, SkeletonRows } from '../frame/states.tsx';
import { EndButton } from './EndButton.tsx';
import { holderName, holderText } from './names.ts';
import { LastCall, SessionLink } from './SessionRows.tsx';
import { SessionState } from './SessionState.tsx';

const grid =
  'grid-cols-[84px_96px_minmax(130px,1.4fr)_minmax(100px,1fr)_minmax(76px,.6fr)_92px_92px_minmax(140px,1.3fr)_188px] max-[560px]:grid-cols-[76px_92px_minmax(0,1fr)_96px]';
/** Columns that a window as narrow as a phone has no space for. */
const WIDE = 'max-[560px]:hidden';
const onPhone = new Set(['Session', 'State', 'Holder', 'Since']);
const heads = ['Session', 'State', 'Holder', 'Run', 'Task', 'Since', 'Last seen', 'Last call', ''];

/** `3 of 8 slots taken, 2 waiting`, with a bar. */
export function SlotMeter({ group }: { group: SlotGroup }) {
  const { capacity, used, waiting } = group;
  const share = capacity === null || capacity === 0 ? 0 : Math.min(1, used / capacity);
  return (
    <span className="flex items-center gap-2 text-[12px] font-[450] text-ink-2">
      {capacity !== null && (
        <svg width="80" height="8" viewBox="0 0 80 8" aria-hidden="true" className="flex-none">
          <rect x="0.5" y="0.5" width="79" height="7" rx="2" fill="none" stroke="var(--line-strong)" />
          <rect x="0" y="0" width={80 * share} height="8" rx="2" fill={share === 1 ? 'var(--bad)' : 'var(--good)'} />
        </svg>
      )}
      <span className="tabular-nums">
        {capacity === null ? `${plural(used, 'slot')} taken, no limit` : `${formatCount(used)} of ${plural(capacity, 'slot')} taken`}
        {waiting > 0 && <span className="text-policy"> · {formatCount(waiting)} waiting</span>}
      </span>
    </span>
  );
}

function HolderRow({ session }: { session: SlotHolder }) {
  return (
    <div role="row" className={`row hover px-2 ${grid}`}>
      <span role="cell" className="cell">
        {session.sid === null ? <span className="text-ink-3">{UNKNOWN}</span> : <SessionLink sid={session.sid} />}
      </span>
      <span role="cell" className="cell">
        <SessionState session={session} />
      </span>
      <span role="cell" className="cell text-ink-2" title={session.holder ? holderText(session.holder) : undefined}>
        {session.holder ? holderName(session.holder) : `${session.org}, another organisation`}
      </span>
      <span role="cell" className={`cell text-ink-2 ${WIDE}`}>
        {session.run ?? UNKNOWN}
      </span>
      <span role="cell" className={`cell text-ink-2 ${WIDE}`}>
        {session.task ? `${session.task.split} ${session.task.index}` : session.sid === null ? UNKNOWN : 'Custom task'}
      </span>
      <span role="cell" className="cell num text-ink-3">
        <Age iso={session.created_at} />
      </span>
      <span role="cell" className={`cell num text-ink-3 ${WIDE}`}>
        <Age iso={session.last_seen_at} />
      </span>
      <span role="cell" className={`cell ${WIDE}`}>
        <LastCall call={session.last_call} />
      </span>
      <span role="cell" className={`cell num ${WIDE}`}>
        {session.sid !== null && <EndButton sid={session.sid} />}
      </span>
    </div>
  );
}

export function HolderTable({ sessions, label }: { sessions: SlotHolder[]; label: string }) {
  return (
    <div role="table" aria-label={label} className="min-w-[1036px] max-[560px]:min-w-0">
      <div role="row" className={`grid border-b border-line px-2 ${grid}`}>
        {heads.map((head) => (
          <span
            key={head}
            role="columnheader"
            className={`head-cell ${head === 'Since' || head === 'Last seen' ? 'justify-end' : ''} ${onPhone.has(head) ? '' : WIDE}`}
          >
            {head || <span className="sr-only">End</span>}
          </span>
        ))}
      </div>
      {sessions.map((session, index) => (
        <HolderRow key={session.sid ?? index} session={session} />
      ))}
    </div>
  );
}

/** The sessions that hold slots, by environment, oldest first. */
export function SlotBoard() {
  const slots = useQuery(slotsQuery());
  const board = useRef<HTMLDivElement>(null);
  const move = useRowFocus(board);
  useKeys({ j: () => move(1), k: () => move(-1) });
  const error = errorInstead(slots);
  if (error) return <ErrorState error={error} retry={() => void slots.refetch()} />;
  if (!slots.data) return <SkeletonRows />;
  const { environments } = slots.data;
  if (environments.length === 0)
    return <p className="p-4 text-ink-2">No slot is taken: no session is open on an environment that you use or manage.</p>;
  return (
    <div ref={board}>
      {environments.map((group) => {
        const [owner, name] = group.environment.split('/');
        const label = `${group.environment}${group.version === null ? '' : ` version ${group.version}`}`;
        return (
          <section key={label} aria-label={label} className="pb-4">
            <h2 className="sticky left-0 flex h-[36px] items-center gap-3 px-4 strong">
              <Link to="/environments/$owner/$name" params={{ owner: owner!, name: name! }} search={{}} className="hover:underline">
                {group.environment}
              </Link>
              {group.version !== null && <span className="label">version {group.version}</span>}
              <SlotMeter group={group} />
            </h2>
            <HolderTable sessions={group.sessions} label={`Sessions on ${label}, oldest first`} />
          </section>
        );
      })}
    </div>
  );
}
