import type { SessionHolder } from '@palestra/protocol';
import { UNKNOWN } from '../format/number.ts';

/** Enough of an id to recognise it; the whole is on hover. */
export const shortId = (id: string): string => id.slice(0, 8);

/** `trainer-2`, else who it was in a browser. */
export function holderName(holder: SessionHolder): string {
  if (holder.key) return holder.key.name || `${holder.key.prefix}…`;
  return holder.user === null ? UNKNOWN : `${holder.user}, in a browser`;
}

/** Whole: for hover and the facts of a session. */
export function holderText({ user, key }: SessionHolder): string {
  return [user, key && `key ${key.name} (${key.prefix}…)`].filter(Boolean).join(', ') || UNKNOWN;
}
