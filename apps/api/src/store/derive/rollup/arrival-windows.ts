/** Rollouts that came between two moments: what stands for a step where steps are not known (dashboard.md 2.4). */
export interface ArrivalWindow {
  /** Milliseconds since the epoch; `to` is not in it. */
  from: number;
  to: number;
  /** Of its rollouts, as decimal text: they lie in this range, with some of the windows beside it. */
  first_seq: string;
  last_seq: string;
}

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const WIDTHS_MS = [
  ...[1, 2, 5, 10, 30].map((seconds) => seconds * SECOND),
  ...[1, 2, 5, 10, 30].map((minutes) => minutes * MINUTE),
  ...[1, 2, 6, 12].map((hours) => hours * HOUR),
  ...[1, 2, 7, 30].map((days) => days * DAY),
];
const MAX_WINDOWS = 100;
/** Rollouts of a window on average, at least: fewer would be noise. */
const MEAN_SIZE = 8;

/** Moments of arrival, milliseconds since the epoch: how many, the first and the last. */
export interface Arrivals {
  count: number;
  first: number;
  last: number;
}

/** Width of windows over these moments: the least of a ladder that cuts them into not too many, and not too small ones. */
export function windowWidth({ count, first, last }: Arrivals): number {
  const most = Math.max(1, Math.min(MAX_WINDOWS, Math.floor(count / MEAN_SIZE)));
  const windows = (width: number) => Math.floor(last / width) - Math.floor(first / width) + 1;
  const fits = WIDTHS_MS.find((width) => windows(width) <= most);
  if (fits !== undefined) return fits;
  let width = WIDTHS_MS.at(-1)!;
  // Two moments beside an edge are two windows however wide these are.
  while (windows(width) > Math.max(2, most)) width *= 2;
  return width;
}

/** In words of a reader: `5 min`. */
export function widthInWords(width: number): string {
  const units = [
    [DAY, 'd'],
    [HOUR, 'h'],
    [MINUTE, 'min'],
    [SECOND, 's'],
  ] as const;
  const [unit, name] = units.find(([ms]) => width >= ms) ?? units.at(-1)!;
  return `${width / unit} ${name}`;
}
