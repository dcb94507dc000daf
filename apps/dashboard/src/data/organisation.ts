import { store, stored } from '../theme/stored.ts';

/**
 * The organisation that this tab shows, by name: that of the address, else the one of the last page. It is a header of every request, so that tabs
 * can show different organisations, and a page never shows the data of another organisation than its address names.
 */
const KEY = 'palestra.organisation';
/** For streams, sockets and images, which cannot send a header (apps/api/src/accounts/authenticator.ts). */
const COOKIE = 'palestra_organisation';

/** The organisation that an address names; null: any. */
export function organisationOfAddress({ pathname, search }: { pathname: string; search: string }): string | null {
  const path = /^\/([^/]+)\/runs(?:\/|$)/.exec(pathname)?.[1];
  try {
    return path === undefined ? new URLSearchParams(search).get('org') : decodeURIComponent(path);
  } catch {
    return path ?? null;
  }
}

const ofTab = (): string | null => {
  try {
    return sessionStorage.getItem(KEY);
  } catch {
    return null;
  }
};
let current: string | null = null;

/** Reads the organisation of this tab, before the first request. */
export function readOrganisation(): void {
  current = organisationOfAddress(location) ?? ofTab() ?? stored(KEY);
  // The tab in front sets the cookie for its streams and images.
  const inFront = () => document.visibilityState === 'visible' && current !== null && writeCookie();
  addEventListener('focus', inFront);
  document.addEventListener('visibilitychange', inFront);
}

export const organisation = (): string | null => current;
export const organisationHeader = (): Record<string, string> =>
  current === null ? {} : { 'x-palestra-organisation': encodeURIComponent(current) };

/** From now on pages of this tab, and new tabs, show this organisation. Null: the one that the browser signed in to. */
export function chooseOrganisation(name: string | null): void {
  current = name;
  store(KEY, name);
  try {
    if (name === null) sessionStorage.removeItem(KEY);
    else sessionStorage.setItem(KEY, name);
  } catch {
    // Without storage the choice lasts until the page is closed.
  }
  writeCookie();
}

/** Loads the runs of another organisation. The page is loaded again, so that nothing of the old one stays. */
export function switchOrganisation(name: string): void {
  chooseOrganisation(name);
  location.assign(`/${encodeURIComponent(name)}/runs`);
}

function writeCookie(): void {
  const secure = location.protocol === 'https:' ? '; Secure' : '';
  const value = current === null ? '; Max-Age=0' : `${encodeURIComponent(current)}; Max-Age=31536000`;
  document.cookie = `${COOKIE}=${value}; Path=/; SameSite=Lax${secure}`;
}
