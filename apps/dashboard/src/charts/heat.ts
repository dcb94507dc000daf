/** The arithmetic of a heatmap: which colour a count has, and which rewards a bin holds. Pure. */

export const RAMP = 7;

/** 1 to RAMP by the logarithm of the count, so that a few rollouts beside many stay visible; 0 for none: paper. */
export function rampOf(count: number, most: number): number {
  if (count <= 0) return 0;
  if (most <= 1) return RAMP;
  return Math.min(RAMP, 1 + Math.floor((Math.log(count) / Math.log(most)) * RAMP));
}

/** The least count of each colour that some count up to `most` has. */
export function rampLegend(most: number): { colour: number; from: number; to: number }[] {
  const legend: { colour: number; from: number; to: number }[] = [];
  // Whole counts only: at most a few thousand a cell; beyond that their logarithm says enough.
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

/** Bins of the API: over the whole range, or on each side of zero when there are negative values. */
const API_BINS = 50;

export interface Heat {
  edges: number[];
  /** By column, then bin. */
  counts: number[][];
}

/** Two bins as one where all are on one side of zero, and without what is empty above and below: at least 0 to 1 of a reward. */
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
 * Exactly the values between two edges as clauses of the query language. `whole` are all edges of the API's answer: a bin holds its edge
 * away from zero, (0.4, 0.42], below zero [-0.42, -0.4), and the first one from zero on holds zero. Its rule is `ceil(|r| · bins / span)`,
 * which puts some decimals one bin further than they look (0.28 of fiftieths), so that an edge is the last number that the rule puts below it.
 */
export function binClauses(field: string, whole: readonly number[], low: number, high: number): string[] {
  const span = Math.max(Math.abs(whole[0]!), Math.abs(whole.at(-1)!));
  const perSide = whole[0]! < 0 ? API_BINS / 2 : API_BINS;
  const edge = (value: number) => String(lastBelow(Math.round((Math.abs(value) * perSide) / span), perSide, span));
  const from = low < 0 ? `${field}:>=-${edge(low)}` : low === 0 ? `${field}:>=0` : `${field}:>${edge(low)}`;
  const to = high > 0 ? `${field}:<=${edge(high)}` : high === 0 ? `${field}:<0` : `${field}:<-${edge(high)}`;
  return [from, to];
}

/** The largest number that belongs to the first `edge` bins on its side of zero. */
function lastBelow(edge: number, perSide: number, span: number): number {
  const inside = (value: number) => Math.ceil((value * perSide) / span) <= edge;
  let value = (edge * span) / perSide;
  while (!inside(value)) value = neighbour(value, -1n);
  for (let next = neighbour(value, 1n); inside(next); next = neighbour(value, 1n)) value = next;
  return value;
}

const bits = new DataView(new ArrayBuffer(8));
/** The next positive number up or down. */
function neighbour(value: number, by: bigint): number {
  bits.setFloat64(0, value);
  bits.setBigInt64(0, bits.getBigInt64(0) + by);
  return bits.getFloat64(0);
}
