import type { SeededRandom } from '@palestra/environment-kit';
import { gcd, Rational } from './rational.ts';

export type Level = 1 | 2 | 3 | 4 | 5;
type Values = Record<string, Rational>;

/** Questions of one kind. The text has a placeholder for each value: `{a}` a number or fraction, `{+a}` one with its sign as operator. */
export interface Family {
  name: string;
  level: Level;
  text: string;
  draw(random: SeededRandom): Record<string, number | Rational>;
  answer(values: Values): Rational;
}

const nonZero = (random: SeededRandom, limit: number): number => random.integer(1, limit) * random.pick([1, -1]);
const fraction = (random: SeededRandom, most = 12): Rational => new Rational(nonZero(random, most), random.integer(2, most));
const whole = (value: number | bigint): Rational => new Rational(value);
const number = (value: Rational): number => Number(value.numerator);
const sum = (...terms: Rational[]): Rational => terms.reduce((total, term) => total.plus(term));
const minus = (value: Rational): Rational => value.times(whole(-1));
const over = (a: Rational, b: Rational): Rational => a.times(new Rational(b.denominator, b.numerator));
const lcm = (a: bigint, b: bigint): bigint => (a / gcd(a, b)) * b;
function choose(n: number, k: number): bigint {
  let result = 1n;
  for (let step = 1; step <= k; step += 1) result = (result * BigInt(n - k + step)) / BigInt(step);
  return k < 0 || k > n ? 0n : result;
}

export const families: Family[] = [
  {
    name: 'sum',
    level: 1,
    text: 'Compute {a} {+b} {+c}.',
    draw: (random) => ({ a: nonZero(random, 999), b: nonZero(random, 999), c: nonZero(random, 999) }),
    answer: ({ a, b, c }) => sum(a!, b!, c!),
  },
  {
    name: 'product',
    level: 1,
    text: 'Compute {a} * {b} {+c}.',
    draw: (random) => ({ a: random.integer(3, 99), b: random.integer(3, 99), c: nonZero(random, 999) }),
    answer: ({ a, b, c }) => sum(a!.times(b!), c!),
  },
  {
    name: 'percent',
    level: 1,
    text: 'What is {p} percent of {n}?',
    draw: (random) => ({ p: random.integer(1, 99), n: random.integer(10, 2000) }),
    answer: ({ p, n }) => p!.times(n!).times(new Rational(1, 100)),
  },
  {
    name: 'fraction_sum',
    level: 1,
    text: 'Compute ({a}) + ({b}).',
    draw: (random) => ({ a: fraction(random, 20), b: fraction(random, 20) }),
    answer: ({ a, b }) => sum(a!, b!),
  },
  {
    name: 'fractions',
    level: 2,
    text: 'Compute ({a}) + ({b}) * ({c}).',
    draw: (random) => ({ a: fraction(random), b: fraction(random), c: fraction(random) }),
    answer: ({ a, b, c }) => sum(a!, b!.times(c!)),
  },
  {
    name: 'linear_equation',
    level: 2,
    text: 'Solve for x: {a}x {+b} = {c}x {+d}.',
    draw(random) {
      const a = nonZero(random, 9);
      return { a, b: nonZero(random, 40), c: a + nonZero(random, 9), d: nonZero(random, 40) };
    },
    answer: ({ a, b, c, d }) => over(sum(d!, minus(b!)), sum(a!, minus(c!))),
  },
  {
    name: 'mean',
    level: 2,
    text: 'The mean of five numbers is {m}. Four of them are {a}, {b}, {c} and {d}. What is the fifth?',
    draw: (random) => ({
      m: new Rational(random.integer(20, 300), random.pick([1, 2, 4])),
      a: random.integer(1, 99),
      b: random.integer(1, 99),
      c: random.integer(1, 99),
      d: random.integer(1, 99),
    }),
    answer: ({ m, a, b, c, d }) => sum(m!.times(whole(5)), minus(sum(a!, b!, c!, d!))),
  },
  {
    name: 'common_multiple',
    level: 2,
    text: 'What is the least common multiple of {a}, {b} and {c}?',
    draw: (random) => ({ a: random.integer(12, 90), b: random.integer(12, 90), c: random.integer(12, 90) }),
    answer: ({ a, b, c }) => whole(lcm(lcm(a!.numerator, b!.numerator), c!.numerator)),
  },
  {
    name: 'count_multiples',
    level: 2,
    text: 'How many integers from 1 to {n} are divisible by {a} or by {b}?',
    draw: (random) => ({ n: random.integer(200, 2000), a: random.integer(3, 9), b: random.integer(10, 17) }),
    answer({ n, a, b }) {
      const multiples = (step: bigint) => n!.numerator / step;
      return whole(multiples(a!.numerator) + multiples(b!.numerator) - multiples(lcm(a!.numerator, b!.numerator)));
    },
  },
  {
    name: 'linear_system',
    level: 3,
    text: 'Solve {a}x {+b}y = {c} and {d}x {+e}y = {f}. What is x {+k}y?',
    draw(random) {
      const [a, b, d] = [nonZero(random, 9), nonZero(random, 9), nonZero(random, 9)];
      let e = nonZero(random, 9);
      while (a * e === b * d) e = nonZero(random, 9);
      return { a, b, c: nonZero(random, 40), d, e, f: nonZero(random, 40), k: nonZero(random, 5) };
    },
    answer({ a, b, c, d, e, f, k }) {
      const determinant = sum(a!.times(e!), minus(b!.times(d!)));
      const x = over(sum(c!.times(e!), minus(b!.times(f!))), determinant);
      const y = over(sum(a!.times(f!), minus(c!.times(d!))), determinant);
      return sum(x, k!.times(y));
    },
  },
  {
    name: 'power_modulo',
    level: 3,
    text: 'What is the remainder of {b}^{e} divided by {m}?',
    draw: (random) => ({ b: random.integer(2, 30), e: random.integer(20, 400), m: random.integer(7, 97) }),
    answer: ({ b, e, m }) => whole(b!.numerator ** e!.numerator % m!.numerator),
  },
  {
    name: 'derivative',
    level: 3,
    text: "Let f(x) = {a}x^4 {+b}x^3 {+c}x. Compute f'({t}).",
    draw: (random) => ({ a: nonZero(random, 6), b: nonZero(random, 9), c: nonZero(random, 12), t: nonZero(random, 5) }),
    answer: ({ a, b, c, t }) => {
      const square = t!.times(t!);
      return sum(whole(4).times(a!).times(square).times(t!), whole(3).times(b!).times(square), c!);
    },
  },
  {
    name: 'two_colours',
    level: 3,
    text: 'A bag holds {r} red and {b} blue balls. Two are drawn without putting the first back. What is the probability that their colours differ?',
    draw: (random) => ({ r: random.integer(3, 60), b: random.integer(3, 60) }),
    answer({ r, b }) {
      const [red, blue] = [number(r!), number(b!)];
      return new Rational(2 * red * blue, (red + blue) * (red + blue - 1));
    },
  },
  {
    name: 'residue_sum',
    level: 3,
    text: 'What is the sum of all integers from 1 to {n} that leave the remainder {r} when divided by {m}?',
    draw(random) {
      const m = random.integer(4, 19);
      return { n: random.integer(100, 900), r: random.integer(1, m - 1), m };
    },
    answer({ n, r, m }) {
      const [limit, first, step] = [number(n!), number(r!), number(m!)];
      const count = Math.floor((limit - first) / step) + 1;
      return new Rational(count * (2 * first + (count - 1) * step), 2);
    },
  },
  {
    name: 'cubes_of_roots',
    level: 4,
    text: 'Let r and s be the complex roots of x^2 {+p}x {+q} = 0. Compute r^3 + s^3.',
    draw: (random) => ({ p: nonZero(random, 40), q: nonZero(random, 40) }),
    answer: ({ p, q }) => sum(minus(p!.times(p!).times(p!)), whole(3).times(p!).times(q!)),
  },
  {
    name: 'area',
    level: 4,
    text: 'What is the area of the triangle with the corners ({a}, {b}), ({c}, {d}) and ({e}, {f})?',
    draw(random) {
      for (;;) {
        const [a, b, c, d, e, f] = Array.from({ length: 6 }, () => random.integer(-20, 20)) as [
          number,
          number,
          number,
          number,
          number,
          number,
        ];
        if ((c - a) * (f - b) !== (e - a) * (d - b)) return { a, b, c, d, e, f };
      }
    },
    answer({ a, b, c, d, e, f }) {
      const doubled = sum(sum(c!, minus(a!)).times(sum(f!, minus(b!))), minus(sum(e!, minus(a!)).times(sum(d!, minus(b!)))));
      return new Rational(doubled.numerator < 0n ? -doubled.numerator : doubled.numerator, 2n);
    },
  },
  {
    name: 'remainders',
    level: 4,
    text: 'What is the smallest positive integer that leaves the remainder {a} when divided by {m}, and the remainder {b} when divided by {n}?',
    draw(random) {
      const [m, n] = [random.pick([7, 11, 13, 17]), random.pick([9, 16, 25, 29, 31])];
      return { a: random.integer(1, m - 1), m, b: random.integer(1, n - 1), n };
    },
    answer({ a, m, b, n }) {
      const [first, step, wanted, modulus] = [number(a!), number(m!), number(b!), number(n!)];
      let found = first;
      while (found % modulus !== wanted) found += step;
      return whole(found);
    },
  },
  {
    name: 'committee',
    level: 4,
    text: 'A club has {w} women and {m} men. In how many ways can it choose a committee of {k} members with at least {l} women and at least one man?',
    draw: (random) => ({ w: random.integer(5, 12), m: random.integer(4, 12), k: random.integer(4, 6), l: random.integer(1, 2) }),
    answer({ w, m, k, l }) {
      let ways = 0n;
      for (let women = number(l!); women < number(k!); women += 1)
        ways += choose(number(w!), women) * choose(number(m!), number(k!) - women);
      return whole(ways);
    },
  },
  {
    name: 'dice',
    level: 4,
    text: 'Two fair dice have {m} and {n} sides, numbered from 1. What is the expected value of the larger of the two numbers (their common value if they are equal)?',
    draw: (random) => ({ m: random.integer(4, 20), n: random.integer(4, 20) }),
    answer({ m, n }) {
      // Sum of P(larger >= t).
      const [a, b] = [number(m!), number(n!)];
      let expected = whole(0);
      for (let t = 1; t <= Math.max(a, b); t += 1) {
        const below = Math.min(t - 1, a) * Math.min(t - 1, b);
        expected = sum(expected, new Rational(a * b - below, a * b));
      }
      return expected;
    },
  },
  {
    name: 'test_result',
    level: 5,
    text: 'Of the parts from machine A, {a} percent are faulty, of those from machine B {b} percent. Machine A makes {s} percent of all parts, and B the rest. A check rejects {h} percent of the faulty parts and {w} percent of the others. A part was rejected. What is the probability that it came from machine A?',
    draw: (random) => ({
      a: random.integer(1, 20),
      b: random.integer(1, 20),
      s: random.integer(10, 90),
      h: random.integer(60, 99),
      w: random.integer(1, 20),
    }),
    answer({ a, b, s, h, w }) {
      const rejected = (faulty: Rational) => sum(faulty.times(h!), sum(whole(100), minus(faulty)).times(w!));
      const [fromA, fromB] = [s!.times(rejected(a!)), sum(whole(100), minus(s!)).times(rejected(b!))];
      return over(fromA, sum(fromA, fromB));
    },
  },
  {
    name: 'walk',
    level: 5,
    text: 'A token stands on place {i} of the places 0 to {n}. In each step it moves one place up with probability {p} and one place down otherwise. What is the probability that it reaches place {n} before place 0?',
    draw(random) {
      const n = random.integer(3, 7);
      const q = random.integer(3, 6);
      return { i: random.integer(1, n - 1), n, p: new Rational(random.pick([1, q - 1]), q) };
    },
    answer({ i, n, p }) {
      const ratio = over(sum(whole(1), minus(p!)), p!);
      const powers = (count: Rational) => {
        let [total, power] = [whole(0), whole(1)];
        for (let step = 0; step < number(count); step += 1) {
          total = sum(total, power);
          power = power.times(ratio);
        }
        return total;
      };
      return over(powers(i!), powers(n!));
    },
  },
  {
    name: 'paths',
    level: 5,
    text: 'On a grid, a path goes from (0, 0) to ({a}, {b}) by steps of one unit to the right or up. How many such paths do not pass through ({c}, {d})?',
    draw(random) {
      const [a, b] = [random.integer(4, 10), random.integer(4, 10)];
      return { a, b, c: random.integer(1, a - 1), d: random.integer(1, b - 1) };
    },
    answer({ a, b, c, d }) {
      const [right, up, x, y] = [number(a!), number(b!), number(c!), number(d!)];
      return whole(choose(right + up, up) - choose(x + y, y) * choose(right - x + up - y, up - y));
    },
  },
  {
    name: 'tank',
    level: 5,
    text: 'Pipe A fills an empty tank in {a} hours, pipe B in {b} hours, and the drain empties a full tank in {c} hours. At first A and the drain are open, with the tank empty. After {t} hours B is opened, too, and {u} hours later the drain is closed. How many hours from the beginning does it take until the tank is full?',
    draw(random) {
      const [a, b] = [random.integer(5, 12), random.integer(5, 12)];
      return { a, b, c: random.integer(14, 30), t: random.integer(1, 2), u: 1 };
    },
    answer({ a, b, c, t, u }) {
      const rate = (hours: Rational) => over(whole(1), hours);
      const [first, second] = [sum(rate(a!), minus(rate(c!))), sum(rate(a!), rate(b!), minus(rate(c!)))];
      const filled = sum(first.times(t!), second.times(u!));
      return sum(t!, u!, over(sum(whole(1), minus(filled)), sum(rate(a!), rate(b!))));
    },
  },
  {
    name: 'three_sets',
    level: 5,
    text: 'How many integers from {l} to {n} are divisible by exactly one of {a}, {b} and {c}?',
    draw: (random) => ({
      l: random.integer(50, 300),
      n: random.integer(900, 3000),
      a: random.integer(3, 6),
      b: random.integer(7, 10),
      c: random.integer(11, 15),
    }),
    answer({ l, n, a, b, c }) {
      let count = 0;
      for (let value = number(l!); value <= number(n!); value += 1) {
        if ([a!, b!, c!].filter((divisor) => value % number(divisor) === 0).length === 1) count += 1;
      }
      return whole(count);
    },
  },
];
