import type { RollupTuple } from './rollup.sql.ts';

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

/** Width of windows over these moments: the least of a ladder that cuts them into not too many, and not too small ones. */
export function windowWidth(times: readonly number[]): number {
  const most = Math.max(1, Math.min(MAX_WINDOWS, Math.floor(times.length / MEAN_SIZE)));
  const first = times.reduce((a, b) => Math.min(a, b), Infinity);
  const last = times.reduce((a, b) => Math.max(a, b), -Infinity);
  const count = (width: number) => Math.floor(last / width) - Math.floor(first / width) + 1;
  const fits = WIDTHS_MS.find((width) => count(width) <= most);
  if (fits !== undefined) return fits;
  let width = WIDTHS_MS.at(-1)!;
  // Two moments beside an edge are two windows however wide these are.
  while (count(width) > Math.max(2, most)) width *= 2;
  return width;
}

/** Of rollouts in `seq` order, ascending; windows without any are left out. Windows begin at multiples of `width`. */
export function byWindow(tuples: readonly RollupTuple[], width: number): (ArrivalWindow & { tuples: RollupTuple[] })[] {
  const windows = new Map<number, RollupTuple[]>();
  for (const tuple of tuples) {
    const from = Math.floor(tuple[22] / width) * width;
    const own = windows.get(from);
    if (own) own.push(tuple);
    else windows.set(from, [tuple]);
  }
  return [...windows]
    .toSorted(([a], [b]) => a - b)
    .map(([from, own]) => ({ from, to: from + width, first_seq: own[0]![0], last_seq: own.at(-1)![0], tuples: own }));
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
