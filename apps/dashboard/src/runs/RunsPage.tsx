import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate, useParams, useSearch } from '@tanstack/react-router';
import type { RunView } from '@palestra/protocol';
import { useRef } from 'react';
import { runsQuery } from '../data/queries.ts';
import { formatCount, formatMean, formatReward, formatShare, plural, UNKNOWN } from '../format/number.ts';
import { Age } from '../frame/Age.tsx';
import { useKeys } from '../frame/keyboard.ts';
import { Crumb, Slash, TopBar } from '../frame/page.tsx';
import { useRowFocus } from '../frame/rowFocus.ts';
import { ErrorState, SkeletonRows } from '../frame/states.tsx';
import { EmptyRuns } from './EmptyRuns.tsx';

const columns = 'grid-cols-[24px_minmax(180px,2fr)_minmax(140px,1.4fr)_88px_104px_88px_72px_88px_88px]';

function Row({ run }: { run: RunView }) {
  return (
    <Link to="/$org/runs/$run" params={{ org: run.org, run: run.name }} search={{}} role="row" data-row className={`row px-2 ${columns}`}>
      <span role="cell" className="grid place-items-center">
        <span className={run.live ? 'live-dot' : 'rest-dot'} />
        <span className="sr-only">{run.live ? 'live' : 'quiet'}</span>
      </span>
      <span role="cell" className="cell strong" title={run.name}>
        {run.name}
      </span>
      <span role="cell" className="cell text-ink-2" title={run.environments.join(', ')}>
        {run.environments.join(', ') || UNKNOWN}
      </span>
      <span role="cell" className="cell num">
        {formatCount(run.num_rollouts)}
      </span>
      <span role="cell" className="cell num strong">
        {formatReward(run.avg_rollout_reward, { digits: 3 })}
      </span>
      <span role="cell" className="cell num text-ink-3">
        {formatCount(run.num_scored)}
      </span>
      <span role="cell" className="cell num">
        {formatShare(run.num_finished, run.num_rollouts)}
      </span>
      <span role="cell" className="cell num">
        {formatMean(run.avg_rollout_length)}
      </span>
      <span role="cell" className="cell num text-ink-3">
        <Age iso={run.updated_at} />
      </span>
    </Link>
  );
}

const heads: [string, string][] = [
  ['', ''],
  ['Run', ''],
  ['Environments', ''],
  ['Rollouts', 'num'],
  ['Mean reward', 'num'],
  ['Scored (n)', 'num'],
  ['Finished', 'num'],
  ['Messages', 'num'],
  ['Last event', 'num'],
];

export function RunsPage() {
  const { org } = useParams({ from: '/$org/runs' });
  const { q } = useSearch({ from: '/$org/runs' });
  const navigate = useNavigate({ from: '/$org/runs' });
  const runs = useQuery(runsQuery(q ?? ''));
  const list = useRef<HTMLDivElement>(null);
  const search = useRef<HTMLInputElement>(null);
  const move = useRowFocus(list);
  useKeys({ j: () => move(1), k: () => move(-1), '/': () => search.current?.focus() });

  const bar = (
    <TopBar
      title="Runs"
      crumbs={
        <>
          <span>{org}</span>
          <Slash />
          <Crumb>Runs</Crumb>
        </>
      }
    >
      {runs.data && <span className="label">{plural(runs.data.total, 'run')}</span>}
      <input
        ref={search}
        type="search"
        className="input w-[220px]"
        placeholder="Find a run  /"
        aria-label="Find a run by name"
        defaultValue={q}
        onChange={(event) => void navigate({ search: { q: event.target.value || undefined }, replace: true })}
      />
    </TopBar>
  );
  if (runs.error)
    return (
      <>
        {bar}
        <ErrorState error={runs.error} retry={() => void runs.refetch()} />
      </>
    );
  if (!runs.data)
    return (
      <>
        {bar}
        <SkeletonRows />
      </>
    );
  if (runs.data.runs.length === 0 && !q)
    return (
      <>
        {bar}
        <EmptyRuns />
      </>
    );
  return (
    <>
      {bar}
      <div role="table" aria-label="Runs, newest first" ref={list} className="min-w-[960px]">
        <div role="row" className={`sticky top-0 z-10 grid border-b border-line bg-paper-0 px-2 ${columns}`}>
          {heads.map(([name, className], i) => (
            <span key={i} role="columnheader" className={`head-cell ${className === 'num' ? 'justify-end' : ''}`}>
              {name || <span className="sr-only">State</span>}
            </span>
          ))}
        </div>
        {runs.data.runs.map((run) => (
          <Row key={run.id} run={run} />
        ))}
      </div>
      {runs.data.runs.length === 0 && <p className="p-4 text-ink-3">No run has “{q}” in its name.</p>}
      {runs.data.total > runs.data.runs.length && (
        <p className="label p-4">
          The newest {formatCount(runs.data.runs.length)} of {formatCount(runs.data.total)} runs. Find an older one by its name.
        </p>
      )}
    </>
  );
}
