import { createHash } from 'node:crypto';

/**
 * The SID under which a session is kept whose id its client chose. Each organisation has its own: what one of them chooses neither collides
 * with the sessions of another one nor shows that they exist. A UUID, as the SIDs that the service chooses.
 */
export function scopedSid(orgId: string, chosen: string): string {
  const hex = createHash('sha256')
    .update(JSON.stringify(['client sid', orgId, chosen]))
    .digest('hex');
  const variant = ((Number.parseInt(hex[16]!, 16) & 0x3) | 0x8).toString(16);
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}
