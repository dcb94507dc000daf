/** Rollouts that arrived between two moments. Pages show it in place of a step where steps are not known (docs/reference/metrics.md#step-inference). */
export interface ArrivalWindow {
  /** Milliseconds since the epoch; `to` is not in it. */
  from: number;
  to: number;
  /** The range of `seq` of its rollouts, as decimal text. Other windows' rollouts may lie in it. */
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
/** Least mean number of rollouts per window. Fewer would be noise. */
const MEAN_SIZE = 8;

/** Arrival times, milliseconds since the epoch: how many, the first and the last. */
export interface Arrivals {
  count: number;
  first: number;
  last: number;
}

/** The smallest width of the ladder that gives neither too many nor too small windows. */
export function windowWidth({ count, first, last }: Arrivals): number {
  const most = Math.max(1, Math.min(MAX_WINDOWS, Math.floor(count / MEAN_SIZE)));
  const windows = (width: number) => Math.floor(last / width) - Math.floor(first / width) + 1;
  const fits = WIDTHS_MS.find((width) => windows(width) <= most);
  if (fits !== undefined) return fits;
  let width = WIDTHS_MS.at(-1)!;
  // Two moments beside an edge lie in two windows at any width.
  while (windows(width) > Math.max(2, most)) width *= 2;
  return width;
}

/** For people: `5 min`. */
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
