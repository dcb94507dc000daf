import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { runAlertsQuery } from '../data/alerts.ts';
import { Age } from '../frame/Age.tsx';
import { useRun } from '../run/context.ts';

/** Alerts that fire in the run, above its advisories. Renders nothing without a firing alert. */
export function FiringAlerts() {
  const { org, run, filter } = useRun();
  const firing = useQuery(runAlertsQuery(run.id)).data ?? [];
  if (firing.length === 0) return null;
  return (
    <ul aria-label="Firing alerts">
      {firing.map(({ alert, since, evidence: { text, q } }) => (
        <li key={alert.id} className="flex min-h-[28px] items-center gap-[10px] border-b border-line bg-bad-wash px-3 py-[3px]">
          <span className="text-bad" aria-hidden="true">
            ▲
          </span>
          <span className="min-w-0">
            <Link to="/alerts" search={{ alert: alert.id, tab: 'history' }} className="strong hover:underline">
              {alert.name}
            </Link>{' '}
            {text}
          </span>
          {q !== null && (
            <Link
              to="/$org/runs/$run/rollouts"
              params={{ org, run: run.name }}
              search={{ ...filter, q }}
              className="link flex-none"
              title={q}
            >
              Show the rollouts
            </Link>
          )}
          <span className="label ml-auto flex-none text-ink-2">
            alert, <Age iso={since} />
          </span>
        </li>
      ))}
    </ul>
  );
}
