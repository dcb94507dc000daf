import { useQuery } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import type { EnvironmentUsage, EnvironmentView } from '@palestra/protocol';
import { lazy, Suspense, useEffect, useMemo, useRef, useState } from 'react';
import { errorInstead } from '../data/http.ts';
import { usageQuery } from '../data/environments.ts';
import { environmentsQuery } from '../data/queries.ts';
import { formatCount, formatReward, plural, UNKNOWN } from '../format/number.ts';
import { Age } from '../frame/Age.tsx';
import { Dialog } from '../frame/Dialog.tsx';
import { useKeys } from '../frame/keyboard.ts';
import { Crumb, TopBar } from '../frame/page.tsx';
import { ErrorState, SkeletonRows } from '../frame/states.tsx';
import { type Column, DataTable, type Sort } from '../table/DataTable.tsx';
import { pythonLibraries } from './python-libraries.ts';
import { EnvironmentStatus } from './EnvironmentStatus.tsx';

const AddEnvironment = lazy(async () => ({ default: (await import('./AddEnvironment.tsx')).AddEnvironment }));

interface Row {
  environment: EnvironmentView;
  usage: EnvironmentUsage['environments'][number] | null;
  live: number | null;
}

function rowsOf(environments: readonly EnvironmentView[], usage: EnvironmentUsage | undefined): Row[] {
  const known = usage?.environments ?? [];
  return environments.map((environment) => {
    const slug = `${environment.owner}/${environment.name}`;
    return {
      environment,
      usage: known.find((one) => one.environment_id === environment.id) ?? known.find((one) => one.environment === slug) ?? null,
      live: usage === undefined ? null : (usage.live_sessions[slug] ?? 0),
    };
  });
}

const figures: Record<string, (row: Row) => number | string | null> = {
  name: ({ environment }) => `${environment.owner}/${environment.name}`,
  tasks: ({ environment }) => environment.total_task_count,
  live: ({ live }) => live,
  runs: ({ usage }) => usage?.runs ?? 0,
  rollouts: ({ usage }) => usage?.rollouts ?? 0,
  reward: ({ usage }) => usage?.reward_mean ?? null,
  used: ({ usage }) => usage?.last_at ?? null,
};

/** Sorts rows; unknown values come last in both orders. */
function sorted(rows: readonly Row[], { id, order }: Sort): Row[] {
  const figure = figures[id] ?? figures['name']!;
  const sign = order === 'asc' ? 1 : -1;
  return rows.toSorted((a, b) => {
    const [x, y] = [figure(a), figure(b)];
    if (x === null || y === null) return x === y ? 0 : x === null ? 1 : -1;
    return sign * (x < y ? -1 : x > y ? 1 : 0);
  });
}

const faint = (text: string) => <span className="text-ink-3">{text}</span>;
const columns: Column<Row>[] = [
  {
    id: 'name',
    head: 'Environment',
    track: 'minmax(180px,1.3fr)',
    phone: 'minmax(0,1fr)',
    sortable: true,
    title: ({ environment: { owner, name } }) => `${owner}/${name}`,
    cell: ({ environment: { owner, name, is_private: hidden } }) => (
      <>
        <span className="text-ink-3">{owner}/</span>
        <span className="strong">{name}</span>
        {hidden && <span className="chip ml-2">Private</span>}
      </>
    ),
  },
  {
    id: 'description',
    head: 'Description',
    track: 'minmax(160px,2.4fr)',
    title: ({ environment }) => environment.description || undefined,
    cell: ({ environment }) => <span className="text-ink-2">{environment.description || UNKNOWN}</span>,
  },
  {
    id: 'version',
    head: 'Version',
    track: '62px',
    align: 'right',
    title: ({ environment }) => (environment.source.kind === 'none' ? 'No server yet' : `Runs as ${environment.source.kind}`),
    cell: ({ environment }) => (environment.version === null ? faint(UNKNOWN) : formatCount(environment.version)),
  },
  {
    id: 'splits',
    head: 'Splits',
    track: 'minmax(90px,.8fr)',
    title: ({ environment }) => environment.split_types.join(', ') || undefined,
    cell: ({ environment }) => <span className="text-ink-2">{environment.split_types.join(', ') || UNKNOWN}</span>,
  },
  {
    id: 'tasks',
    head: 'Tasks',
    track: '66px',
    align: 'right',
    sortable: true,
    cell: ({ environment }) => formatCount(environment.total_task_count),
  },
  {
    id: 'live',
    head: 'Live',
    explain: 'Open sessions of your organisation',
    track: '54px',
    align: 'right',
    sortable: true,
    cell: ({ live }) => (live ? formatCount(live) : faint(live === null ? UNKNOWN : '0')),
  },
  {
    id: 'runs',
    head: 'Runs',
    explain: 'Runs of your organisation that used the environment',
    track: '58px',
    align: 'right',
    sortable: true,
    cell: ({ usage }) => (usage ? formatCount(usage.runs) : faint('0')),
  },
  {
    id: 'rollouts',
    head: 'Rollouts',
    track: '74px',
    align: 'right',
    sortable: true,
    cell: ({ usage }) => (usage ? formatCount(usage.rollouts) : faint('0')),
  },
  {
    id: 'reward',
    head: 'Mean reward',
    explain: 'Mean over all scored rollouts of your organisation',
    track: '92px',
    phone: '84px',
    align: 'right',
    sortable: true,
    title: ({ usage }) => (usage ? `of ${plural(usage.scored, 'scored rollout')}` : undefined),
    cell: ({ usage }) => formatReward(usage?.reward_mean),
  },
  {
    id: 'used',
    head: 'Last run',
    track: '92px',
    align: 'right',
    sortable: true,
    cell: ({ usage }) => <span className="text-ink-3">{usage?.last_at ? <Age iso={usage.last_at} /> : UNKNOWN}</span>,
  },
  {
    id: 'status',
    head: 'Status',
    track: '104px',
    phone: '96px',
    cell: ({ environment }) => <EnvironmentStatus environment={environment} />,
  },
];

function ReadyToAdd({ onChoose }: { onChoose: (library: string) => void }) {
  return (
    <section aria-labelledby="ready-to-add" className="flex flex-col gap-1">
      <h2 id="ready-to-add" className="strong">
        Ready to add
      </h2>
      <ul className="flex flex-col gap-1">
        {pythonLibraries.map(({ id, about }) => (
          <li key={id} className="flex flex-wrap items-baseline gap-x-3">
            <button type="button" className="link" onClick={() => onChoose(id)}>
              {id}
            </button>
            <span className="text-ink-3">{about}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}

export function CatalogPage() {
  const { q } = useSearch({ from: '/environments' });
  const navigate = useNavigate();
  const environments = useQuery(environmentsQuery(q ?? ''));
  const usage = useQuery(usageQuery);
  const search = useRef<HTMLInputElement>(null);
  // A link or Back changes the address without the field.
  useEffect(() => {
    if (search.current && search.current !== document.activeElement) search.current.value = q ?? '';
  }, [q]);
  const [sort, setSort] = useState<Sort>({ id: 'name', order: 'asc' });
  // The tab of the dialog, or null while it is closed.
  const [adding, setAdding] = useState<string | null>(null);
  useKeys({ '/': () => search.current?.focus() });
  const error = errorInstead(environments);
  const found = environments.data?.environments;
  const rows = useMemo(() => sorted(rowsOf(found ?? [], usage.data), sort), [found, usage.data, sort]);
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
          onChange={(event) => void navigate({ to: '/environments', search: { q: event.target.value || undefined }, replace: true })}
        />
        <button type="button" className="button primary" onClick={() => setAdding('deploy')}>
          Add environment
        </button>
      </TopBar>
      <Dialog title="Add environment" open={adding !== null} onClose={() => setAdding(null)} width={640}>
        <Suspense fallback={<SkeletonRows count={3} />}>
          <AddEnvironment source={adding ?? 'deploy'} />
        </Suspense>
      </Dialog>
      {error ? (
        <ErrorState error={error} retry={() => void environments.refetch()} />
      ) : !found ? (
        <SkeletonRows count={6} />
      ) : found.length === 0 && !q ? (
        <div className="mx-auto flex max-w-[640px] flex-col gap-3 px-4 py-10">
          <h2 className="text-[16px] leading-[22px] strong">No environments yet</h2>
          <p className="text-ink-2">
            Choose “Add environment” to register a running server by its URL. Palestra reads its splits, tasks and tools, and tries a
            session. In a shell:
          </p>
          <pre className="code-block" tabIndex={0}>
            palestra env push --url http://127.0.0.1:8000 --name acme/math
          </pre>
          <ReadyToAdd onChoose={setAdding} />
        </div>
      ) : (
        <div className="flex h-full min-h-0 flex-col">
          <div className="min-h-[160px] flex-1">
            <DataTable
              label="Environments"
              columns={columns}
              rows={rows}
              rowKey={({ environment }) => environment.id}
              sort={sort}
              onSort={setSort}
              minWidth={960}
              onOpen={({ environment: { owner, name } }, newTab) => {
                if (newTab) window.open(`/environments/${encodeURIComponent(owner)}/${encodeURIComponent(name)}`, '_blank', 'noopener');
                else void navigate({ to: '/environments/$owner/$name', params: { owner, name }, search: {} });
              }}
              empty={<p className="p-4 text-ink-3">No environments match “{q}”.</p>}
            />
          </div>
          <div className="flex-none border-t border-line px-4 py-3">
            <ReadyToAdd onChoose={setAdding} />
          </div>
        </div>
      )}
    </>
  );
}
