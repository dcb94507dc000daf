import { defineFamily, times } from './family.ts';

/** A property of the digits of a number, as an automaton: its first state, a step per digit (null: never), and the accepted states. */
interface DigitRule {
  says: string;
  start: number;
  step(state: number, digit: number): number | null;
  accept(state: number): boolean;
  python: { step: string; accept: string };
  mistake: [string, string];
}
const DIGIT_RULES: Record<string, DigitRule> = {
  no4: {
    says: 'have no digit 4',
    start: 0,
    step: (_, d) => (d === 4 ? null : 0),
    accept: () => true,
    python: { step: 'None if d == 4 else 0', accept: 'True' },
    mistake: ['d == 4', 'd == 5'],
  },
  no13: {
    says: 'have no digit 3 directly after a digit 1',
    start: 0,
    step: (s, d) => (s === 1 && d === 3 ? null : d),
    accept: () => true,
    python: { step: 'None if s == 1 and d == 3 else d', accept: 'True' },
    mistake: ['s == 1', 's != 1'],
  },
  rising: {
    says: 'have digits that never become smaller from left to right',
    start: 0,
    step: (s, d) => (d < s ? null : d),
    accept: () => true,
    python: { step: 'None if d < s else d', accept: 'True' },
    mistake: ['d < s', 'd <= s'],
  },
  unlike: {
    says: 'have no two equal digits side by side',
    start: 10,
    step: (s, d) => (s === d ? null : d),
    accept: () => true,
    python: { step: 'None if s == d else d', accept: 'True' },
    mistake: ['s == d', 'abs(s - d) == 1'],
  },
  seven: {
    says: 'have a sum of digits that is divisible by 7',
    start: 0,
    step: (s, d) => (s + d) % 7,
    accept: (s) => s === 0,
    python: { step: '(s + d) % 7', accept: 's == 0' },
    mistake: ['s == 0', 's == 1'],
  },
  twoNines: {
    says: 'have exactly two digits 9',
    start: 0,
    step: (s, d) => Math.min(3, s + (d === 9 ? 1 : 0)),
    accept: (s) => s === 2,
    python: { step: 'min(3, s + (d == 9))', accept: 's == 2' },
    mistake: ['s == 2', 's >= 2'],
  },
  oddEven: {
    says: 'have as many odd as even digits',
    start: 0,
    step: (s, d) => s + (d % 2 === 1 ? 1 : -1),
    accept: (s) => s === 0,
    python: { step: 's + (1 if d % 2 else -1)', accept: 's == 0' },
    mistake: ['s == 0', 's <= 0'],
  },
  balance: {
    says: 'have an odd number of digits greater than 6',
    start: 0,
    step: (s, d) => (d > 6 ? 1 - s : s),
    accept: (s) => s === 1,
    python: { step: '1 - s if d > 6 else s', accept: 's == 1' },
    mistake: ['d > 6', 'd >= 6'],
  },
  three: {
    says: 'have at most three different digits',
    start: 0,
    step: (s, d) => (bits(s | (1 << d)) > 3 ? null : s | (1 << d)),
    accept: () => true,
    python: { step: 'None if bin(s | 1 << d).count("1") > 3 else s | 1 << d', accept: 'True' },
    mistake: ['> 3', '>= 3'],
  },
  eleven: {
    says: 'are divisible by 11 and have no digit 0',
    start: 0,
    step: (s, d) => (d === 0 ? null : (s * 10 + d) % 11),
    accept: (s) => s === 0,
    python: { step: 'None if d == 0 else (s * 10 + d) % 11', accept: 's == 0' },
    mistake: ['s == 0', 's == 10'],
  },
  peak: {
    says: 'contain the digit 5 at least once and the digit 8 at most once',
    start: 0,
    step: (s, d) => (d === 8 && s >= 2 ? null : (s & 2) + (d === 8 ? 2 : 0) + (s & 1 || d === 5 ? 1 : 0)),
    accept: (s) => (s & 1) === 1,
    python: { step: 'None if d == 8 and s >= 2 else (s & 2) + (2 if d == 8 else 0) + (1 if s & 1 or d == 5 else 0)', accept: 's & 1 == 1' },
    mistake: ['s & 1 == 1', 's >= 1'],
  },
  even: {
    says: 'begin with an even digit and end with an odd digit',
    start: 10,
    step: (s, d) => (s === 10 ? (d % 2 === 0 ? d : null) : d),
    accept: (s) => s % 2 === 1,
    python: { step: '(d if d % 2 == 0 else None) if s == 10 else d', accept: 's % 2 == 1' },
    mistake: ['s % 2 == 1', 's % 2 == 0'],
  },
};
const bits = (mask: number): number => mask.toString(2).replaceAll('0', '').length;
const MOST = 10 ** 15;

export const digitCounts = defineFamily('digit_counts', Object.values(DIGIT_RULES), ({ says, start, step, accept, python, mistake }) => ({
  level: 5,
  parameters: 'limit',
  statement: `
    Return how many whole numbers from 1 to \`limit\`, written in decimal without leading zeros, ${says}.

    \`limit\` is from 1 to 10^15.`,
  reference(limit: number) {
    const digits = [...String(limit)].map(Number);
    // counts: numbers smaller than the prefix of the limit, by state; edge: state of the prefix itself.
    let counts = new Map<number, number>();
    let edge: number | null = start;
    digits.forEach((digit, place) => {
      const next = new Map<number, number>();
      const add = (state: number | null, count: number) => state !== null && next.set(state, (next.get(state) ?? 0) + count);
      for (const [state, count] of counts) for (let d = 0; d < 10; d += 1) add(step(state, d), count);
      if (place > 0) for (let d = 1; d < 10; d += 1) add(step(start, d), 1);
      if (edge !== null) {
        for (let d = place === 0 ? 1 : 0; d < digit; d += 1) add(step(edge, d), 1);
        edge = step(edge, digit);
      }
      counts = next;
    });
    let total = edge !== null && accept(edge) ? 1 : 0;
    for (const [state, count] of counts) if (accept(state)) total += count;
    return total;
  },
  python: `
    from functools import lru_cache

    def solve(limit):
        digits = [int(c) for c in str(limit)]

        @lru_cache(maxsize=None)
        def count(place, s, tight, begun):
            if place == len(digits):
                return 1 if begun and (${python.accept}) else 0
            total = 0
            for d in range(0, digits[place] + 1 if tight else 10):
                still = tight and d == digits[place]
                if d == 0 and not begun:
                    total += count(place + 1, ${start}, still, False)
                    continue
                after = ${python.step}
                if after is not None:
                    total += count(place + 1, after, still, True)
            return total

        return count(0, ${start}, True, False)`,
  mistakes: [mistake, ['1 if tight else 10', '0 if tight else 10']],
  slow: [
    `
    def solve(limit):
        total = 0
        for n in range(1, limit + 1):
            s = ${start}
            for d in map(int, str(n)):
                s = ${python.step}
                if s is None:
                    break
            if s is not None and (${python.accept}):
                total += 1
        return total`,
  ],
  inputs: (random) => [
    [20],
    [100],
    [1357],
    [1],
    [9],
    [10],
    [99],
    [110],
    ...times(5, () => [random.integer(100, 50_000)]),
    [1_000_000_000],
    [MOST],
    [987_654_321_012_345],
    [445_599_108_313_777],
  ],
}));
