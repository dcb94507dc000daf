import type { SeededRandom } from '../../random.ts';
import { combine, defineFamily, integers, type Json, times } from './family.ts';

const SYSTEMS = {
  seven: { says: 'in base 7 with the digits 0 to 6, a minus sign in front of negative numbers', low: -100_000, high: 100_000 },
  negative: { says: 'in base -2 with the digits 0 and 1: the places, from the last one, count 1, -2, 4, -8 and so on', low: -100_000, high: 100_000 },
  balanced: { says: 'in balanced base 3: the places, from the last one, count 1, 3, 9 and so on, and the digits are + for 1, 0 for 0 and - for -1', low: -100_000, high: 100_000 },
  letters: { says: 'with the letters a to z as the digits 1 to 26 of base 26 (there is no digit 0): a is 1, z is 26, aa is 27, ab is 28', low: 1, high: 10_000_000 },
  factorial: { says: 'in the factorial system: the places, from the last one, count 1, 2, 6, 24 and so on (1!, 2!, 3!, ...), and the digit of the place of k! is from 0 to k', low: 0, high: 3_628_799 },
  roman: { says: 'in Roman numerals (M, CM, D, CD, C, XC, L, XL, X, IX, V, IV, I)', low: 1, high: 3999 },
} as const;
const ROMAN = Object.entries({ M: 1000, CM: 900, D: 500, CD: 400, C: 100, XC: 90, L: 50, XL: 40, X: 10, IX: 9, V: 5, IV: 4, I: 1 });

function write(system: keyof typeof SYSTEMS, value: number): string {
  let [rest, result] = [value, ''];
  switch (system) {
    case 'seven':
      return value.toString(7);
    case 'letters':
      for (; rest > 0; rest = Math.floor((rest - 1) / 26)) result = String.fromCharCode(97 + ((rest - 1) % 26)) + result;
      return result;
    case 'roman':
      for (const [sign, worth] of ROMAN) for (; rest >= worth; rest -= worth) result += sign;
      return result;
    case 'factorial':
      for (let base = 2; rest > 0; base += 1) {
        result = (rest % base) + result;
        rest = Math.floor(rest / base);
      }
      return result || '0';
    case 'negative':
      for (; rest !== 0; rest = (rest - Math.abs(rest % 2)) / -2) result = Math.abs(rest % 2) + result;
      return result || '0';
    case 'balanced':
      while (rest !== 0) {
        const digit = ((((rest + 1) % 3) + 3) % 3) - 1;
        result = '-0+'[digit + 1]! + result;
        rest = (rest - digit) / 3;
      }
      return result || '0';
  }
}

const WRITE: Record<keyof typeof SYSTEMS, string> = {
  seven: `if n < 0:
              return "-" + write(-n)
          return (write(n // 7) if n >= 7 else "") + str(n % 7)`,
  negative: `digits = ""
          while n:
              digit = n % 2
              digits = str(digit) + digits
              n = (n - digit) // -2
          return digits or "0"`,
  balanced: `digits = ""
          while n:
              digit = (n + 1) % 3 - 1
              digits = "-0+"[digit + 1] + digits
              n = (n - digit) // 3
          return digits or "0"`,
  letters: `digits = ""
          while n:
              n, digit = divmod(n - 1, 26)
              digits = chr(97 + digit) + digits
          return digits`,
  factorial: `digits = ""
          base = 2
          while n:
              n, digit = divmod(n, base)
              digits = str(digit) + digits
              base += 1
          return digits or "0"`,
  roman: `digits = ""
          for sign, worth in ROMAN:
              while n >= worth:
                  digits += sign
                  n -= worth
          return digits`,
};
const READ: Record<keyof typeof SYSTEMS, string> = {
  seven: 'return int(text, 7)',
  negative: `value = 0
          for c in text:
              value = value * -2 + int(c)
          return value`,
  balanced: `value = 0
          for c in text:
              value = value * 3 + "-0+".index(c) - 1
          return value`,
  letters: `value = 0
          for c in text:
              value = value * 26 + ord(c) - 96
          return value`,
  factorial: `value = 0
          for place, c in enumerate(text):
              value = (value + int(c)) * (len(text) - place)
          return value`,
  roman: `value = 0
          for sign, worth in ROMAN:
              while text.startswith(sign):
                  value += worth
                  text = text[len(sign):]
          return value`,
};
const WRONG: Record<keyof typeof SYSTEMS, { write: [string, string]; read: [string, string] }> = {
  seven: { write: ['n >= 7', 'n > 7'], read: ['int(text, 7)', 'int(text.strip("-"), 7)'] },
  negative: { write: ['(n - digit) // -2', 'n // -2'], read: ['* -2', '* 2'] },
  balanced: { write: ['(n - digit) // 3', 'n // 3'], read: [' - 1', ''] },
  letters: { write: ['divmod(n - 1, 26)', 'divmod(n, 26)'], read: ['- 96', '- 97'] },
  factorial: { write: ['base = 2', 'base = 3'], read: ['(len(text) - place)', 'max(len(text) - place, 2)'] },
  roman: { write: ['n >= worth', 'n > worth'], read: ['while text', 'if text'] },
};

export const numerals = defineFamily(
  'numerals',
  combine({ system: ['seven', 'negative', 'balanced', 'letters', 'factorial', 'roman'], task: ['write', 'read'] } as const),
  ({ system, task }) => {
    const { says, low, high } = SYSTEMS[system];
    const convert = (values: number[]): Json[] => [task === 'write' ? values : values.map((value) => write(system, value))];
    return {
      level: system === 'seven' || system === 'roman' ? 2 : 3,
      parameters: task === 'write' ? 'numbers' : 'texts',
      statement: `
        ${task === 'write' ? 'Return the list of `numbers`, written' : 'Return the list of the numbers that are written in `texts`'} ${says}. There are no zeros in front${low <= 0 ? ', and zero is "0"' : ''}.

        There are at most 2000 ${task === 'write' ? 'numbers' : 'texts'}, of numbers from ${low} to ${high}.`,
      reference: (given: never[]) => (task === 'write' ? given.map((value) => write(system, value)) : given.map((digits) => read(system, digits))),
      python: `
        ROMAN = ${JSON.stringify(ROMAN)}

        def ${task}(${task === 'write' ? 'n' : 'text'}):
          ${task === 'write' ? WRITE[system] : READ[system]}

        def solve(given):
            return [${task}(one) for one in given]`,
      mistakes: [WRONG[system][task]],
      inputs: (random) => [
        convert([Math.max(low, 5), 19]),
        convert([28, 100, 1994]),
        convert(integers(random, 4, low, high)),
        [[]],
        convert([low, high]),
        convert([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]),
        convert(integers(random, 40, Math.max(low, -60), 60)),
        convert([25, 26, 27, 51, 52, 53, 676, 677, 702, 703]),
        ...times(5, () => convert(integers(random, 20, low, high))),
        convert(integers(random, 2000, low, high)),
      ],
    };
  },
);

function read(system: keyof typeof SYSTEMS, digits: string): number {
  switch (system) {
    case 'seven':
      return Number.parseInt(digits, 7);
    case 'roman':
      return [...digits].reduce((sum, sign, index) => {
        const worth = (letter: string | undefined) => Number(ROMAN.find(([name]) => name === letter)?.[1] ?? 0);
        return sum + worth(sign) * (worth(sign) < worth(digits[index + 1]) ? -1 : 1);
      }, 0);
    default: {
      let [value, place, weight] = [0, 0, 1];
      for (const digit of [...digits].toReversed()) {
        place += 1;
        if (system === 'factorial') weight *= place;
        value += weight * (system === 'balanced' ? '-0+'.indexOf(digit) - 1 : system === 'letters' ? digit.charCodeAt(0) - 96 : Number(digit));
        weight *= { negative: -2, balanced: 3, letters: 26, factorial: 1 }[system];
      }
      return value;
    }
  }
}

const KINDS = {
  divisors4: { says: 'that have exactly four divisors (1 and the number itself included)', test: (f: number[]) => (f.length === 2 && f[0] !== f[1]) || (f.length === 3 && f[0] === f[2]) },
  primes2: { says: 'with exactly two different prime factors', test: (f: number[]) => new Set(f).size === 2 },
  squarefree: { says: 'that are not divisible by the square of any number greater than 1', test: (f: number[]) => new Set(f).size === f.length },
  smooth: { says: 'without a prime factor greater than 13', test: (f: number[]) => f.every((prime) => prime <= 13) },
  even: { says: 'with an even number of prime factors, repeated ones counted repeatedly (1 has none, which is even)', test: (f: number[]) => f.length % 2 === 0 },
  square: { says: 'that are divisible by the square of their largest prime factor (1 is not)', test: (f: number[]) => f.length > 1 && f.at(-1) === f.at(-2) },
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
const LARGEST = 30_000;

export const numberCounts = defineFamily(
  'number_counts',
  combine({ kind: ['divisors4', 'primes2', 'squarefree', 'smooth', 'even', 'square'], result: ['count', 'sum'] } as const),
  ({ kind, result }) => ({
    level: 4,
    parameters: 'ranges',
    statement: `
      For each range [a, b] of \`ranges\`, return ${result === 'count' ? 'how many numbers there are' : 'the sum of the numbers'} from a to b, both included, ${KINDS[kind].says}. The result is the list of these.

      There are at most 4000 ranges with 1 ≤ a ≤ b ≤ ${LARGEST}.`,
    reference(ranges: [number, number][]) {
      const least = new Uint32Array(LARGEST + 1);
      for (let prime = 2; prime <= LARGEST; prime += 1) {
        if (least[prime] === 0) for (let multiple = prime; multiple <= LARGEST; multiple += prime) if (least[multiple] === 0) least[multiple] = prime;
      }
      const totals = [0];
      for (let number = 1; number <= LARGEST; number += 1) {
        const factors: number[] = [];
        for (let rest = number; rest > 1; rest /= least[rest]!) factors.push(least[rest]!);
        totals.push(totals[number - 1]! + (KINDS[kind].test(factors) ? (result === 'count' ? 1 : number) : 0));
      }
      return ranges.map(([a, b]) => totals[b]! - totals[a - 1]!);
    },
    python: `
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
      `
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
      [[[1, 10], [11, 20]]],
      [[[24, 36]]],
      [someRanges(random, 3, 200)],
      [[]],
      [[[1, 1]]],
      [[[2, 2], [4, 4], [8, 8], [9, 9], [36, 36], [210, 210]]],
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
  no4: { says: 'have no digit 4', start: 0, step: (_, d) => (d === 4 ? null : 0), accept: () => true, python: { step: 'None if d == 4 else 0', accept: 'True' }, mistake: ['d == 4', 'd == 5'] },
  no13: { says: 'have no digit 3 directly behind a digit 1', start: 0, step: (s, d) => (s === 1 && d === 3 ? null : d), accept: () => true, python: { step: 'None if s == 1 and d == 3 else d', accept: 'True' }, mistake: ['s == 1', 's != 1'] },
  rising: { says: 'have digits that never become smaller from left to right', start: 0, step: (s, d) => (d < s ? null : d), accept: () => true, python: { step: 'None if d < s else d', accept: 'True' }, mistake: ['d < s', 'd <= s'] },
  unlike: { says: 'have no two equal digits side by side', start: 10, step: (s, d) => (s === d ? null : d), accept: () => true, python: { step: 'None if s == d else d', accept: 'True' }, mistake: ['s == d', 'abs(s - d) == 1'] },
  seven: { says: 'have a sum of digits that is divisible by 7', start: 0, step: (s, d) => (s + d) % 7, accept: (s) => s === 0, python: { step: '(s + d) % 7', accept: 's == 0' }, mistake: ['s == 0', 's == 1'] },
  twoNines: { says: 'have exactly two digits 9', start: 0, step: (s, d) => Math.min(3, s + (d === 9 ? 1 : 0)), accept: (s) => s === 2, python: { step: 'min(3, s + (d == 9))', accept: 's == 2' }, mistake: ['s == 2', 's >= 2'] },
  oddEven: { says: 'have as many odd as even digits', start: 0, step: (s, d) => s + (d % 2 === 1 ? 1 : -1), accept: (s) => s === 0, python: { step: 's + (1 if d % 2 else -1)', accept: 's == 0' }, mistake: ['s == 0', 's <= 0'] },
  balance: { says: 'have an odd number of digits greater than 6', start: 0, step: (s, d) => (d > 6 ? 1 - s : s), accept: (s) => s === 1, python: { step: '1 - s if d > 6 else s', accept: 's == 1' }, mistake: ['d > 6', 'd >= 6'] },
  three: { says: 'have at most three different digits', start: 0, step: (s, d) => (bits(s | (1 << d)) > 3 ? null : s | (1 << d)), accept: () => true, python: { step: 'None if bin(s | 1 << d).count("1") > 3 else s | 1 << d', accept: 'True' }, mistake: ['> 3', '>= 3'] },
  eleven: { says: 'are divisible by 11 and have no digit 0', start: 0, step: (s, d) => (d === 0 ? null : (s * 10 + d) % 11), accept: (s) => s === 0, python: { step: 'None if d == 0 else (s * 10 + d) % 11', accept: 's == 0' }, mistake: ['s == 0', 's == 10'] },
  peak: { says: 'contain the digit 5 at least once and the digit 8 at most once', start: 0, step: (s, d) => (d === 8 && s >= 2 ? null : (s & 2) + (d === 8 ? 2 : 0) + (s & 1 || d === 5 ? 1 : 0)), accept: (s) => (s & 1) === 1, python: { step: 'None if d == 8 and s >= 2 else (s & 2) + (2 if d == 8 else 0) + (1 if s & 1 or d == 5 else 0)', accept: 's & 1 == 1' }, mistake: ['s & 1 == 1', 's >= 1'] },
  even: { says: 'begin with an even digit and end with an odd digit', start: 10, step: (s, d) => (s === 10 ? (d % 2 === 0 ? d : null) : d), accept: (s) => s % 2 === 1, python: { step: '(d if d % 2 == 0 else None) if s == 10 else d', accept: 's % 2 == 1' }, mistake: ['s % 2 == 1', 's % 2 == 0'] },
};
const bits = (mask: number): number => mask.toString(2).replaceAll('0', '').length;
const MOST = 10 ** 15;

export const digitCounts = defineFamily('digit_counts', Object.values(DIGIT_RULES), ({ says, start, step, accept, python, mistake }) => ({
  level: 5,
  parameters: 'limit',
  statement: `
    Return how many whole numbers from 1 to \`limit\`, in decimal notation without zeros in front, ${says}.

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
  inputs: (random) => [[20], [100], [1357], [1], [9], [10], [99], [110], ...times(5, () => [random.integer(100, 50_000)]), [1_000_000_000], [MOST], [987_654_321_012_345], [445_599_108_313_777]],
}));

const RULES = {
  two: { says: 'x(n) = a·x(n-1) + b·x(n-2)', size: 2, constant: false },
  constant: { says: 'x(n) = a·x(n-1) + b·x(n-2) + c', size: 2, constant: true },
  three: { says: 'x(n) = a·x(n-1) + b·x(n-2) + c·x(n-3)', size: 3, constant: false },
} as const;
const TERMS = {
  term: { says: 'x(n)', python: 'current[0]' },
  sum: { says: 'the sum x(0) + x(1) + ... + x(n)', python: 'current[-1]' },
  squares: { says: 'x(n)² + x(n+1)²', python: '' },
  skip: { says: 'x(2n+1)', python: '' },
} as const;

export const recurrences = defineFamily(
  'recurrences',
  combine({ rule: ['two', 'constant', 'three'], term: ['term', 'sum', 'squares', 'skip'] } as const),
  ({ rule, term }) => {
    const { says, size, constant } = RULES[rule];
    const firsts = times(size, (index) => `x(${index})`).join(', ');
    const sequence = (random: SeededRandom, n: number): Json[] => [integers(random, size, 0, 9), integers(random, size + (constant ? 1 : 0), 0, 9), n, random.integer(1000, 1_000_000)];
    return {
      level: 5,
      parameters: 'first, factors, n, m',
      statement: `
        A sequence begins with the numbers ${firsts} in the list \`first\` and goes on by the rule ${says}, where \`factors\` is the list [${constant || size === 3 ? 'a, b, c' : 'a, b'}]. Return ${TERMS[term].says}, as the remainder modulo \`m\`.

        \`n\` is from 0 to 10^15, \`m\` from 1 to 1,000,000; the other numbers are from 0 to 9.`,
      // Companion matrix with exact integers; the state is x(k), x(k+1), ..., 1, sum to k.
      reference(first: number[], factors: number[], n: number, m: number) {
        const width = size + 2;
        const last = times(width, (column) => (column < size ? BigInt(factors[size - 1 - column]!) : column === size && constant ? BigInt(factors[2]!) : 0n));
        const unit = (at: number) => times(width, (column) => (column === at ? 1n : 0n));
        // The new sum adds x(k+1), the second entry of the old state.
        const matrix = [...times(size - 1, (row) => unit(row + 1)), last, unit(size), times(width, (column) => (column === size + 1 || column === 1 ? 1n : 0n))];
        const modulus = BigInt(m);
        const multiply = (a: bigint[][], b: bigint[][]) =>
          a.map((row) => b[0]!.map((_, column) => row.reduce((sum, value, at) => sum + value * b[at]![column]!, 0n) % modulus));
        let state = [...first.map(BigInt), 1n, BigInt(first[0]!)].map((value) => [value % modulus]);
        let power = matrix;
        for (let rest = BigInt(n) * (term === 'skip' ? 2n : 1n) + (term === 'skip' ? 1n : 0n); rest > 0n; rest /= 2n) {
          if (rest % 2n === 1n) state = multiply(power, state);
          power = multiply(power, power);
        }
        const x = (index: number) => state[index]![0]!;
        return Number({ term: x(0), skip: x(0), sum: x(size + 1), squares: x(0) * x(0) + x(1) * x(1) }[term] % modulus);
      },
      python: `
        def multiply(a, b, m):
            return [[sum(x * y for x, y in zip(row, column)) % m for column in zip(*b)] for row in a]

        def solve(first, factors, n, m):
            size = ${size}
            width = size + 2
            matrix = [[0] * width for _ in range(width)]
            for row in range(size - 1):
                matrix[row][row + 1] = 1
            for column in range(size):
                matrix[size - 1][column] = factors[size - 1 - column]
            ${constant ? 'matrix[size - 1][size] = factors[2]' : 'pass'}
            matrix[size][size] = 1
            matrix[size + 1][size + 1] = matrix[size + 1][1] = 1
            current = [[value % m] for value in first + [1, first[0]]]
            k = ${term === 'skip' ? '2 * n + 1' : 'n'}
            while k:
                if k % 2:
                    current = multiply(matrix, current, m)
                matrix = multiply(matrix, matrix, m)
                k //= 2
            return ${{ term: 'current[0][0]', skip: 'current[0][0]', sum: 'current[size + 1][0]', squares: '(current[0][0] ** 2 + current[1][0] ** 2)' }[term]} % m`,
      mistakes: [
        ['factors[size - 1 - column]', 'factors[column]'],
        [term === 'skip' ? '2 * n + 1' : 'k = n\n', term === 'skip' ? '2 * n' : 'k = n + 1\n'],
      ],
      slow: [
        `
        def solve(first, factors, n, m):
            x = list(first)
            total = 0
            target = ${term === 'skip' ? '2 * n + 1' : 'n'}
            for _ in range(target):
                total += x[0]
                x.append((sum(f * v for f, v in zip(factors, reversed(x)))${constant ? ' + factors[2]' : ''}) % m)
                x.pop(0)
            return ${{ term: 'x[0]', skip: 'x[0]', sum: '(total + x[0])', squares: '(x[0] ** 2 + x[1] ** 2)' }[term]} % m`,
      ],
      inputs: (random) => [
        [[0, 1, 1].slice(0, size), [1, 1, 1].slice(0, size + (constant ? 1 : 0)), 10, 1000],
        [[2, 5, 1].slice(0, size), [3, 2, 4].slice(0, size + (constant ? 1 : 0)), 4, 10_000],
        sequence(random, 6),
        sequence(random, 0),
        sequence(random, 1),
        sequence(random, 2),
        [times(size, () => 0), times(size + (constant ? 1 : 0), () => 1), 50, 1],
        ...times(5, () => sequence(random, random.integer(3, 60))),
        sequence(random, 1_000_000_000),
        sequence(random, 10 ** 15),
        sequence(random, 123_456_789_012_345),
      ],
    };
  },
);
