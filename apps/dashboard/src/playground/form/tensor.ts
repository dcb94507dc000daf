import type { TensorShape } from './field.ts';
import { problemOfNumber } from './number.ts';

export type TensorReading = { json: string; problem?: undefined } | { json: null; problem: string };
const wrong = (problem: string): TensorReading => ({ json: null, problem });

type Nested = string | Nested[];

/**
 * Numbers that somebody typed, as JSON text of lists in lists, every number spelled as it was: JSON itself, `1, 2, 3`, or rows on lines
 * of their own.
 */
export function readTensor({ item, sizes, unique }: TensorShape, text: string): TensorReading {
  const value = text.startsWith('[') ? readJson(text) : readRows(text, sizes.length);
  if (typeof value === 'string') return wrong(value);
  const problem = problemOfLevel(value, sizes, 0);
  if (problem !== null) return wrong(problem);
  const literals = leavesOf(value);
  for (const [index, literal] of literals.entries()) {
    const bad = problemOfNumber(item, literal);
    if (bad !== null) return wrong(literals.length === 1 ? bad : `Number ${index + 1} (${literal.slice(0, 20)}): ${bad}`);
  }
  if (unique && new Set(literals.map(Number)).size < literals.length) return wrong('All numbers must differ.');
  return { json: written(value) };
}

const leavesOf = (value: Nested): string[] => (typeof value === 'string' ? [value] : value.flatMap(leavesOf));
const written = (value: Nested): string => (typeof value === 'string' ? value : `[${value.map(written).join(',')}]`);

/** Lists with the numbers as they are spelled; a text: what is wrong. */
function readJson(text: string): Nested[] | string {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return `Not valid JSON: ${(error as Error).message}`;
  }
  const isNumbers = (one: unknown): boolean => (Array.isArray(one) ? one.every(isNumbers) : typeof one === 'number');
  if (!isNumbers(value)) return 'Only numbers, in lists.';
  // Nothing but brackets, commas and numbers is left in such a text.
  return JSON.parse(text.replaceAll(/[^\s[\],]+/g, (literal) => JSON.stringify(literal))) as Nested[];
}

function readRows(text: string, levels: number): Nested[] | string {
  if (levels > 2) return 'Write it as JSON: [[[1, 2], [3, 4]]].';
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
  if (min !== null && value.length < min) return `${counted(min, noun)} at least; these are ${value.length}.`;
  if (max !== null && value.length > max) return `${counted(max, noun)} at most; these are ${value.length}.`;
  for (const one of value) {
    const last = level === sizes.length - 1;
    if (last !== (typeof one === 'string')) return `Lists ${counted(sizes.length, 'level')} deep are wanted.`;
    if (typeof one === 'string') continue;
    const problem = problemOfLevel(one, sizes, level + 1);
    if (problem !== null) return problem;
  }
  return null;
}

/** `3 × 4`, of what can be read so far; rows of different lengths are said. Empty for a plain list or nothing. */
export function sizeOfTensor(json: string): string {
  const value = JSON.parse(json) as unknown[];
  const sizes: string[] = [];
  for (let level: unknown[] = [value]; level.every(Array.isArray) && level.length > 0; level = level.flat()) {
    const lengths = new Set(level.map(({ length }) => length));
    sizes.push(lengths.size === 1 ? String([...lengths][0]) : 'uneven');
  }
  return sizes.join(' × ');
}
