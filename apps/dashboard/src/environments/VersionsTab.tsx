import { useQuery } from '@tanstack/react-query';
import { versionsQuery, type VersionView } from '../data/environments.ts';
import { formatCount, UNKNOWN } from '../format/number.ts';
import { Age } from '../frame/Age.tsx';
import { ErrorState, SkeletonRows } from '../frame/states.tsx';
import { type Column, DataTable } from '../table/DataTable.tsx';

const columns: Column<VersionView>[] = [
  {
    id: 'number',
    head: 'Version',
    track: '70px',
    phone: '58px',
    align: 'right',
    cell: ({ number }) => <span className="strong">{formatCount(number)}</span>,
  },
  {
    id: 'source',
    head: 'Runs as',
    track: 'minmax(160px,1.4fr)',
    phone: 'minmax(0,1fr)',
    title: ({ source }) => source.url,
    cell: ({ source }) => <span className={source.url ? 'mono' : ''}>{source.url ?? source.kind}</span>,
  },
  {
    id: 'variants',
    head: 'Variants',
    track: 'minmax(120px,1fr)',
    title: ({ variants }) => variants.join(', '),
    cell: ({ variants }) => variants.join(', ') || UNKNOWN,
  },
  {
    id: 'tools',
    head: 'Tools',
    track: 'minmax(160px,1.4fr)',
    title: ({ tools }) => tools.join(', '),
    cell: ({ tools }) => <span className="mono text-ink-2">{tools.join(' ') || UNKNOWN}</span>,
  },
  { id: 'tasks', head: 'Tasks', track: '80px', phone: '56px', align: 'right', cell: ({ num_tasks: count }) => formatCount(count) },
  {
    id: 'asked',
    head: 'Discovered',
    explain: 'When Palestra last read splits and tools from the server',
    track: '100px',
    align: 'right',
    cell: ({ discovered_at: at }) => <span className="text-ink-3">{at === null ? 'never' : <Age iso={at} />}</span>,
  },
  {
    id: 'made',
    head: 'Created',
    track: '100px',
    phone: '92px',
    align: 'right',
    cell: ({ created_at: at }) => (
      <span className="text-ink-3">
        <Age iso={at} />
      </span>
    ),
  },
];

/** Immutable versions, newest first. A session keeps the version that it began with. */
export function VersionsTab({ owner, name }: { owner: string; name: string }) {
  const versions = useQuery(versionsQuery(owner, name));
  if (versions.error) return <ErrorState error={versions.error} retry={() => void versions.refetch()} />;
  if (!versions.data) return <SkeletonRows />;
  return (
    <DataTable
      label="Versions, newest first"
      columns={columns}
      rows={versions.data.versions}
      rowKey={({ id }) => id}
      minWidth={860}
      empty={
        <div className="p-4 text-ink-3">
          <p>This environment has no server yet.</p>
          <pre
            className="code-block mt-2 inline-block"
            tabIndex={0}
          >{`palestra env push --url http://127.0.0.1:8000 --name ${owner}/${name}`}</pre>
        </div>
      }
    />
  );
}
