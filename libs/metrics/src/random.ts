import { mersenne } from 'pure-rand/generator/mersenne';

/**
 * `np.random.seed(seed); np.random.choice(n, size=size, replace=True)`: MT19937 seeded by Knuth's rule, then 32-bit words masked to the
 * next power of two, rejected while too large. The same indices as NumPy's legacy generator, for n up to 2^32.
 */
export function numpyChoice(seed: number, n: number, size: number): Uint32Array {
  const indices = new Uint32Array(size);
  if (n <= 1) return indices;
  const generator = mersenne(seed);
  const largest = n - 1;
  const mask = 0xffff_ffff >>> Math.clz32(largest);
  for (let i = 0; i < size; i += 1) {
    let drawn = (generator.next() & mask) >>> 0;
    while (drawn > largest) drawn = (generator.next() & mask) >>> 0;
    indices[i] = drawn;
  }
  return indices;
}
