import type { SessionHolder } from '@palestra/protocol';
import { UNKNOWN } from '../format/number.ts';

/** The beginning of an id. The tooltip has all of it. */
export const shortId = (id: string): string => id.slice(0, 8);

/** The name of the API key, or the user of a browser session. */
export function holderName(holder: SessionHolder): string {
  if (holder.key) return holder.key.name || `${holder.key.prefix}…`;
  return holder.user === null ? UNKNOWN : `${holder.user}, in a browser`;
}

/** User and key, for tooltips and the details of a session. */
export function holderText({ user, key }: SessionHolder): string {
  return [user, key && `key ${key.name} (${key.prefix}…)`].filter(Boolean).join(', ') || UNKNOWN;
}
