import { createHash } from 'node:crypto';

/**
 * The SID of session `number` of a connection. The first is the connection's id; the others are derived from it, so that any process can
 * find the open session.
 */
export function derivedSid(id: string, number: number): string {
  return number === 0 ? id : uuidOf(`${id}/${number}`);
}

/** Derives a UUID from a text. */
export function uuidOf(text: string): string {
  const hex = createHash('sha256').update(text).digest('hex');
  const variant = ((Number.parseInt(hex[16]!, 16) & 0x3) | 0x8).toString(16);
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}
