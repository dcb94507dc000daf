import type { BrowserSession } from '@palestra/protocol';
import { useQuery } from '@tanstack/react-query';
import { useMemo, useState } from 'react';
import { browserSessionsQuery, endBrowserSession, organisationQuery } from '../data/accounts.ts';
import { formatAbsolute } from '../format/time.ts';
import { Age } from '../frame/Age.tsx';
import { ConfirmDialog } from '../frame/ConfirmDialog.tsx';
import { Loaded } from '../frame/Loaded.tsx';
import { type Column, DataTable } from '../table/DataTable.tsx';
import { browserName } from './browser-name.ts';

const columnsFor = (signOut: (session: BrowserSession) => void): readonly Column<BrowserSession>[] => [
  {
    id: 'user',
    head: 'Member',
    track: 'minmax(140px,1fr)',
    phone: 'minmax(0,1fr)',
    title: ({ user }) => user,
    cell: ({ user }) => <span className="strong">{user}</span>,
  },
  {
    id: 'browser',
    head: 'Browser',
    track: 'minmax(160px,1.5fr)',
    phone: 'minmax(0,1fr)',
    title: ({ user_agent: agent }) => agent,
    cell: ({ user_agent: agent }) => browserName(agent),
  },
  {
    id: 'key',
    head: 'Signed in with',
    track: 'minmax(140px,1fr)',
    explain: 'Revoking the key signs the browser out',
    title: ({ key }) => key?.name,
    cell: ({ key }) => (key === null ? <span className="text-ink-3">sign-in link</span> : key.name),
  },
  {
    id: 'scopes',
    head: 'Scopes',
    track: 'minmax(180px,1.5fr)',
    title: ({ scopes }) => scopes.join(', '),
    cell: ({ scopes }) => <span className="text-ink-2">{scopes.join(', ')}</span>,
  },
  { id: 'created', head: 'Signed in', track: '110px', align: 'right', cell: (session) => <Age iso={session.created_at} /> },
  {
    id: 'expires',
    head: 'Expires',
    track: '180px',
    align: 'right',
    cell: ({ expires_at: end }) => <time dateTime={end}>{formatAbsolute(end)}</time>,
  },
  {
    id: 'actions',
    head: <span className="sr-only">Actions</span>,
    track: '100px',
    phone: '84px',
    align: 'right',
    cell: (session) => (
      <button
        type="button"
        className="link"
        onClick={() => signOut(session)}
        aria-label={`Sign out ${browserName(session.user_agent)} of ${session.user}`}
      >
        Sign out…
      </button>
    ),
  },
];

/** Signed-in browsers of the organisation. */
export function BrowsersTab() {
  const sessions = useQuery(browserSessionsQuery);
  const owner = useQuery(organisationQuery).data?.role === 'owner';
  const [signingOut, setSigningOut] = useState<BrowserSession | null>(null);
  const columns = useMemo(() => columnsFor(setSigningOut), []);
  return (
    <Loaded query={sessions}>
      {(rows) => (
        <div className="flex h-full min-h-0 flex-col">
          <p className="flex-none border-b border-line px-4 py-3 text-ink-3">
            {owner ? 'Browsers of all members of the organisation.' : 'Your browsers. Owners see the browsers of all members.'} A browser
            has the scopes of the key or link that signed it in.
          </p>
          <div className="min-h-[160px] flex-1">
            <DataTable
              label="Signed-in browsers"
              columns={columns}
              rows={rows}
              rowKey={({ id }) => id}
              minWidth={1000}
              empty={<p className="p-4 text-ink-2">No browser is signed in.</p>}
            />
          </div>
          {signingOut && (
            <ConfirmDialog
              title="Sign out this browser?"
              action="Sign out now"
              onConfirm={() => endBrowserSession(signingOut.id)}
              onClose={() => setSigningOut(null)}
            >
              <p>
                {browserName(signingOut.user_agent)} of <span className="strong">{signingOut.user}</span> will be signed out. Its pages and
                streams end within 10 s.
              </p>
              <p className="text-ink-2">
                {signingOut.key === null
                  ? 'Its user needs a new sign-in link.'
                  : `Everyone with the key ${signingOut.key.name} can sign in again. To prevent that, revoke the key.`}
              </p>
            </ConfirmDialog>
          )}
        </div>
      )}
    </Loaded>
  );
}
