/**
 * The header `Retry-After` in milliseconds from `now`, from its seconds or its HTTP date (RFC 9110, section 10.2.3). Null without the header
 * or for other text; 0 for a date in the past.
 */
export function retryAfterMs(header: string | null | undefined, now: number): number | null {
  if (header == null) return null;
  const text = header.trim();
  if (/^\d+$/.test(text)) return Number(text) * 1_000;
  const date = /^[A-Z][a-z]{2,8}, .* GMT$/.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(date) ? null : Math.max(0, date - now);
}
