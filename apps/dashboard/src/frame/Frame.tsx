import { useQuery } from '@tanstack/react-query';
import type { MeView, OpenShare } from '@palestra/protocol';
import { Link, Outlet, useLocation, useMatchRoute } from '@tanstack/react-router';
import { type ReactNode, useEffect, useState } from 'react';
import { type Address, isShown } from '../data/guest.ts';
import { ApiError } from '../data/http.ts';
import { organisationOfAddress } from '../data/organisation.ts';
import { meQuery } from '../data/queries.ts';
import { openedShareQuery } from '../data/shares.ts';
import { feed } from '../data/live/useFeed.ts';
import { foldRail, useFoldedRail } from '../theme/rail.ts';
import { switchTheme, useTheme } from '../theme/theme.ts';
import { AlertBell } from './AlertBell.tsx';
import { GuestFrame, NotShared } from './GuestFrame.tsx';
import { HelpDialog } from './HelpDialog.tsx';
import { OrganisationMenu } from './OrganisationMenu.tsx';
import { TopBarSlot } from './page.tsx';
import { PaletteButton } from './PaletteButton.tsx';
import { ErrorState, NoOrganisation, SignIn, SkeletonRows } from './states.tsx';

const icons = {
  runs: 'M2.5 11.5 6 7l3 2.5 4.5-6',
  sessions: 'M2.5 3.5h11v9h-11zM5 6.5 7 8 5 9.5M8.5 10h2.5',
  environments: 'M2.5 5 8 2l5.5 3v6L8 14l-5.5-3zM2.5 5 8 8l5.5-3M8 8v6',
  reviews: 'M2.5 4.5l1.2 1.2 2-2.2M2.5 10.5l1.2 1.2 2-2.2M8 5h5.5M8 11h5.5',
  exports: 'M8 2v7.5M5 7l3 3 3-3M2.5 11v2.5h11V11',
  settings: 'M2.5 4.5h7M12.5 4.5h1M2.5 11.5h1M6.5 11.5h7M9.5 3v3h3V3zM3.5 10v3h3v-3z',
  alerts: 'M8 2a4 4 0 0 0-4 4v3l-1.5 2.5h11L12 9V6a4 4 0 0 0-4-4zM6.5 13.5a1.6 1.6 0 0 0 3 0',
  checker: 'M9 2H4v12h8V5zM9 2v3h3M6 9.5l1.5 1.5L10 8',
  keys: 'M9.5 9.5a3.5 3.5 0 1 0-3-3L2 11v3h3v-2h2v-1.5z',
  fold: 'M9.5 4 5.5 8l4 4',
  unfold: 'M6.5 4l4 4-4 4',
  sun: 'M8 5a3 3 0 1 0 0 6 3 3 0 0 0 0-6zM8 1v1.5M8 13.5V15M1 8h1.5M13.5 8H15M3 3l1 1M12 12l1 1M13 3l-1 1M4 12l-1 1',
  moon: 'M13.5 9.5A6 6 0 0 1 6.5 2.5a6 6 0 1 0 7 7z',
};

function Icon({ name }: { name: keyof typeof icons }) {
  return (
    <svg width="16" height="16" viewBox="0 0 16 16" aria-hidden="true" className="flex-none">
      <path d={icons[name]} fill="none" stroke="currentColor" strokeWidth="1.3" strokeLinecap="round" strokeLinejoin="round" />
    </svg>
  );
}

function Brand({ words = 'rail-words' }: { words?: string }) {
  return (
    <Link to="/" className="flex h-[44px] items-center gap-2 px-2 font-semibold tracking-tight" aria-label="Palestra, home">
      <svg width="18" height="18" viewBox="0 0 18 18" aria-hidden="true">
        <path
          d="M2 16V9a7 7 0 0 1 14 0v7M6 16V9.5a3 3 0 0 1 6 0V16"
          fill="none"
          stroke="currentColor"
          strokeWidth="1.6"
          strokeLinecap="round"
        />
      </svg>
      <span className={words}>Palestra</span>
    </Link>
  );
}

function ThemeButton() {
  const theme = useTheme();
  return (
    <button
      type="button"
      onClick={switchTheme}
      className="grid size-[28px] place-items-center rounded-[4px] text-ink-3 hover:bg-paper-2 hover:text-ink-1"
      aria-label={theme === 'dark' ? 'Use the light theme' : 'Use the dark theme'}
      title={theme === 'dark' ? 'Light theme' : 'Dark theme'}
    >
      <Icon name={theme === 'dark' ? 'sun' : 'moon'} />
    </button>
  );
}

const railLink =
  'flex h-[28px] items-center gap-2 rounded-[4px] px-[7px] text-ink-2 hover:bg-paper-2 hover:text-ink-1 aria-[current=page]:bg-paper-2 aria-[current=page]:text-ink-1 aria-[current=page]:font-[550]';

function Rail({ me }: { me: MeView | undefined }) {
  const org = me?.org.name;
  const folded = useFoldedRail();
  return (
    <div className="flex min-w-0 flex-col border-r border-line bg-paper-1 px-2 max-[760px]:flex-row max-[760px]:items-center max-[760px]:gap-1 max-[760px]:overflow-hidden max-[760px]:border-b max-[760px]:border-r-0">
      <div
        className={`flex flex-none items-center justify-between gap-1 ${folded ? 'min-[761px]:flex-col min-[761px]:gap-0 min-[761px]:pb-1' : ''}`}
      >
        <Brand />
        {org !== undefined && <AlertBell />}
      </div>
      {org && <PaletteButton />}
      {org && (
        <nav
          aria-label="Main"
          className="flex flex-col gap-px whitespace-nowrap max-[760px]:min-w-0 max-[760px]:flex-1 max-[760px]:flex-row max-[760px]:justify-between max-[760px]:overflow-x-auto"
        >
          <Link
            to="/$org/runs"
            params={{ org }}
            search={{}}
            className={railLink}
            title={folded ? 'Runs' : undefined}
            activeProps={{ 'aria-current': 'page' }}
          >
            <Icon name="runs" /> <span className="rail-words">Runs</span>
          </Link>
          <Link
            to="/sessions"
            search={{}}
            className={railLink}
            title={folded ? 'Sessions' : undefined}
            activeProps={{ 'aria-current': 'page' }}
          >
            <Icon name="sessions" /> <span className="rail-words">Sessions</span>
          </Link>
          <Link
            to="/environments"
            search={{}}
            className={railLink}
            title={folded ? 'Environments' : undefined}
            activeProps={{ 'aria-current': 'page' }}
          >
            <Icon name="environments" /> <span className="rail-words">Environments</span>
          </Link>
          <Link
            to="/reviews"
            search={{}}
            className={railLink}
            title={folded ? 'Review' : undefined}
            activeProps={{ 'aria-current': 'page' }}
          >
            <Icon name="reviews" /> <span className="rail-words">Review</span>
          </Link>
          <Link to="/exports" className={railLink} title={folded ? 'Exports' : undefined} activeProps={{ 'aria-current': 'page' }}>
            <Icon name="exports" /> <span className="rail-words">Exports</span>
          </Link>
          <Link
            to="/alerts"
            search={{}}
            // A narrow window has the bell, which leads there.
            className={`${railLink} max-[760px]:hidden`}
            title={folded ? 'Alerts' : undefined}
            activeOptions={{ includeSearch: false }}
            activeProps={{ 'aria-current': 'page' }}
          >
            <Icon name="alerts" /> <span className="rail-words">Alerts</span>
          </Link>
          <Link
            to="/check"
            search={{}}
            // In a narrow window: the page of the API keys, which links to it, and the palette.
            className={`${railLink} max-[760px]:hidden`}
            title={folded ? 'Check an upload' : undefined}
            activeOptions={{ includeSearch: false }}
            activeProps={{ 'aria-current': 'page' }}
          >
            <Icon name="checker" /> <span className="rail-words">Check an upload</span>
          </Link>
          <Link to="/keys" className={railLink} title={folded ? 'API keys' : undefined} activeProps={{ 'aria-current': 'page' }}>
            <Icon name="keys" /> <span className="rail-words">API keys</span>
          </Link>
          <Link to="/settings" className={railLink} title={folded ? 'Settings' : undefined} activeProps={{ 'aria-current': 'page' }}>
            <Icon name="settings" /> <span className="rail-words">Settings</span>
          </Link>
        </nav>
      )}
      <div
        className={`-mx-2 mt-auto flex min-h-[44px] flex-wrap items-center gap-1 border-t border-line px-4 py-2 max-[760px]:-mr-1 max-[760px]:ml-0 max-[760px]:my-auto max-[760px]:border-t-0 max-[760px]:flex-nowrap max-[760px]:p-0 ${folded ? 'min-[761px]:h-auto min-[761px]:flex-col min-[761px]:px-0 min-[761px]:py-2' : ''}`}
      >
        {me && <OrganisationMenu me={me} />}
        <span className="flex-1" />
        <button
          type="button"
          onClick={() => foldRail(!folded)}
          className="grid size-[28px] place-items-center rounded-[4px] text-ink-3 hover:bg-paper-2 hover:text-ink-1 max-[760px]:hidden"
          aria-label="Collapse navigation"
          aria-pressed={folded}
          title={folded ? 'Show labels' : 'Show icons only'}
        >
          <Icon name={folded ? 'unfold' : 'fold'} />
        </button>
        <ThemeButton />
        <HelpDialog />
      </div>
    </div>
  );
}

/** What the address names, for share links; null on pages that no link shows. */
function useSharedAddress(): Address | null {
  const match = useMatchRoute();
  const { search } = useLocation();
  const rollout = match({ to: '/rollout/$id' });
  if (rollout !== false) return { rollout: rollout.id.toLowerCase() };
  const list = match({ to: '/$org/runs/$run/rollouts' });
  const overview = match({ to: '/$org/runs/$run' });
  const run = list === false ? overview : list;
  if (run !== false) return { run: { org: run.org, name: run.run, list: list !== false } };
  if (match({ to: '/compare' }) === false) return null;
  const { runs = '', rollouts = '' } = search as { runs?: string; rollouts?: string };
  const ids = (text: string) => text.toLowerCase().split(',').filter(Boolean);
  return { compared: { runs: ids(runs), rollouts: ids(rollouts) } };
}

/** The frame of every page: navigation rail, top bar and content. Shows the sign-in form, or a shared page, without a session. */
export function Frame() {
  const me = useQuery(meQuery);
  const [slot, setSlot] = useState<HTMLElement | null>(null);
  const location = useLocation();
  const wanted = organisationOfAddress({ pathname: location.pathname, search: location.searchStr });
  // A browser without accounts has one organisation, whatever the address says.
  const elsewhere = me.data !== undefined && wanted !== null && wanted !== me.data.org.name;
  const refused = me.error instanceof ApiError && me.error.code === 'organisation_not_found';
  const signedIn = me.data !== undefined && !elsewhere;
  useEffect(() => (signedIn ? feed.start() : undefined), [signedIn]);
  const address = useSharedAddress();
  const isStranger = refused || elsewhere || (me.error instanceof ApiError && me.error.status === 401);
  const mayBeGuest = isStranger && address !== null;
  const share = useQuery({ ...openedShareQuery, enabled: mayBeGuest });
  if (mayBeGuest && share.data && isShown(share.data, address))
    return <GuestFrame share={share.data} isOpened={isOpened(share.data, address)} />;

  let content: ReactNode = <Outlet />;
  if (me.isPending || (mayBeGuest && share.isPending)) content = <SkeletonRows />;
  else if (refused || elsewhere) content = <NoOrganisation name={wanted ?? ''} />;
  else if (mayBeGuest && share.data !== undefined) content = <SignIn detail={<NotShared share={share.data} />} />;
  else if (me.error instanceof ApiError) content = <ErrorState error={me.error} retry={() => void me.refetch()} />;

  if (isStranger || (me.data === undefined && me.isError)) return <StrangerFrame>{content}</StrangerFrame>;
  return (
    <TopBarSlot value={slot}>
      <a href="#main" className="sr-only focus:not-sr-only focus:absolute focus:z-20 focus:bg-paper-0 focus:p-2">
        Skip to content
      </a>
      <div className="grid h-full grid-cols-[var(--rail)_minmax(0,1fr)] grid-rows-[44px_minmax(0,1fr)] max-[760px]:grid-cols-[minmax(0,1fr)] max-[760px]:grid-rows-[44px_minmax(44px,auto)_minmax(0,1fr)]">
        <div className="row-span-2 grid min-w-0 max-[760px]:row-span-1">
          <Rail me={elsewhere ? undefined : me.data} />
        </div>
        <header
          ref={setSlot}
          className="flex min-w-0 items-center gap-x-3 border-b border-line px-4 max-[560px]:flex-wrap max-[560px]:gap-y-[6px] max-[560px]:py-[6px]"
        />
        <main id="main" tabIndex={-1} className="min-h-0 min-w-0 overflow-auto outline-none">
          {content}
        </main>
      </div>
    </TopBarSlot>
  );
}

/** The frame without a session or a server: no navigation, because nothing can be opened. */
function StrangerFrame({ children }: { children: ReactNode }) {
  return (
    <div className="grid h-full grid-rows-[44px_minmax(0,1fr)]">
      <header className="flex items-center justify-between border-b border-line px-2">
        <Brand words="" />
        <ThemeButton />
      </header>
      <main id="main" tabIndex={-1} className="min-h-0 min-w-0 overflow-auto pb-4 outline-none">
        {children}
      </main>
    </div>
  );
}

/** Whether this is the page that the link leads to, and not a rollout of its list. */
const isOpened = ({ kind, rollouts }: OpenShare, address: Address): boolean =>
  address.rollout === undefined ? kind !== 'run' || address.run?.list !== true : kind === 'rollout' && rollouts.includes(address.rollout);
