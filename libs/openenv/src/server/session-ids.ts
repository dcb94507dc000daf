import { createHash } from 'node:crypto';

/**
 * The SID of the n-th session of a connection. The first is the id that the client was given; the others follow from it, so that any process can find
 * out which session is open by now.
 */
export function derivedSid(id: string, number: number): string {
  return number === 0 ? id : uuidOf(`${id}/${number}`);
}

/** A UUID that follows from a text. */
export function uuidOf(text: string): string {
  const hex = createHash('sha256').update(text).digest('hex');
  const variant = ((Number.parseInt(hex[16]!, 16) & 0x3) | 0x8).toString(16);
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}
