import type { Share } from '@palestra/protocol';
import { useQuery } from '@tanstack/react-query';
import { useMemo, useState } from 'react';
import { sharesQuery, revokeShare } from '../data/shares.ts';
import { formatAbsolute } from '../format/time.ts';
import { Age } from '../frame/Age.tsx';
import { ConfirmDialog } from '../frame/ConfirmDialog.tsx';
import { Loaded } from '../frame/Loaded.tsx';
import { type Column, DataTable } from '../table/DataTable.tsx';

/** What the link shows, in words. */
function nameOf({ kind, rollouts, runs, q }: Share): string {
  const names = runs.map(({ name }) => name).join(', ');
  switch (kind) {
    case 'rollout':
      return `Rollout ${rollouts[0]}`;
    case 'rollouts':
      return `Rollouts ${rollouts.map((id) => id.slice(0, 8)).join(', ')}`;
    case 'run':
      return `Overview of ${names}`;
    case 'runs':
      return `Comparison of ${names}`;
    case 'query':
      return q === '' ? `All rollouts of ${names}` : `Rollouts of ${names} that match ${q}`;
  }
}

const columnsFor = (revoke: (share: Share) => void): readonly Column<Share>[] => [
  {
    id: 'shown',
    head: 'Shows',
    track: 'minmax(300px,2fr)',
    phone: 'minmax(0,1fr)',
    title: nameOf,
    cell: (share) => (
      <>
        <a href={share.path} className="link">
          {nameOf(share)}
        </a>
        {share.message !== null && <span className="text-ink-3"> at message {share.message}</span>}
        {share.with_rollouts && <span className="text-ink-3">, with rollouts</span>}
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
    phone: '80px',
    align: 'right',
    cell: (share) => (
      <button type="button" className="link" onClick={() => revoke(share)} aria-label={`Revoke the link to ${nameOf(share)}`}>
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
            Everyone with one of these links can read what it shows until the link expires. To create a link, open a rollout, a run, its
            list of rollouts or a comparison, and choose “Share”.
          </p>
          <div className="min-h-[160px] flex-1">
            <DataTable
              label="Shared links"
              columns={columns}
              rows={rows}
              rowKey={({ id }) => id}
              minWidth={900}
              empty={<p className="p-4 text-ink-2">No shared links. Open a rollout, a run or a comparison, and choose “Share”.</p>}
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
                The link of {revoking.author} to “{nameOf(revoking)}” stops working. Other links to it stay valid.
              </p>
            </ConfirmDialog>
          )}
        </div>
      )}
    </Loaded>
  );
}
