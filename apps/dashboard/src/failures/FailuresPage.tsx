import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import { type Failure, failuresNowQuery, failuresQuery } from '../data/insights.ts';
import { useNews } from '../data/news.ts';
import { formatCount, formatReward, formatShare, plural, UNKNOWN } from '../format/number.ts';
import { Loaded } from '../frame/Loaded.tsx';
import { NewsPill } from '../frame/NewsPill.tsx';
import { Stop } from '../frame/Stop.tsx';
import { useRun } from '../run/context.ts';
import { PlainText } from '../text/PlainText.tsx';

const keyOf = ({ fingerprint }: Failure): string => fingerprint;
const EXAMPLES = 5;

function Examples({ failure }: { failure: Failure }) {
  const { org, run, filter } = useRun();
  const q = `id:${failure.rollouts.join(',')}`;
  return (
    <span className="flex flex-wrap items-center gap-x-3 gap-y-1">
      {failure.rollouts.slice(0, EXAMPLES).map((id) => (
        <Link key={id} to="/rollout/$id" params={{ id }} search={{ q }} className="link mono">
          {id.slice(0, 8)}
        </Link>
      ))}
      <Link to="/$org/runs/$run/rollouts" params={{ org, run: run.name }} search={{ ...filter, q }} className="link">
        Show all {failure.rollouts.length}
      </Link>
    </span>
  );
}

function Cluster({ failure, most, total }: { failure: Failure; most: number; total: number }) {
  const [open, setOpen] = useState(false);
  const steps = failure.first_step === null ? UNKNOWN : `${failure.first_step}–${failure.last_step}`;
  return (
    <li className="border-b border-line px-4 py-2">
      <button
        type="button"
        data-row
        aria-expanded={open}
        onClick={() => setOpen(!open)}
        className="grid w-full grid-cols-[64px_112px_minmax(0,1fr)_110px_90px_72px] items-center gap-3 text-left"
      >
        <span className="num strong">{formatCount(failure.count)}</span>
        <span className="h-[6px] rounded-[3px] bg-paper-2" aria-hidden="true">
          <span className="block h-full rounded-[3px] bg-unscored" style={{ width: `${(100 * failure.count) / most}%` }} />
        </span>
        <span className={`truncate ${failure.error === null ? 'text-ink-3' : 'mono'}`}>
          {failure.error === null ? 'no error text' : <PlainText text={failure.error.slice(0, 300)} />}
        </span>
        <span className="mono truncate text-ink-2">{failure.tool ?? UNKNOWN}</span>
        <Stop stop={failure.stop} />
        <span className="num">{formatReward(failure.mean_reward)}</span>
      </button>
      {open && (
        <div className="mt-2 flex flex-col gap-2 pl-[188px]">
          {failure.error !== null && (
            <pre className="code-block max-h-[180px] overflow-auto whitespace-pre-wrap">
              <PlainText text={failure.error} />
            </pre>
          )}
          <p className="label">
            {formatShare(failure.count, total)} of the checked rollouts · steps {steps} · fingerprint{' '}
            <span className="mono">{failure.fingerprint}</span>
          </p>
          <Examples failure={failure} />
        </div>
      )}
    </li>
  );
}

/** Failures of the newest rollouts, clustered by normalised error, last tool and stop reason. */
export function FailuresPage() {
  const { run, filter } = useRun();
  const failures = useQuery(failuresQuery(run.id, filter));
  const shown = { rows: failures.data?.failures ?? [], version: failures.data?.version, whole: true, key: keyOf };
  const news = useNews(run.version, shown, failuresNowQuery(run.id, filter));
  return (
    <Loaded query={failures}>
      {(data) => {
        const most = Math.max(1, ...data.failures.map(({ count }) => count));
        return (
          <>
            <div className="flex items-center gap-3 border-b border-line px-4 py-2">
              <p className="label">
                {plural(data.failures.length, 'kind')} of failure among the newest {formatCount(data.looked_at)} rollouts in these steps
                with an error or an abnormal stop
                {data.read < data.looked_at && (
                  <> · messages of {formatCount(data.read)} were read within the time limit; the others are clustered by stop reason only</>
                )}
              </p>
              <span className="flex-1" />
              <NewsPill news={news} noun="kinds of failure" onShow={() => void failures.refetch()} />
            </div>
            <div aria-hidden="true" className="grid grid-cols-[64px_112px_minmax(0,1fr)_110px_90px_72px] gap-3 border-b border-line px-4">
              {['Rollouts', '', 'Normalised error', 'Last tool', 'Stop', 'Reward'].map((head, i) => (
                <span key={i} className={`label py-[6px] ${i === 0 || i === 5 ? 'text-right' : ''}`}>
                  {head}
                </span>
              ))}
            </div>
            {data.failures.length === 0 ? (
              <p className="p-4 text-ink-2">
                No rollout failed in these steps: no tool result is an error, and every rollout ended normally.
              </p>
            ) : (
              <ul aria-label="Kinds of failure">
                {data.failures.map((failure) => (
                  <Cluster key={failure.fingerprint} failure={failure} most={most} total={data.looked_at} />
                ))}
              </ul>
            )}
          </>
        );
      }}
    </Loaded>
  );
}
