import type { TensorShape } from './field.ts';
import { problemOfNumber } from './number.ts';

export type TensorReading = { json: string; problem?: undefined } | { json: null; problem: string };
const invalid = (problem: string): TensorReading => ({ json: null, problem });

type Nested = string | Nested[];

/** Parses typed numbers to JSON text of nested lists, keeping their spelling. Accepts JSON, `1, 2, 3`, and one line per row. */
export function readTensor({ item, sizes, unique }: TensorShape, text: string): TensorReading {
  const value = text.startsWith('[') ? readJson(text) : readRows(text, sizes.length);
  if (typeof value === 'string') return invalid(value);
  const problem = problemOfLevel(value, sizes, 0);
  if (problem !== null) return invalid(problem);
  const literals = leavesOf(value);
  for (const [index, literal] of literals.entries()) {
    const numberProblem = problemOfNumber(item, literal);
    if (numberProblem !== null)
      return invalid(literals.length === 1 ? numberProblem : `Number ${index + 1} (${literal.slice(0, 20)}): ${numberProblem}`);
  }
  if (unique && new Set(literals.map(Number)).size < literals.length) return invalid('All numbers must differ.');
  return { json: print(value) };
}

const leavesOf = (value: Nested): string[] => (typeof value === 'string' ? [value] : value.flatMap(leavesOf));
const print = (value: Nested): string => (typeof value === 'string' ? value : `[${value.map(print).join(',')}]`);

/** Nested lists of number literals, or a text with the problem. */
function readJson(text: string): Nested[] | string {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return `Not valid JSON: ${(error as Error).message}`;
  }
  const isNumbers = (item: unknown): boolean => (Array.isArray(item) ? item.every(isNumbers) : typeof item === 'number');
  if (!isNumbers(value)) return 'Enter only numbers, in lists.';
  // The text has only brackets, commas, spaces and numbers.
  return JSON.parse(text.replaceAll(/[^\s[\],]+/g, (literal) => JSON.stringify(literal))) as Nested[];
}

function readRows(text: string, levels: number): Nested[] | string {
  if (levels > 2) return 'Enter JSON such as [[[1, 2], [3, 4]]].';
  const numbersOf = (line: string): string[] => line.split(/[\s,;]+/).filter(Boolean);
  if (levels === 1) return numbersOf(text);
  return text
    .split('\n')
    .map(numbersOf)
    .filter((row) => row.length > 0);
}

const counted = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`;

function problemOfLevel(value: Nested[], sizes: TensorShape['sizes'], level: number): string | null {
  const { min, max } = sizes[level]!;
  const noun = level === sizes.length - 1 ? 'number' : 'row';
  if (min !== null && value.length < min) return `Enter at least ${counted(min, noun)}, not ${value.length}.`;
  if (max !== null && value.length > max) return `Enter at most ${counted(max, noun)}, not ${value.length}.`;
  for (const one of value) {
    const last = level === sizes.length - 1;
    if (last !== (typeof one === 'string')) return `Nest the lists ${counted(sizes.length, 'level')} deep.`;
    if (typeof one === 'string') continue;
    const problem = problemOfLevel(one, sizes, level + 1);
    if (problem !== null) return problem;
  }
  return null;
}

/** The length at each level, such as `3 × 4`. Rows of different lengths are `uneven`. */
export function sizeOfTensor(json: string): string {
  const value = JSON.parse(json) as unknown[];
  const sizes: string[] = [];
  for (let level: unknown[] = [value]; level.every(Array.isArray) && level.length > 0; level = level.flat()) {
    const lengths = new Set(level.map(({ length }) => length));
    sizes.push(lengths.size === 1 ? String([...lengths][0]) : 'uneven');
  }
  return sizes.join(' × ');
}
