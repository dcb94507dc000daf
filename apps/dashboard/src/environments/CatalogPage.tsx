import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import type { EnvironmentView } from '@palestra/protocol';
import { useRef } from 'react';
import { environmentsQuery } from '../data/queries.ts';
import { formatCount, plural, UNKNOWN } from '../format/number.ts';
import { useKeys } from '../frame/keyboard.ts';
import { Crumb, TopBar } from '../frame/page.tsx';
import { useRowFocus } from '../frame/rowFocus.ts';
import { ErrorState, SkeletonRows } from '../frame/states.tsx';
import { EnvironmentStatus } from './EnvironmentStatus.tsx';

const columns = 'grid-cols-[minmax(170px,1.2fr)_minmax(220px,3fr)_minmax(130px,1fr)_80px_90px_116px]';

function Row({ environment }: { environment: EnvironmentView }) {
  const { owner, name } = environment;
  return (
    <Link to="/environments/$owner/$name" params={{ owner, name }} search={{}} role="row" data-row className={`row px-2 ${columns}`}>
      <span role="cell" className="cell" title={`${owner}/${name}`}>
        <span className="text-ink-3">{owner}/</span>
        <span className="strong">{name}</span>
        {environment.is_private && <span className="chip ml-2">private</span>}
      </span>
      <span role="cell" className="cell text-ink-2" title={environment.description}>
        {environment.description || UNKNOWN}
      </span>
      <span role="cell" className="cell text-ink-2">
        {environment.split_types.join(', ') || UNKNOWN}
      </span>
      <span role="cell" className="cell num">
        {formatCount(environment.total_task_count)}
      </span>
      <span role="cell" className="cell text-ink-3">
        {environment.source.kind === 'none' ? UNKNOWN : environment.source.kind}
      </span>
      <span role="cell" className="cell">
        <EnvironmentStatus environment={environment} />
      </span>
    </Link>
  );
}

export function CatalogPage() {
  const { q } = useSearch({ from: '/environments' });
  const navigate = useNavigate({ from: '/environments' });
  const environments = useQuery(environmentsQuery(q ?? ''));
  const list = useRef<HTMLDivElement>(null);
  const search = useRef<HTMLInputElement>(null);
  const move = useRowFocus(list);
  useKeys({ j: () => move(1), k: () => move(-1), '/': () => search.current?.focus() });
  const found = environments.data?.environments;
  return (
    <>
      <TopBar title="Environments" crumbs={<Crumb>Environments</Crumb>}>
        {environments.data && <span className="label">{plural(environments.data.total, 'environment')}</span>}
        <input
          ref={search}
          type="search"
          className="input w-[220px]"
          placeholder="Find an environment  /"
          aria-label="Find an environment by name or description"
          defaultValue={q}
          onChange={(event) => void navigate({ search: { q: event.target.value || undefined }, replace: true })}
        />
      </TopBar>
      {environments.error ? (
        <ErrorState error={environments.error} retry={() => void environments.refetch()} />
      ) : !found ? (
        <SkeletonRows count={6} />
      ) : found.length === 0 && !q ? (
        <div className="mx-auto flex max-w-[640px] flex-col gap-3 px-4 py-10">
          <h2 className="text-[16px] leading-[22px] strong">No environment yet</h2>
          <p className="text-ink-2">Add a running ORS server by its address. Its splits, counts and tools are then read from it.</p>
          <pre className="code-block">palestra env add acme/math --url http://127.0.0.1:8000</pre>
        </div>
      ) : (
        <div role="table" aria-label="Environments" ref={list} className="min-w-[880px]">
          <div role="row" className={`sticky top-0 z-10 grid border-b border-line bg-paper-0 px-2 ${columns}`}>
            {['Environment', 'Description', 'Splits', 'Tasks', 'Runs as', 'Status'].map((head) => (
              <span key={head} role="columnheader" className={`head-cell ${head === 'Tasks' ? 'justify-end' : ''}`}>
                {head}
              </span>
            ))}
          </div>
          {found.map((environment) => (
            <Row key={environment.id} environment={environment} />
          ))}
          {found.length === 0 && <p className="p-4 text-ink-3">No environment matches “{q}”.</p>}
        </div>
      )}
    </>
  );
}
