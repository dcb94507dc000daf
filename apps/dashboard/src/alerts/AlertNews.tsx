import { useMutation, useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useEffect } from 'react';
import { alertNewsQuery, readAlertNews } from '../data/alerts.ts';
import { meQuery } from '../data/queries.ts';
import { Age } from '../frame/Age.tsx';
import { ChangeMark } from './ChangeMark.tsx';
import { SubjectLink } from './SubjectLink.tsx';

/** The newest changes of alerts. Marks them as read. */
export function AlertNews() {
  const news = useQuery(alertNewsQuery);
  const org = useQuery(meQuery).data?.org.name ?? '';
  const { mutate } = useMutation({ mutationFn: readAlertNews });
  const newest = news.data?.unread ? news.data.events[0]?.id : undefined;
  useEffect(() => {
    if (newest !== undefined) mutate(newest);
  }, [newest, mutate]);
  return (
    <>
      <div className="mb-2 flex items-center">
        <h2 className="strong flex-1">Alerts</h2>
        <Link to="/alerts" search={{}} className="link">
          All alerts
        </Link>
      </div>
      {news.data?.events.length === 0 && (
        <p className="text-ink-3">No alert has fired yet. An alert watches a figure of your runs and notifies you here and by a webhook.</p>
      )}
      <ul className="-mx-1 flex flex-col" aria-label="Changes of alerts">
        {news.data?.events.map(({ id, alert, run, environment, kind, at, evidence }) => (
          <li key={id} className="border-t border-line px-1 py-2 first:border-t-0">
            <span className="flex items-baseline gap-2">
              <ChangeMark kind={kind} />
              <SubjectLink org={org} subject={{ run, environment }} className="link min-w-0 flex-1 truncate">
                {alert.name}
              </SubjectLink>
              <span className="label flex-none">
                <Age iso={at} short />
              </span>
            </span>
            <span className="block text-ink-2">{evidence.text}</span>
            <span className="label block truncate">{run?.name ?? environment}</span>
          </li>
        ))}
      </ul>
    </>
  );
}
