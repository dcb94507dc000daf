import type { SeededRandom } from '@palestra/environment-kit';

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
export type Level = 1 | 2 | 3 | 4 | 5;

/** One programming task: a function `solve` to write. Its hidden tests are arguments and the values that the reference returns for them. */
export interface Exercise {
  level: Level;
  /** Parameters of `solve`, as in Python. */
  parameters: string;
  /** Markdown, without the examples. */
  statement: string;
  /** Correct and fast enough for the largest input. */
  reference(...args: never[]): Json;
  /** A correct program. Written independently of `reference`, so that each verifies the other. */
  python: string;
  /** Programs with a typical mistake. Each fails at least one hidden test. */
  mutants: string[];
  /** Programs that are correct and too slow. Each fails at least one hidden test by its time. */
  slow: string[];
  /** Arguments, small ones first. The first `EXAMPLES` are shown in the statement; the others are the hidden tests. */
  inputs(random: SeededRandom): Json[][];
}

export interface Family {
  name: string;
  exercises: Exercise[];
}

interface Draft extends Omit<Exercise, 'mutants' | 'slow'> {
  /** Mistakes: a text of the program and what a mutant has instead. */
  mistakes: [correct: string, wrong: string][];
  slow?: string[];
}

/** Number of inputs that are shown as examples. */
export const EXAMPLES = 3;

/** Defines a family with one exercise per variant. */
export function defineFamily<Variant>(name: string, variants: Variant[], make: (variant: Variant) => Draft): Family {
  return {
    name,
    exercises: variants.map((variant) => {
      const { mistakes, slow = [], ...exercise } = make(variant);
      const python = dedent(exercise.python);
      const mutants = mistakes.map(([correct, wrong]) => {
        if (!python.includes(correct))
          throw new Error(`${name}: no ${JSON.stringify(correct)} in the program of ${JSON.stringify(variant)}`);
        return python.replace(correct, wrong);
      });
      return { ...exercise, statement: dedent(exercise.statement), python, mutants, slow: slow.map(dedent) };
    }),
  };
}

/** Every combination of the options. */
export function combine<Options extends Record<string, readonly unknown[]>>(
  options: Options,
): { [Key in keyof Options]: Options[Key][number] }[] {
  return Object.entries(options).reduce<Record<string, unknown>[]>(
    (variants, [key, values]) => variants.flatMap((variant) => values.map((value) => ({ ...variant, [key]: value }))),
    [{}],
  ) as { [Key in keyof Options]: Options[Key][number] }[];
}

/** Removes the indentation of the first line from every line, and empty lines at both ends. */
export function dedent(text: string): string {
  const lines = text.replace(/^\n+/, '').trimEnd().split('\n');
  const indentation = /^ */.exec(lines[0]!)![0];
  return lines.map((line) => (line.startsWith(indentation) ? line.slice(indentation.length) : line.trimStart())).join('\n');
}

export const text = (random: SeededRandom, length: number, alphabet: string): string =>
  Array.from({ length }, () => alphabet[random.integer(0, alphabet.length - 1)]).join('');
export const integers = (random: SeededRandom, length: number, low: number, high: number): number[] =>
  Array.from({ length }, () => random.integer(low, high));
export const times = <T>(count: number, make: (index: number) => T): T[] => Array.from({ length: count }, (_, index) => make(index));

const WORDS = (
  'amber apple arrow basin birch cedar cloud coral delta ember fable field flint forge grape harbor hazel iris ivory jade lark ' +
  'lemon linen maple marsh mint north oak ocean olive onyx orbit pearl pine plum quartz quill reed river rose sage salt shore silk ' +
  'slate snow spark stone sun thorn tide umber vale violet wave willow wind yarn a an of to in it up'
).split(' ');
export const words = (random: SeededRandom, count: number): string[] => times(count, () => random.pick(WORDS));
