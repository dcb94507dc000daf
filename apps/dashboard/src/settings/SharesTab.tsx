import type { Share } from '@palestra/protocol';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useMemo, useState } from 'react';
import { sharesQuery, revokeShare } from '../data/shares.ts';
import { formatAbsolute } from '../format/time.ts';
import { Age } from '../frame/Age.tsx';
import { ConfirmDialog } from '../frame/ConfirmDialog.tsx';
import { Loaded } from '../frame/Loaded.tsx';
import { type Column, DataTable } from '../table/DataTable.tsx';

const columnsFor = (revoke: (share: Share) => void): readonly Column<Share>[] => [
  {
    id: 'rollout',
    head: 'Rollout',
    track: 'minmax(300px,2fr)',
    cell: ({ rollout, message }) => (
      <>
        <Link to="/rollout/$id" params={{ id: rollout }} {...(message !== null && { hash: `m-${message}` })} className="link mono">
          {rollout}
        </Link>
        {message !== null && <span className="text-ink-3"> at message {message}</span>}
      </>
    ),
  },
  { id: 'author', head: 'Shared by', track: 'minmax(120px,1fr)', title: ({ author }) => author, cell: ({ author }) => author },
  { id: 'created', head: 'Created', track: '110px', align: 'right', cell: (share) => <Age iso={share.created_at} /> },
  {
    id: 'expires',
    head: 'Expires',
    track: '180px',
    align: 'right',
    cell: (share) => <time dateTime={share.expires_at}>{formatAbsolute(share.expires_at)}</time>,
  },
  {
    id: 'actions',
    head: <span className="sr-only">Actions</span>,
    track: '120px',
    align: 'right',
    cell: (share) => (
      <button type="button" className="link" onClick={() => revoke(share)} aria-label={`Revoke the link to ${share.rollout}`}>
        Revoke…
      </button>
    ),
  },
];

/** Shared links of the organisation. */
export function SharesTab() {
  const shares = useQuery(sharesQuery());
  const [revoking, setRevoking] = useState<Share | null>(null);
  const columns = useMemo(() => columnsFor(setRevoking), []);
  return (
    <Loaded query={shares}>
      {(rows) => (
        <div className="flex h-full min-h-0 flex-col">
          <p className="flex-none border-b border-line px-4 py-3 text-ink-3">
            Everyone with one of these links can read its rollout until the link expires. To create a link, open a rollout and choose
            “Share”.
          </p>
          <div className="min-h-[160px] flex-1">
            <DataTable
              label="Shared links"
              columns={columns}
              rows={rows}
              rowKey={({ id }) => id}
              minWidth={900}
              empty={<p className="p-4 text-ink-2">No rollout is shared. Open one, and choose “Share”.</p>}
            />
          </div>
          {revoking && (
            <ConfirmDialog
              title="Revoke the link?"
              action="Revoke link"
              onConfirm={() => revokeShare(revoking.id)}
              onClose={() => setRevoking(null)}
            >
              <p>
                The link of {revoking.author} to rollout <code>{revoking.rollout}</code> stops working. Other links to the rollout stay
                valid.
              </p>
            </ConfirmDialog>
          )}
        </div>
      )}
    </Loaded>
  );
}
