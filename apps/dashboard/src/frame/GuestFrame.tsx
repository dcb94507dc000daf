import { useQuery } from '@tanstack/react-query';
import { Link, Outlet } from '@tanstack/react-router';
import { type ReactNode, useLayoutEffect, useState } from 'react';
import { limitToSharedRollout } from '../data/guest.ts';
import { headerQuery } from '../data/rollout.ts';
import { formatAbsolute } from '../format/time.ts';
import './guest.css';
import { Guest } from './guest.ts';
import { TopBarSlot } from './page.tsx';

/** The room around a rollout that a link shows to somebody without an account: no rail, and nothing that leads elsewhere. */
export function GuestFrame({ rollout, until }: { rollout: string; until: string }) {
  const [slot, setSlot] = useState<HTMLElement | null>(null);
  // Layout effects come before the page's queries begin: what the link does not show is not asked for.
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
    <p className="flex-none text-ink-3" title={`The link ends on ${formatAbsolute(until)}`}>
      shared by <span className="text-ink-1">{header?.run.org ?? 'its organisation'}</span>, until {day}
    </p>
  );
}

/** Why somebody without an account sees no rollout at its address. `instead`: what the link that they opened last shows. */
export function NotShown({ instead }: { instead: string | undefined }) {
  if (instead === undefined)
    return <>If a link brought you to this rollout: it has ended or was taken back. Ask who sent it for another.</>;
  return (
    <>
      The link that you opened shows{' '}
      <Link to="/rollout/$id" params={{ id: instead }} search={{}} className="link">
        another rollout
      </Link>
      , not this one.
    </>
  );
}
