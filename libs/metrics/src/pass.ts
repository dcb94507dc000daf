/** `1 - C(n-c, k) / C(n, k)` as the product that does not overflow (Chen et al. 2021); null when n < k. */
export function passAtK(n: number, c: number, k: number): number | null {
  if (n < k || k < 1) return null;
  if (n - c < k) return 1;
  let failing = 1;
  for (let j = n - c + 1; j <= n; j += 1) failing *= 1 - k / j;
  return 1 - failing;
}

/** `C(c, k) / C(n, k)`: all of k samples pass; null when n < k. */
export function passHatK(n: number, c: number, k: number): number | null {
  if (n < k || k < 1) return null;
  let passing = 1;
  for (let i = 0; i < k && passing > 0; i += 1) passing *= Math.max(0, c - i) / (n - i);
  return passing;
}

/** 1, 2, 4, ... up to n: the ks that prime-rl and slime print. */
export function powersOfTwo(n: number): number[] {
  const ks: number[] = [];
  for (let k = 1; k <= n; k *= 2) ks.push(k);
  return ks;
}

/** The ks of groups of which the largest has `largest` rollouts: powers of two up to it, and the most common size itself. */
export function passSizes(largest: number, common: number): number[] {
  return [...new Set([...powersOfTwo(largest), ...(common > 0 ? [common] : [])])].toSorted((a, b) => a - b);
}

/** The size that most groups have, the larger of equally common ones; 0 without groups. Sizes can occur more than once. */
export function mostCommonSize(sizes: Iterable<readonly [size: number, groups: number]>): number {
  const counts = new Map<number, number>();
  for (const [size, groups] of sizes) counts.set(size, (counts.get(size) ?? 0) + groups);
  let [common, most] = [0, 0];
  for (const [size, groups] of counts) if (groups > most || (groups === most && size > common)) [common, most] = [size, groups];
  return common;
}
