import { SeededRandom } from '../random.ts';
import { gcd, Rational } from './rational.ts';

export interface Problem {
  question: string;
  answer: Rational;
}

type Family = (random: SeededRandom) => Problem;

const nonZero = (random: SeededRandom, limit: number): number => random.integer(1, limit) * random.pick([1, -1]);
const fraction = (random: SeededRandom): Rational => new Rational(nonZero(random, 12), random.integer(2, 12));
const signed = (value: number): string => (value < 0 ? `- ${-value}` : `+ ${value}`);

const families: Family[] = [
  function fractions(random) {
    const [a, b, c] = [fraction(random), fraction(random), fraction(random)];
    return { question: `Compute (${a}) + (${b}) * (${c}).`, answer: a.plus(b.times(c)) };
  },
  function linearEquation(random) {
    const [a, b, d] = [nonZero(random, 9), nonZero(random, 20), nonZero(random, 20)];
    const c = a + nonZero(random, 9);
    return { question: `Solve for x: ${a}x ${signed(b)} = ${c}x ${signed(d)}.`, answer: new Rational(d - b, a - c) };
  },
  function sumOfCubesOfRoots(random) {
    const [p, q] = [nonZero(random, 40), nonZero(random, 40)];
    const question = `Let r and s be the complex roots of x^2 ${signed(-p)}x ${signed(q)} = 0. Compute r^3 + s^3.`;
    return { question, answer: new Rational(p ** 3 - 3 * p * q) };
  },
  function powerModulo(random) {
    const [base, exponent, modulus] = [random.integer(2, 30), random.integer(20, 400), random.integer(7, 97)];
    let rest = 1n;
    for (let step = 0; step < exponent; step += 1) rest = (rest * BigInt(base)) % BigInt(modulus);
    return { question: `What is the remainder of ${base}^${exponent} divided by ${modulus}?`, answer: new Rational(rest) };
  },
  function commonMultiple(random) {
    const [a, b, c] = [random.integer(12, 90), random.integer(12, 90), random.integer(12, 90)].map(BigInt) as [bigint, bigint, bigint];
    const pair = (a * b) / gcd(a, b);
    return { question: `What is the least common multiple of ${a}, ${b} and ${c}?`, answer: new Rational((pair * c) / gcd(pair, c)) };
  },
  function derivative(random) {
    const [a, b, c, at] = [nonZero(random, 6), nonZero(random, 9), nonZero(random, 12), nonZero(random, 5)];
    const question = `Let f(x) = ${a}x^4 ${signed(b)}x^3 ${signed(c)}x. Compute f'(${at}).`;
    return { question, answer: new Rational(4 * a * at ** 3 + 3 * b * at ** 2 + c) };
  },
  function probability(random) {
    const [red, blue] = [random.integer(3, 60), random.integer(3, 60)];
    const total = red + blue;
    const question = `A bag holds ${red} red and ${blue} blue balls. Two are drawn without putting the first back. What is the probability that their colours differ?`;
    return { question, answer: new Rational(2 * red * blue, total * (total - 1)) };
  },
  function countMultiples(random) {
    const [limit, a, b] = [random.integer(200, 2000), random.integer(3, 9), random.integer(10, 17)];
    const multiples = (step: number) => Math.floor(limit / step);
    const both = (a * b) / Number(gcd(BigInt(a), BigInt(b)));
    const question = `How many integers from 1 to ${limit} are divisible by ${a} or by ${b}?`;
    return { question, answer: new Rational(multiples(a) + multiples(b) - multiples(both)) };
  },
];

/** The problem of a seed. Neighbouring seeds give different kinds. */
export function makeProblem(seed: number): Problem {
  return families[Math.abs(seed) % families.length]!(new SeededRandom('math', seed));
}
