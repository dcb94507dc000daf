import type { RunSummary } from '@palestra/protocol';
import { formatCount, formatShare, plural } from '../format/number.ts';
import { MemberLink } from '../frame/MemberLink.tsx';
import { Stop } from '../frame/Stop.tsx';
import { useRun } from '../run/context.ts';
import { explorerSearch, ownClauses } from './links.ts';
import { stopColour } from './stops.ts';

/** Stop reasons of the filtered rollouts, each with a link to its rollouts. */
export function StopBars({ summary }: { summary: RunSummary }) {
  const run = useRun();
  const stops = Object.entries(summary.stops).toSorted(([, a], [, b]) => b - a);
  const whole = stops.reduce((sum, [, count]) => sum + count, 0);
  const most = stops[0]?.[1] ?? 1;
  return (
    <section aria-labelledby="why-stop" className="min-w-0">
      <div className="flex h-[30px] items-center gap-2 px-3">
        <h2 id="why-stop" className="strong">
          Why do rollouts stop?
        </h2>
        <span className="label ml-auto">{plural(whole, 'rollout')}</span>
      </div>
      <ul className="border-t border-line">
        {stops.map(([stop, count]) => (
          <li key={stop}>
            <MemberLink
              to="/$org/runs/$run/rollouts"
              params={{ org: run.org, run: run.run.name }}
              search={explorerSearch(run, [`stop:${stop}`, ...ownClauses(run, summary)])}
              className="row grid-cols-[132px_minmax(40px,1fr)_68px_72px] px-1"
            >
              <span className="cell">{stop === 'unknown' ? <span className="text-ink-3">– unknown</span> : <Stop stop={stop} />}</span>
              <span className="h-[8px]" aria-hidden="true">
                <span
                  className="block h-full rounded-[2px]"
                  style={{ width: `${Math.max(0.5, (100 * count) / most)}%`, background: `var(--${stopColour(stop)})` }}
                />
              </span>
              <span className="cell num">{formatShare(count, whole)}</span>
              <span className="cell num text-ink-3">{formatCount(count)}</span>
            </MemberLink>
          </li>
        ))}
      </ul>
    </section>
  );
}
