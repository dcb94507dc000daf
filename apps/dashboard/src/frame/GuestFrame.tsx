import type { OpenShare } from '@palestra/protocol';
import { Outlet } from '@tanstack/react-router';
import { type ReactNode, useLayoutEffect, useState } from 'react';
import { limitToShare } from '../data/guest.ts';
import { formatAbsolute } from '../format/time.ts';
import './guest.css';
import { SharedLink } from './guest.ts';
import { TopBarSlot } from './page.tsx';

/** The frame of shared pages for a reader without an account: no navigation and no links to other pages. `isOpened`: the page of the link itself. */
export function GuestFrame({ share, isOpened }: { share: OpenShare; isOpened: boolean }) {
  const [slot, setSlot] = useState<HTMLElement | null>(null);
  // A layout effect runs before the queries of the page, so that they request only what the link allows.
  useLayoutEffect(() => {
    limitToShare(share);
    return () => limitToShare(null);
  }, [share]);
  return (
    <SharedLink value={share}>
      <TopBarSlot value={slot}>
        <div data-guest className="grid h-full grid-rows-[44px_minmax(0,1fr)]">
          <header className="flex min-w-0 items-center gap-3 border-b border-line px-4">
            {!isOpened && (
              <a href={share.path} className="link flex-none">
                ← Shared page
              </a>
            )}
            <div ref={setSlot} className="flex min-w-0 flex-1 items-center gap-3" />
            <SharedBy share={share} />
          </header>
          <main id="main" tabIndex={-1} className="min-h-0 min-w-0 overflow-auto outline-none">
            <Outlet />
          </main>
        </div>
      </TopBarSlot>
    </SharedLink>
  );
}

function SharedBy({ share: { org, expires_at: until } }: { share: OpenShare }): ReactNode {
  const day = new Date(until).toLocaleDateString('en-GB', { dateStyle: 'medium' });
  return (
    <p className="flex-none text-ink-3" title={`The link expires on ${formatAbsolute(until)}`}>
      Shared by <span className="text-ink-1">{org}</span>
      <span className="max-[560px]:hidden">, until {day}</span>
    </p>
  );
}

/** Why a reader without an account does not see a page. `share`: the link that they opened last. */
export function NotShared({ share }: { share: OpenShare | null }) {
  if (share === null) return <>If you opened a shared link, it has expired or was revoked. Ask the sender for a new one.</>;
  return (
    <>
      The link that you opened shows{' '}
      <a href={share.path} className="link">
        another page
      </a>
      , not this one.
    </>
  );
}
