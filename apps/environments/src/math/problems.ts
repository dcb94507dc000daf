import { SeededRandom } from '@palestra/environment-kit';
import { type Family, families, type Level } from './families.ts';
import { Rational } from './rational.ts';

export interface Problem {
  family: string;
  level: Level;
  question: string;
  answer: Rational;
}

export const LEVELS = 5;
/** First seeds of the splits. Seeds below the second are for training. */
export const FIRST_SEEDS = { train: 0, validation: 1_000_000, test: 2_000_000 } as const;

/** Neighbouring seeds have different levels. */
export const levelOf = (seed: number): Level => (1 + (Math.abs(seed) % LEVELS)) as Level;

/** The problem of a seed and level. A question belongs to one split, by its text, so no question of one split is in another. */
export function makeProblem(seed: number, level: Level = levelOf(seed)): Problem {
  const candidates = families.filter((family) => family.level === level);
  const family = candidates[Math.floor(Math.abs(seed) / LEVELS) % candidates.length]!;
  for (let attempt = 0; ; attempt += 1) {
    const drawn = family.draw(new SeededRandom('math', family.name, seed, attempt));
    const values = Object.fromEntries(
      Object.entries(drawn).map(([name, value]) => [name, typeof value === 'number' ? new Rational(value) : value]),
    );
    const question = write(family.text, values);
    if (splitOf(question) === splitOfSeed(seed)) return { family: family.name, level, question, answer: family.answer(values) };
  }
}

function splitOfSeed(seed: number): keyof typeof FIRST_SEEDS {
  if (seed >= FIRST_SEEDS.test) return 'test';
  return seed >= FIRST_SEEDS.validation ? 'validation' : 'train';
}

function splitOf(question: string): keyof typeof FIRST_SEEDS {
  const share = new SeededRandom('math', question).next();
  return share < 0.15 ? 'test' : share < 0.3 ? 'validation' : 'train';
}

function write(text: string, values: Record<string, Rational>): string {
  return text.replaceAll(/\{(\+?)(\w+)\}/g, (_, sign: string, name: string) => {
    const value = values[name]!;
    if (sign === '') return String(value);
    return value.numerator < 0n ? `- ${value.times(new Rational(-1))}` : `+ ${value}`;
  });
}

/** The family whose question a prompt begins with, and the values in it; null if there is none. */
export function readQuestion(prompt: string): { family: Family; values: Record<string, Rational> } | null {
  const question = prompt.split('\n')[0]!;
  for (const family of families) {
    const names = [...family.text.matchAll(/\{\+?(\w+)\}/g)].map(([, name]) => name!);
    const pattern = family.text
      .replaceAll(/[.*+?^$()|[\]\\]/g, String.raw`\$&`)
      .replaceAll(/\{\\\+\w+\}/g, String.raw`([-+] \d+(?:/\d+)?)`)
      .replaceAll(/\{\w+\}/g, String.raw`(-?\d+(?:/\d+)?)`);
    const found = new RegExp(`^${pattern}$`).exec(question);
    if (found) return { family, values: Object.fromEntries(names.map((name, index) => [name, Rational.parse(found[index + 1]!)!])) };
  }
  return null;
}
