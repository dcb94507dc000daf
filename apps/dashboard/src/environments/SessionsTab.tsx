import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { errorInstead } from '../data/http.ts';
import { slotsQuery } from '../data/sessions.ts';
import { ErrorState, SkeletonRows } from '../frame/states.tsx';
import { HolderTable, SlotMeter } from '../sessions/SlotBoard.tsx';

/** Sessions with a slot of the environment and sessions that wait for one, by version, oldest first. */
export function SessionsTab({ environment }: { environment: string }) {
  const slots = useQuery(slotsQuery(environment));
  const error = errorInstead(slots);
  if (error) return <ErrorState error={error} retry={() => void slots.refetch()} />;
  if (!slots.data) return <SkeletonRows />;
  const groups = slots.data.environments;
  const open = groups.some(({ sessions }) => sessions.length > 0);
  return (
    <div className="pb-4">
      <p className="flex flex-wrap gap-x-4 px-4 pt-2">
        <span className="text-ink-3">
          Sessions of your organisation{groups.some(({ managed }) => managed) ? ', and the number of sessions of other organisations' : ''}.
        </span>
        <Link to="/sessions" search={{ environment, tab: 'ended' }} className="link ml-auto max-[760px]:ml-0">
          Show ended sessions
        </Link>
        <Link to="/sessions" search={{ environment }} className="link">
          Show live sessions
        </Link>
      </p>
      {groups.map((group) => (
        <section key={group.version} aria-label={`Slots of version ${group.version}`}>
          <h2 className="flex h-[36px] items-center gap-3 px-4 strong">
            Version {group.version}
            <SlotMeter group={group} />
          </h2>
          {group.sessions.length > 0 && (
            <div className="overflow-x-auto">
              <HolderTable sessions={group.sessions} label={`Sessions on version ${group.version}, oldest first`} />
            </div>
          )}
        </section>
      ))}
      {!open && <p className="p-4 text-ink-3">Your organisation has no open sessions of this environment.</p>}
    </div>
  );
}
