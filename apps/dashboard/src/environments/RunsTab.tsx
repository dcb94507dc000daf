import { useQuery } from '@tanstack/react-query';
import { useNavigate, useRouter } from '@tanstack/react-router';
import { errorInstead } from '../data/http.ts';
import { type EnvironmentRun, environmentRunsQuery } from '../data/environments.ts';
import { meQuery } from '../data/queries.ts';
import { formatCount, formatReward, plural, UNKNOWN } from '../format/number.ts';
import { Age } from '../frame/Age.tsx';
import { ErrorState, SkeletonRows } from '../frame/states.tsx';
import { type Column, DataTable } from '../table/DataTable.tsx';

const columns: Column<EnvironmentRun>[] = [
  {
    id: 'name',
    head: 'Run',
    track: 'minmax(200px,2fr)',
    phone: 'minmax(0,1fr)',
    title: ({ name }) => name,
    cell: ({ name }) => <span className="strong">{name}</span>,
  },
  {
    id: 'step',
    head: 'Last step',
    track: '90px',
    align: 'right',
    cell: ({ last_step: step }) => (step === null ? UNKNOWN : formatCount(step)),
  },
  { id: 'rollouts', head: 'Rollouts', track: '100px', phone: '72px', align: 'right', cell: ({ rollouts }) => formatCount(rollouts) },
  {
    id: 'reward',
    head: 'Mean reward',
    explain: 'Over the scored rollouts of this environment',
    track: '110px',
    phone: '88px',
    align: 'right',
    title: ({ scored }) => `of ${plural(scored, 'scored rollout')}`,
    cell: ({ reward_mean: mean }) => formatReward(mean),
  },
  { id: 'scored', head: 'Scored', track: '90px', align: 'right', cell: ({ scored }) => formatCount(scored) },
  {
    id: 'at',
    head: 'Last event',
    track: '100px',
    align: 'right',
    cell: ({ updated_at: at }) => (
      <span className="text-ink-3">
        <Age iso={at} />
      </span>
    ),
  },
];

/** Runs whose rollouts used the environment. */
export function RunsTab({ owner, name }: { owner: string; name: string }) {
  const runs = useQuery(environmentRunsQuery(owner, name));
  const me = useQuery(meQuery);
  const navigate = useNavigate();
  const router = useRouter();
  const error = errorInstead(runs);
  if (error) return <ErrorState error={error} retry={() => void runs.refetch()} />;
  if (!runs.data) return <SkeletonRows />;
  return (
    <DataTable
      label="Runs that used the environment, newest activity first"
      columns={columns}
      rows={runs.data.runs}
      rowKey={({ id }) => id}
      minWidth={720}
      onOpen={({ name: run }, newTab) => {
        if (!me.data) return;
        const target = { to: '/$org/runs/$run', params: { org: me.data.org.name, run }, search: { env: `${owner}/${name}` } } as const;
        if (newTab) window.open(router.buildLocation(target).href, '_blank', 'noopener');
        else void navigate(target);
      }}
      empty={
        <p className="p-4 text-ink-3">
          No rollouts of your organisation use this environment yet. Upload rollouts with <code>environment: “{`${owner}/${name}`}”</code>,
          or open sessions with a run.
        </p>
      }
    />
  );
}
