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

const columnsFor = (ask: (share: Share) => void): readonly Column<Share>[] => [
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
  { id: 'created', head: 'Made', track: '110px', align: 'right', cell: (share) => <Age iso={share.created_at} /> },
  {
    id: 'expires',
    head: 'Ends',
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
      <button type="button" className="link" onClick={() => ask(share)} aria-label={`Take back the link to ${share.rollout}`}>
        Take back…
      </button>
    ),
  },
];

/** Links of the organisation that show a rollout to people without an account. */
export function SharesTab() {
  const shares = useQuery(sharesQuery());
  const [asked, setAsked] = useState<Share | null>(null);
  const columns = useMemo(() => columnsFor(setAsked), []);
  return (
    <Loaded query={shares}>
      {(rows) => (
        <div className="flex h-full min-h-0 flex-col">
          <p className="flex-none border-b border-line px-4 py-3 text-ink-3">
            Whoever has one of these links reads its rollout, and nothing else, until it ends. A link is made on the page of a rollout.
          </p>
          <div className="min-h-[160px] flex-1">
            <DataTable
              label="Links that show a rollout"
              columns={columns}
              rows={rows}
              rowKey={({ id }) => id}
              minWidth={900}
              empty={<p className="p-4 text-ink-2">No rollout is shared. Open one, and choose “Share”.</p>}
            />
          </div>
          {asked && (
            <ConfirmDialog
              title="Take the link back?"
              action="Take it back now"
              onConfirm={() => revokeShare(asked.id)}
              onClose={() => setAsked(null)}
            >
              <p>
                The link that {asked.author} made to rollout <code>{asked.rollout}</code> shows nothing from now on, to nobody. Other links
                to the rollout stay.
              </p>
            </ConfirmDialog>
          )}
        </div>
      )}
    </Loaded>
  );
}
