import { useQuery } from '@tanstack/react-query';
import { Link, useSearch } from '@tanstack/react-router';
import { alertHistoryQuery, alertsQuery } from '../data/alerts.ts';
import { meQuery } from '../data/queries.ts';
import { formatAbsolute } from '../format/time.ts';
import { Loaded } from '../frame/Loaded.tsx';
import { ChangeMark } from './ChangeMark.tsx';
import { SubjectLink } from './SubjectLink.tsx';

/** Changes of all alerts, or of the one in the address, newest first. */
export function HistoryTab() {
  const { alert } = useSearch({ from: '/alerts' });
  const events = useQuery(alertHistoryQuery(alert));
  const name = useQuery(alertsQuery).data?.find(({ id }) => id === alert)?.name;
  const org = useQuery(meQuery).data?.org.name ?? '';
  return (
    <>
      {alert !== undefined && (
        <p className="flex items-center gap-3 border-b border-line bg-paper-1 px-4 py-2">
          <span>
            Only <span className="strong">{name ?? 'one alert'}</span>
          </span>
          <Link to="/alerts" search={{ tab: 'history' }} className="link">
            Show all
          </Link>
        </p>
      )}
      <Loaded query={events}>
        {(rows) =>
          rows.length === 0 ? (
            <p className="px-4 py-6 text-ink-2">No alert has fired in the last 90 days.</p>
          ) : (
            <ol aria-label="History">
              {rows.map(({ id, at, kind, muted, alert: { name: of }, run, environment, evidence }) => (
                <li
                  key={id}
                  className="grid grid-cols-[160px_96px_minmax(0,1fr)] gap-x-3 border-b border-line px-4 py-2 max-[760px]:grid-cols-[minmax(0,1fr)_auto]"
                >
                  <time dateTime={at} className="tabular-nums text-ink-3">
                    {formatAbsolute(at)}
                  </time>
                  <ChangeMark kind={kind} />
                  <span className="min-w-0 max-[760px]:col-span-2">
                    <span className="strong">{of}</span> in <SubjectLink org={org} subject={{ run, environment }} />
                    {muted && <span className="chip ml-2">Muted</span>}
                    <span className="block text-ink-2">
                      {evidence.text}{' '}
                      {evidence.q !== null && run !== null && (
                        <Link
                          to="/$org/runs/$run/rollouts"
                          params={{ org, run: run.name }}
                          search={{ q: evidence.q }}
                          className="link"
                          title={evidence.q}
                        >
                          Show the rollouts
                        </Link>
                      )}
                    </span>
                  </span>
                </li>
              ))}
            </ol>
          )
        }
      </Loaded>
    </>
  );
}
