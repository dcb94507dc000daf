import jstat from 'jstat';
import { mersenne } from 'pure-rand/generator/mersenne';

/**
 * The numbers of `np.random.RandomState(seed).choice(n)`, one per call: MT19937 seeded by Knuth's rule, then 32-bit words masked to the next
 * power of two, rejected while too large. The same indices as NumPy's legacy generator, for n up to 2^32.
 */
export function numpyIndices(seed: number, n: number): () => number {
  if (n <= 1) return () => 0;
  const generator = mersenne(seed);
  const largest = n - 1;
  const mask = 0xffff_ffff >>> Math.clz32(largest);
  return () => {
    let drawn = (generator.next() & mask) >>> 0;
    while (drawn > largest) drawn = (generator.next() & mask) >>> 0;
    return drawn;
  };
}

/** `np.random.seed(seed); np.random.choice(n, size=size, replace=True)`. */
export function numpyChoice(seed: number, n: number, size: number): Uint32Array {
  const next = numpyIndices(seed, n);
  const indices = new Uint32Array(size);
  for (let i = 0; i < size; i += 1) indices[i] = next();
  return indices;
}

/** Numbers in [0, 1) of 53 bits, as NumPy's `random_sample` makes them. */
export function uniform(seed: number): () => number {
  const generator = mersenne(seed);
  const word = () => generator.next() >>> 0;
  return () => ((word() >>> 5) * 67_108_864 + (word() >>> 6)) / 9_007_199_254_740_992;
}

/** Draws how many of `n` trials succeed, each with probability `p`, in time that does not grow with n. */
export function binomial(n: number, p: number, random: () => number): number {
  if (n === 0 || p <= 0) return 0;
  if (p >= 1) return n;
  if (p > 0.5) return n - binomial(n, 1 - p, random);
  return n * p < 10 ? byInversion(n, p, random) : byRejection(n, p, random);
}

function byInversion(n: number, p: number, random: () => number): number {
  const odds = p / (1 - p);
  let chance = (1 - p) ** n;
  let left = random();
  let k = 0;
  while (left > chance && k < n) {
    left -= chance;
    k += 1;
    chance *= (odds * (n - k + 1)) / k;
  }
  return k;
}

/** BTRS, transformed rejection with squeeze (Hörmann 1993, "The generation of binomial random variates"); needs n·p >= 10, p <= 0.5. */
function byRejection(n: number, p: number, random: () => number): number {
  const { gammaln } = jstat.jStat;
  const spread = Math.sqrt(n * p * (1 - p));
  const b = 1.15 + 2.53 * spread;
  const a = -0.0873 + 0.0248 * b + 0.01 * p;
  const centre = n * p + 0.5;
  const squeeze = 0.92 - 4.2 / b;
  const alpha = (2.83 + 5.1 / b) * spread;
  const logOdds = Math.log(p / (1 - p));
  const mode = Math.floor((n + 1) * p);
  for (;;) {
    const u = random() - 0.5;
    const v = random();
    const aside = 0.5 - Math.abs(u);
    const k = Math.floor(((2 * a) / aside + b) * u + centre);
    if (aside >= 0.07 && v <= squeeze) return k;
    if (k < 0 || k > n) continue;
    const height = Math.log((v * alpha) / (a / (aside * aside) + b));
    const density = gammaln(mode + 1) + gammaln(n - mode + 1) - gammaln(k + 1) - gammaln(n - k + 1) + (k - mode) * logOdds;
    if (height <= density) return k;
  }
}
