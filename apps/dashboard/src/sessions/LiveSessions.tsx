import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { slotsQuery } from '../data/sessions.ts';
import { ErrorState } from '../frame/states.tsx';
import { HolderTable, SlotMeter } from './SlotBoard.tsx';

/** Rows that an environment's page shows; the sessions page has the rest. */
const shownRows = 8;

/** The open sessions of one environment, with its slots. */
export function LiveSessions({ environment }: { environment: string }) {
  const slots = useQuery(slotsQuery(environment));
  if (slots.error) return <ErrorState error={slots.error} retry={() => void slots.refetch()} />;
  const groups = slots.data?.environments ?? [];
  const open = groups.filter(({ sessions }) => sessions.length > 0);
  const more = groups.some(({ sessions }) => sessions.length > shownRows);
  return (
    <section className="px-4 pb-4 pt-3" aria-label="Live sessions">
      <h2 className="flex flex-wrap items-center gap-x-3 border-b border-line pb-[6px] strong">
        Live sessions
        {groups.map((group) => (
          <span key={group.version} className="flex items-center gap-2">
            {groups.length > 1 && <span className="label">version {group.version}</span>}
            <SlotMeter group={group} />
          </span>
        ))}
        <Link to="/sessions" search={{ environment }} className="link ml-auto font-[450]">
          {more ? 'All of them' : 'Open the list'}
        </Link>
      </h2>
      {slots.data && open.length === 0 && <p className="py-2 text-ink-3">No session of yours is open on this environment.</p>}
      <div className="overflow-x-auto">
        {open.map((group) => (
          <HolderTable
            compact
            key={group.version}
            sessions={group.sessions.slice(0, shownRows)}
            label={`Sessions on version ${group.version}, oldest first`}
          />
        ))}
      </div>
    </section>
  );
}
