import type { SeededRandom } from '@palestra/environment-kit';
import { combine, defineFamily, type Json, times } from './family.ts';

const KINDS = {
  divisors4: {
    says: 'that have exactly four divisors (1 and the number itself included)',
    test: (f: number[]) => (f.length === 2 && f[0] !== f[1]) || (f.length === 3 && f[0] === f[2]),
  },
  primes2: { says: 'with exactly two different prime factors', test: (f: number[]) => new Set(f).size === 2 },
  squarefree: {
    says: 'that are not divisible by the square of any number greater than 1',
    test: (f: number[]) => new Set(f).size === f.length,
  },
  smooth: { says: 'without a prime factor greater than 13', test: (f: number[]) => f.every((prime) => prime <= 13) },
  even: {
    says: 'with an even number of prime factors, counted with repetition (1 has none, which is even)',
    test: (f: number[]) => f.length % 2 === 0,
  },
  square: {
    says: 'that are divisible by the square of their largest prime factor (1 is not)',
    test: (f: number[]) => f.length > 1 && f.at(-1) === f.at(-2),
  },
} as const;
const KIND_PYTHON = {
  divisors4: 'len(f) == 2 and f[0] != f[1] or len(f) == 3 and f[0] == f[2]',
  primes2: 'len(set(f)) == 2',
  squarefree: 'len(set(f)) == len(f)',
  smooth: 'not f or f[-1] <= 13',
  even: 'len(f) % 2 == 0',
  square: 'len(f) > 1 and f[-1] == f[-2]',
} as const;
const KIND_MISTAKES = {
  divisors4: [' or len(f) == 3 and f[0] == f[2]', ''],
  primes2: ['len(set(f))', 'len(f)'],
  squarefree: ['len(set(f)) == len(f)', 'len(f) < 3'],
  smooth: ['<= 13', '< 13'],
  even: ['len(f)', 'len(set(f))'],
  square: ['len(f) > 1 and f[-1] == f[-2]', 'len(set(f)) < len(f)'],
} as const;
/** Python: the prime factors of a number, in their order. */
const FACTORS = `
      def factors(n):
          found = []
          p = 2
          while p * p <= n:
              while n % p == 0:
                  found.append(p)
                  n //= p
              p += 1
          if n > 1:
              found.append(n)
          return found
`;
const LARGEST = 30_000;

export const numberCounts = defineFamily(
  'number_counts',
  combine({ kind: ['divisors4', 'primes2', 'squarefree', 'smooth', 'even', 'square'], result: ['count', 'sum'] } as const),
  ({ kind, result }) => ({
    level: 4,
    parameters: 'ranges',
    statement: `
      For each range [a, b] of \`ranges\`, find ${result === 'count' ? 'how many numbers there are' : 'the sum of the numbers'} from a to b, both included, ${KINDS[kind].says}. Return the list of the results.

      There are at most 4000 ranges with 1 ≤ a ≤ b ≤ ${LARGEST}.`,
    reference(ranges: [number, number][]) {
      const least = new Uint32Array(LARGEST + 1);
      for (let prime = 2; prime <= LARGEST; prime += 1) {
        if (least[prime] === 0)
          for (let multiple = prime; multiple <= LARGEST; multiple += prime) if (least[multiple] === 0) least[multiple] = prime;
      }
      const totals = [0];
      for (let number = 1; number <= LARGEST; number += 1) {
        const factors: number[] = [];
        for (let rest = number; rest > 1; rest /= least[rest]!) factors.push(least[rest]!);
        totals.push(totals[number - 1]! + (KINDS[kind].test(factors) ? (result === 'count' ? 1 : number) : 0));
      }
      return ranges.map(([a, b]) => totals[b]! - totals[a - 1]!);
    },
    python: `${FACTORS}
      def solve(ranges):
          limit = max((b for a, b in ranges), default=0)
          totals = [0]
          for n in range(1, limit + 1):
              f = factors(n)
              totals.append(totals[-1] + (${result === 'count' ? '1' : 'n'} if ${KIND_PYTHON[kind]} else 0))
          return [totals[b] - totals[a - 1] for a, b in ranges]`,
    mistakes: [
      ['totals[a - 1]', 'totals[a]'],
      [KIND_MISTAKES[kind][0], KIND_MISTAKES[kind][1]],
    ],
    slow: [
      `${FACTORS}
      def solve(ranges):
          result = []
          for a, b in ranges:
              total = 0
              for n in range(a, b + 1):
                  f = factors(n)
                  total += ${result === 'count' ? '1' : 'n'} if ${KIND_PYTHON[kind]} else 0
              result.append(total)
          return result`,
    ],
    inputs: (random) => [
      [
        [
          [1, 10],
          [11, 20],
        ],
      ],
      [[[24, 36]]],
      [someRanges(random, 3, 200)],
      [[]],
      [[[1, 1]]],
      [
        [
          [2, 2],
          [4, 4],
          [8, 8],
          [9, 9],
          [36, 36],
          [210, 210],
        ],
      ],
      [[[1, 1000]]],
      ...times(7, () => [someRanges(random, random.integer(4, 12), random.pick([100, 2000]))]),
      [someRanges(random, 3000, LARGEST)],
    ],
  }),
);

const someRanges = (random: SeededRandom, count: number, limit: number): Json =>
  times(count, () => {
    const [a, b] = [random.integer(1, limit), random.integer(1, limit)];
    return [Math.min(a, b), Math.max(a, b)];
  });
