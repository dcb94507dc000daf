import { useInfiniteQuery } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { useRef } from 'react';
import { errorInstead } from '../data/http.ts';
import { sessionsQuery } from '../data/sessions.ts';
import { plural } from '../format/number.ts';
import { useKeys } from '../frame/keyboard.ts';
import { Crumb, SearchTabs, TopBar } from '../frame/page.tsx';
import { useRowFocus } from '../frame/rowFocus.ts';
import { ErrorState, SkeletonRows } from '../frame/states.tsx';
import { Filters } from './Filters.tsx';
import { EndedRow, Heads, LiveRow } from './SessionRows.tsx';
import { SlotBoard } from './SlotBoard.tsx';

const tabs = [
  { name: 'live', label: 'Live' },
  { name: 'ended', label: 'Ended' },
  { name: 'slots', label: 'Slots' },
] as const;

function Empty({ ended, filtered }: { ended: boolean; filtered: boolean }) {
  if (filtered) return <p className="p-4 text-ink-3">No {ended ? 'ended' : 'live'} session matches these filters.</p>;
  const snippet = `from openreward import OpenReward\n\nenvironment = OpenReward().environments.get("palestra/echo")\nwith environment.session(split="train", index=0) as session:\n    session.call_tool("echo", {"text": "hello"})`;
  return (
    <div className="mx-auto flex max-w-[640px] flex-col gap-3 px-4 py-10">
      <h2 className="text-[16px] leading-[22px] strong">{ended ? 'No session has ended yet' : 'No session is open'}</h2>
      <p className="text-ink-2">A session appears here when a trainer opens an episode. Its calls stay in the ledger.</p>
      <pre className="code-block" tabIndex={0}>
        {snippet}
      </pre>
    </div>
  );
}

function SessionTable({ ended }: { ended: boolean }) {
  const { environment, run, key, failure, state } = useSearch({ from: '/sessions' });
  const sessions = useInfiniteQuery(sessionsQuery({ state: state ?? (ended ? 'ended' : 'live'), environment, run, key, failure }));
  const list = useRef<HTMLDivElement>(null);
  const move = useRowFocus(list);
  useKeys({ j: () => move(1), k: () => move(-1) });
  const error = sessions.isFetchNextPageError ? sessions.error : errorInstead(sessions);
  if (error) return <ErrorState error={error} retry={() => void sessions.refetch()} />;
  if (!sessions.data) return <SkeletonRows />;
  const rows = sessions.data.pages.flatMap((page) => page.sessions);
  const filtered = Boolean(environment ?? run ?? key ?? failure ?? state);
  return (
    <>
      {rows.length === 0 ? (
        <Empty ended={ended} filtered={filtered} />
      ) : (
        <div
          role="table"
          aria-label={ended ? 'Ended sessions, newest first' : 'Live sessions, newest first'}
          ref={list}
          className="min-w-[1000px] max-[560px]:min-w-0"
        >
          <Heads ended={ended} />
          {rows.map((session) =>
            ended ? <EndedRow key={session.sid} session={session} /> : <LiveRow key={session.sid} session={session} />,
          )}
        </div>
      )}
      {sessions.hasNextPage && (
        <p className="p-3">
          <button type="button" className="button" disabled={sessions.isFetchingNextPage} onClick={() => void sessions.fetchNextPage()}>
            Show older sessions
          </button>
        </p>
      )}
      <p className="sr-only" aria-live="polite">
        {plural(rows.length, 'session')} shown
      </p>
    </>
  );
}

/** Sessions of the organisation: live ones, ended ones, and the slots. */
export function SessionsPage() {
  const search = useSearch({ from: '/sessions' });
  const navigate = useNavigate({ from: '/sessions' });
  const tab = search.tab ?? 'live';
  return (
    <div className="flex h-full flex-col">
      <TopBar title="Sessions" crumbs={<Crumb>Sessions</Crumb>} />
      <SearchTabs
        label="Sessions by state"
        tabs={tabs}
        current={tab}
        keep={({ state: _state, failure: _failure, ...kept }) => kept}
        aside={
          tab !== 'slots' && (
            <Filters
              search={search}
              ended={tab === 'ended'}
              set={(change) => void navigate({ search: (before) => ({ ...before, ...change }), replace: true })}
            />
          )
        }
      />
      <div className="min-h-0 flex-1 overflow-auto">
        {tab === 'slots' ? <SlotBoard /> : <SessionTable key={tab} ended={tab === 'ended'} />}
      </div>
    </div>
  );
}
