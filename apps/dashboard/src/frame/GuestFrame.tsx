import { useQuery } from '@tanstack/react-query';
import { Link, Outlet } from '@tanstack/react-router';
import { type ReactNode, useLayoutEffect, useState } from 'react';
import { limitToSharedRollout } from '../data/guest.ts';
import { headerQuery } from '../data/rollout.ts';
import { formatAbsolute } from '../format/time.ts';
import './guest.css';
import { Guest } from './guest.ts';
import { TopBarSlot } from './page.tsx';

/** The frame of a shared rollout for a reader without an account: no navigation and no links to other pages. */
export function GuestFrame({ rollout, until }: { rollout: string; until: string }) {
  const [slot, setSlot] = useState<HTMLElement | null>(null);
  // A layout effect runs before the queries of the page, so that they request only what the share allows.
  useLayoutEffect(() => {
    limitToSharedRollout(rollout);
    return () => limitToSharedRollout(null);
  }, [rollout]);
  return (
    <Guest value>
      <TopBarSlot value={slot}>
        <div data-guest className="grid h-full grid-rows-[44px_minmax(0,1fr)]">
          <header className="flex min-w-0 items-center gap-3 border-b border-line px-4">
            <div ref={setSlot} className="flex min-w-0 flex-1 items-center gap-3" />
            <SharedBy rollout={rollout} until={until} />
          </header>
          <main id="main" tabIndex={-1} className="min-h-0 min-w-0 overflow-auto outline-none">
            <Outlet />
          </main>
        </div>
      </TopBarSlot>
    </Guest>
  );
}

function SharedBy({ rollout, until }: { rollout: string; until: string }): ReactNode {
  const header = useQuery(headerQuery(rollout)).data;
  const day = new Date(until).toLocaleDateString('en-GB', { dateStyle: 'medium' });
  return (
    <p className="flex-none text-ink-3" title={`The link expires on ${formatAbsolute(until)}`}>
      Shared by <span className="text-ink-1">{header?.run.org ?? 'its organisation'}</span>, until {day}
    </p>
  );
}

/** Why a reader without an account does not see a rollout. `sharedRollout`: the rollout of the link that they opened last. */
export function NotShared({ sharedRollout }: { sharedRollout: string | undefined }) {
  if (sharedRollout === undefined) return <>If you followed a shared link: it has expired or was revoked. Ask its sender for a new link.</>;
  return (
    <>
      The link that you opened shows{' '}
      <Link to="/rollout/$id" params={{ id: sharedRollout }} search={{}} className="link">
        another rollout
      </Link>
      , not this one.
    </>
  );
}
