import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { runAlertsQuery } from '../data/alerts.ts';
import { Age } from '../frame/Age.tsx';
import { useRun } from '../run/context.ts';
import { RunNotice } from './RunNotice.tsx';

/** Alerts that fire in the run, above its advisories. Renders nothing without a firing alert. */
export function FiringAlerts() {
  const { run } = useRun();
  const firing = useQuery(runAlertsQuery(run.id)).data ?? [];
  if (firing.length === 0) return null;
  return (
    <ul aria-label="Firing alerts">
      {firing.map(({ alert, since, evidence: { text, q } }) => (
        <RunNotice
          key={alert.id}
          level="warning"
          text={
            <>
              <Link to="/alerts" search={{ alert: alert.id, tab: 'history' }} className="strong hover:underline">
                {alert.name}
              </Link>{' '}
              {text}
            </>
          }
          q={q}
          kind={
            <>
              alert, <Age iso={since} />
            </>
          }
        />
      ))}
    </ul>
  );
}
