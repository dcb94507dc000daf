import { createHash } from 'node:crypto';

/**
 * The SID of a session whose id its client chose: a UUID, like other SIDs. It differs between organisations, so that their ids neither
 * collide nor show which sessions others have (ADR 26).
 */
export function scopedSid(orgId: string, chosen: string): string {
  const hex = createHash('sha256')
    .update(JSON.stringify(['client sid', orgId, chosen]))
    .digest('hex');
  const variant = ((Number.parseInt(hex[16]!, 16) & 0x3) | 0x8).toString(16);
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}
