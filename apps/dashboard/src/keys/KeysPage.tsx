import type { ApiKeyView } from '@palestra/protocol';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useMemo, useState } from 'react';
import { revokeApiKey } from '../data/accounts.ts';
import { apiKeysQuery } from '../data/queries.ts';
import { formatCount } from '../format/number.ts';
import { formatAbsolute, formatDate } from '../format/time.ts';
import { Age } from '../frame/Age.tsx';
import { ConfirmDialog } from '../frame/ConfirmDialog.tsx';
import { Crumb, TopBar } from '../frame/page.tsx';
import { ErrorState, SkeletonRows } from '../frame/states.tsx';
import { type Column, DataTable } from '../table/DataTable.tsx';
import { CreateKey } from './CreateKey.tsx';

const isExpired = ({ expires_at: end }: ApiKeyView): boolean => end !== null && Date.parse(end) <= Date.now();

const columnsFor = (revoke: (key: ApiKeyView) => void): readonly Column<ApiKeyView>[] => [
  {
    id: 'name',
    head: 'Name',
    track: 'minmax(120px,1.5fr)',
    phone: 'minmax(0,1fr)',
    title: ({ name }) => name,
    cell: ({ name }) => <span className="strong">{name}</span>,
  },
  { id: 'user', head: 'Member', track: 'minmax(80px,1fr)', title: ({ user }) => user, cell: ({ user }) => user },
  { id: 'prefix', head: 'Begins with', track: '96px', cell: ({ prefix }) => <code>{prefix}…</code> },
  {
    id: 'scopes',
    head: 'Scopes',
    track: 'minmax(216px,2fr)',
    title: ({ scopes }) => scopes.join(', '),
    cell: ({ scopes }) => <span className="text-ink-2">{scopes.join(', ')}</span>,
  },
  {
    id: 'limit',
    head: 'Sessions',
    track: '76px',
    align: 'right',
    explain: 'Maximum number of sessions that the key can have open at the same time',
    cell: ({ max_sessions: limit }) =>
      limit === null ? (
        <span className="text-ink-3" title="The default of the server">
          Default
        </span>
      ) : (
        formatCount(limit)
      ),
  },
  { id: 'created', head: 'Created', track: '92px', align: 'right', cell: (key) => <Age iso={key.created_at} /> },
  {
    id: 'used',
    head: 'Last used',
    track: '100px',
    phone: '96px',
    align: 'right',
    explain: 'Updated at most once a minute',
    cell: (key) => (key.last_used_at === null ? <span className="text-ink-3">Never</span> : <Age iso={key.last_used_at} />),
  },
  {
    id: 'expires',
    head: 'Expires',
    track: '110px',
    align: 'right',
    cell: ({ expires_at: end }) =>
      end === null ? (
        <span className="text-ink-3">Never</span>
      ) : (
        <time dateTime={end} title={formatAbsolute(end)}>
          {formatDate(end)}
        </time>
      ),
  },
  {
    id: 'state',
    head: <span className="sr-only">Revoke</span>,
    track: '152px',
    phone: '148px',
    align: 'right',
    cell: (key) =>
      key.revoked_at === null && isExpired(key) ? (
        <span className="text-ink-3">Expired</span>
      ) : key.revoked_at === null ? (
        <button type="button" className="link" onClick={() => revoke(key)} aria-label={`Revoke ${key.name}`}>
          Revoke
        </button>
      ) : (
        <span className="text-ink-3">
          Revoked <Age iso={key.revoked_at} />
        </span>
      ),
  },
];

/** API keys of the organisation. */
export function KeysPage() {
  const apiKeys = useQuery(apiKeysQuery);
  const [revoking, setRevoking] = useState<ApiKeyView | null>(null);
  const columns = useMemo(() => columnsFor(setRevoking), []);
  return (
    <>
      <TopBar title="API keys" crumbs={<Crumb>API keys</Crumb>}>
        <Link to="/check" search={{}} className="button">
          Check an upload
        </Link>
      </TopBar>
      {apiKeys.data ? (
        <div className="flex h-full min-h-0 flex-col max-[760px]:h-auto">
          <CreateKey />
          <div className="min-h-[200px] flex-1">
            <DataTable label="API keys" columns={columns} rows={apiKeys.data.keys} rowKey={({ id }) => id} minWidth={1070} />
          </div>
        </div>
      ) : apiKeys.error ? (
        <ErrorState error={apiKeys.error} retry={() => void apiKeys.refetch()} />
      ) : (
        <SkeletonRows count={4} />
      )}
      {revoking && (
        <ConfirmDialog
          title={`Revoke ${revoking.name}?`}
          action={`Revoke ${revoking.prefix}… now`}
          onConfirm={() => revokeApiKey(revoking.id)}
          onClose={() => setRevoking(null)}
        >
          <p>
            The key <span className="strong">{revoking.name}</span>, which begins with <code>{revoking.prefix}</code>, is rejected on all
            replicas within 5 s. A trainer that still uses it loses its sessions and uploads.
          </p>
          <p className="text-ink-2">You cannot undo this. The uploads of the key are kept.</p>
        </ConfirmDialog>
      )}
    </>
  );
}
