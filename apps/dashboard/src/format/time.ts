import { UNKNOWN } from './number.ts';

/** `212 ms`, `4.1 s`, `3 m 12 s`, `2 h 5 m`. */
export function formatDuration(ms: number | null | undefined): string {
  if (typeof ms !== 'number' || !Number.isFinite(ms) || ms < 0) return UNKNOWN;
  if (ms < 999.5) return `${Math.round(ms)} ms`;
  if (ms < 59_950) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.max(60, Math.floor(ms / 1000));
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} m ${seconds % 60} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} m`;
}

/** A setting such as a timeout, without zero parts: `15 m`, `24 h`, `1 m 30 s`, `30 s`. */
export function formatSpan(ms: number): string {
  return formatDuration(ms)
    .replace(/ 0 [ms]$/, '')
    .replace(/\.0 s$/, ' s');
}

/** Time since `iso` to one unit: `4 s`, `12 min`, `3 h`, `5 d`, then the date in the reader's zone. */
export function formatAge(iso: string | null | undefined, now: number): string {
  const then = iso ? Date.parse(iso) : Number.NaN;
  if (Number.isNaN(then)) return UNKNOWN;
  const seconds = Math.max(0, Math.floor((now - then) / 1000));
  if (seconds < 60) return `${seconds} s ago`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h ago`;
  if (seconds < 30 * 86_400) return `${Math.floor(seconds / 86_400)} d ago`;
  const at = new Date(then);
  return [at.getFullYear(), at.getMonth() + 1, at.getDate()].map((part) => String(part).padStart(2, '0')).join('-');
}

/** Creates the formatter once, on first use: `toLocaleString` creates a new one per call, which is slow on pages with many times. */
const lazily = (style: Intl.DateTimeFormatOptions) => {
  let formatter: Intl.DateTimeFormat | undefined;
  return (then: number): string => (formatter ??= new Intl.DateTimeFormat('en-GB', style)).format(then);
};
const clock = lazily({ timeStyle: 'medium' });
const date = lazily({ dateStyle: 'medium' });
const absolute = lazily({ dateStyle: 'medium', timeStyle: 'medium' });

/** `14:03:22` in the reader's zone, for lists of one day; the date is shown on hover. */
export function formatClock(iso: string | null | undefined): string {
  const then = iso ? Date.parse(iso) : Number.NaN;
  return Number.isNaN(then) ? UNKNOWN : clock(then);
}

/** `25 Dec 2026`, in the reader's zone. */
export function formatDate(iso: string | null | undefined): string {
  const then = iso ? Date.parse(iso) : Number.NaN;
  return Number.isNaN(then) ? UNKNOWN : date(then);
}

/** The absolute time shown on hover, in the reader's zone. */
export function formatAbsolute(iso: string | null | undefined): string | undefined {
  const then = iso ? Date.parse(iso) : Number.NaN;
  return Number.isNaN(then) ? undefined : absolute(then);
}
