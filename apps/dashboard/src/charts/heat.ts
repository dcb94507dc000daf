/** The colour of a count and the rewards in a bin of a heatmap. Pure. */

export const RAMP = 7;

/** The colour of a count: 1 to RAMP by its logarithm, so that small counts stay visible beside large ones; 0 for no rollouts. */
export function rampOf(count: number, most: number): number {
  if (count <= 0) return 0;
  if (most <= 1) return RAMP;
  return Math.min(RAMP, 1 + Math.floor((Math.log(count) / Math.log(most)) * RAMP));
}

/** The range of counts of each colour in use, for counts up to `most`. */
export function rampLegend(most: number): { colour: number; from: number; to: number }[] {
  const legend: { colour: number; from: number; to: number }[] = [];
  for (let colour = 1; colour <= RAMP; colour += 1) {
    const from = leastOf(colour, most);
    const to = colour === RAMP ? most : leastOf(colour + 1, most) - 1;
    if (from <= to) legend.push({ colour, from, to });
  }
  return legend;
}

function leastOf(colour: number, most: number): number {
  let guess = Math.max(1, Math.floor(most ** ((colour - 1) / RAMP)) - 1);
  while (guess <= most && rampOf(guess, most) < colour) guess += 1;
  return guess;
}

/** Bins of the API: over the whole range, or half of them on each side of zero when there are negative values. */
const API_BINS = 50;

export interface Heat {
  edges: number[];
  /** By column, then bin. */
  counts: number[][];
}

/** Merges pairs of bins if all values are on one side of zero, and drops empty bins at both ends outside of 0 to 1. */
export function shownHeat({ edges, counts }: Heat): Heat {
  const folded = edges[0]! < 0 ? { edges, counts } : fold(edges, counts);
  const filled = folded.edges.slice(0, -1).map((_edge, bin) => folded.counts.some((column) => column[bin]! > 0));
  const first = Math.min(
    filled.indexOf(true) < 0 ? Infinity : filled.indexOf(true),
    folded.edges.findIndex((edge) => edge >= 0),
  );
  const one = folded.edges.findIndex((edge) => edge >= 1);
  const last = Math.max(filled.lastIndexOf(true) + 1, one < 0 ? folded.edges.length - 1 : one);
  return { edges: folded.edges.slice(first, last + 1), counts: folded.counts.map((column) => column.slice(first, last)) };
}

function fold(edges: readonly number[], counts: readonly number[][]): Heat {
  return {
    edges: edges.filter((_edge, i) => i % 2 === 0),
    counts: counts.map((column) => Array.from({ length: column.length / 2 }, (_bin, i) => column[2 * i]! + column[2 * i + 1]!)),
  };
}

/**
 * Clauses of the query language for exactly the values between two edges. `whole` are all edges of the API's answer. A bin includes its edge
 * away from zero: (0.4, 0.42], below zero [-0.42, -0.4). The first bin from zero includes zero. The API bins by `ceil(|r| · bins / span)`,
 * and floating point puts some decimals one bin higher (0.28 in fiftieths). So an edge here is the largest number that the rule puts below it.
 */
export function binClauses(field: string, whole: readonly number[], low: number, high: number): string[] {
  const span = Math.max(Math.abs(whole[0]!), Math.abs(whole.at(-1)!));
  const perSide = whole[0]! < 0 ? API_BINS / 2 : API_BINS;
  const edge = (value: number) => String(lastBelow(Math.round((Math.abs(value) * perSide) / span), perSide, span));
  const from = low < 0 ? `${field}:>=-${edge(low)}` : low === 0 ? `${field}:>=0` : `${field}:>${edge(low)}`;
  const to = high > 0 ? `${field}:<=${edge(high)}` : high === 0 ? `${field}:<0` : `${field}:<-${edge(high)}`;
  return [from, to];
}

/** The largest number in the first `edge` bins on its side of zero. */
function lastBelow(edge: number, perSide: number, span: number): number {
  const inside = (value: number) => Math.ceil((value * perSide) / span) <= edge;
  let value = (edge * span) / perSide;
  while (!inside(value)) value = neighbour(value, -1n);
  for (let next = neighbour(value, 1n); inside(next); next = neighbour(value, 1n)) value = next;
  return value;
}

const bits = new DataView(new ArrayBuffer(8));
/** The next larger (`by` 1) or smaller (-1) positive double. */
function neighbour(value: number, by: bigint): number {
  bits.setFloat64(0, value);
  bits.setBigInt64(0, bits.getBigInt64(0) + by);
  return bits.getFloat64(0);
}
