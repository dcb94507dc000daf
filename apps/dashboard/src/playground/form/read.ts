import { type Draft, isSimple } from './draft.ts';
import type { Field, StringShape } from './field.ts';
import { problemOfNumber } from './number.ts';
import { readTensor } from './tensor.ts';

export interface Problem {
  /** `target.rooms.0`; empty for the whole input. */
  path: string;
  message: string;
}
export interface Reading {
  /** JSON text with numbers as they were typed; null if the field is omitted or invalid. */
  json: string | null;
  problems: Problem[];
}

/** Patterns are untrusted and can take very long. Longer texts are not matched. */
const PATTERN_CHARACTERS = 500;

const omitted: Reading = { json: null, problems: [] };
const valid = (json: string): Reading => ({ json, problems: [] });
const invalid = (path: string, message: string): Reading => ({ json: null, problems: [{ path, message }] });
const counted = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`;
export const pathOf = (path: string, part: string | number): string => (path === '' ? String(part) : `${path}.${part}`);

/** The JSON of a form, and its problems as messages for the reader. */
export function readDraft(field: Field, draft: Draft, required = true, path = ''): Reading {
  const { shape } = field;
  if (draft.kind === 'text') return readText(field, draft, required, path);
  if (draft.kind === 'pick') {
    if (shape.kind !== 'pick') return omitted;
    if (draft.index === null) return required ? invalid(path, 'Choose one.') : omitted;
    return valid(JSON.stringify(shape.values[draft.index]) ?? 'null');
  }
  if (draft.kind === 'oneOf')
    return shape.kind === 'oneOf' ? readDraft(shape.options[draft.index]!.field, draft.draft, true, path) : omitted;
  return draft.kind === 'list' ? readList(field, draft, path) : readObject(field, draft, path);
}

function readText(field: Field, draft: Draft & { kind: 'text' }, required: boolean, path: string): Reading {
  const { shape } = field;
  if (draft.as === 'null') return valid('null');
  if (shape.kind === 'string') {
    const value = draft.as === 'empty' ? '' : draft.text;
    if (value === '' && draft.as !== 'empty') {
      if (!required) return omitted;
      return invalid(
        path,
        shape.minLength ? `Enter at least ${counted(shape.minLength, 'character')}.` : 'Fill this in, or choose “Empty text”.',
      );
    }
    const problem = problemOfString(shape, value);
    return problem === null ? valid(JSON.stringify(value)) : invalid(path, problem);
  }
  const value = draft.text.trim();
  if (value === '')
    return required ? invalid(path, shape.kind === 'tensor' ? 'Enter numbers such as 1, 2, 3, or [] for none.' : 'Fill this in.') : omitted;
  if (shape.kind === 'number') {
    const problem = problemOfNumber(shape, value);
    return problem === null ? valid(value) : invalid(path, problem);
  }
  if (shape.kind === 'tensor') {
    const { json, problem } = readTensor(shape, value);
    return json === null ? invalid(path, problem) : valid(json);
  }
  if (shape.kind !== 'json') return omitted;
  const problem = problemOfJson(shape.expects, value);
  return problem === null ? valid(value) : invalid(path, problem);
}

function problemOfString({ minLength, maxLength, pattern }: StringShape, value: string): string | null {
  const length = [...value].length;
  if (minLength !== null && length < minLength) return `Enter at least ${counted(minLength, 'character')}, not ${length}.`;
  if (maxLength !== null && length > maxLength) return `Enter at most ${counted(maxLength, 'character')}, not ${length}.`;
  if (pattern === null || length > PATTERN_CHARACTERS) return null;
  try {
    return new RegExp(pattern, 'u').test(value) ? null : `Must match ${pattern}.`;
  } catch {
    // A pattern of another dialect. The environment checks it.
    return null;
  }
}

function problemOfJson(expects: 'any' | 'object' | 'list', literal: string): string | null {
  let value: unknown;
  try {
    value = JSON.parse(literal);
  } catch (error) {
    return `Not valid JSON: ${(error as Error).message}`;
  }
  if (expects === 'list' && !Array.isArray(value)) return 'Must be a JSON list: [ … ].';
  if (expects === 'object' && (typeof value !== 'object' || value === null || Array.isArray(value))) return 'Must be a JSON object: { … }.';
  return null;
}

function readList({ shape }: Field, draft: Draft & { kind: 'list' }, path: string): Reading {
  if (shape.kind !== 'list') return omitted;
  const items = draft.items.map((item, index) => readDraft(shape.item, item, true, pathOf(path, index)));
  const problems = items.flatMap((item) => item.problems);
  const texts = items.map(({ json }) => json);
  if (shape.min !== null && items.length < shape.min) problems.push({ path, message: `Add at least ${counted(shape.min, 'item')}.` });
  if (shape.max !== null && items.length > shape.max)
    problems.push({ path, message: `Remove items: at most ${counted(shape.max, 'item')}.` });
  if (shape.unique && new Set(texts).size < texts.length) problems.push({ path, message: 'All items must differ.' });
  return problems.length > 0 ? { json: null, problems } : valid(`[${texts.join(',')}]`);
}

function readObject({ shape }: Field, draft: Draft & { kind: 'object' }, path: string): Reading {
  if (shape.kind !== 'object') return omitted;
  const problems: Problem[] = [];
  const parts: string[] = [];
  shape.members.forEach(({ name, required, field }, index) => {
    const member = draft.members[index] ?? null;
    const at = pathOf(path, name);
    if (member === null) {
      if (required) problems.push({ path: at, message: isSimple(field) ? 'Fill this in.' : 'Add this.' });
      return;
    }
    const reading = readDraft(field, member, required, at);
    problems.push(...reading.problems);
    if (reading.json !== null) parts.push(`${JSON.stringify(name)}:${reading.json}`);
  });
  const names = new Set(shape.members.map(({ name }) => name));
  draft.others.forEach(({ name, draft: other }, index) => {
    const at = pathOf(path, `+${index}`);
    if (shape.others === null) return;
    if (name === '') problems.push({ path: at, message: 'Enter a name.' });
    else if (names.has(name)) problems.push({ path: at, message: `The name “${name}” is used twice.` });
    names.add(name);
    const reading = readDraft(shape.others, other, true, at);
    problems.push(...reading.problems);
    if (reading.json !== null) parts.push(`${JSON.stringify(name)}:${reading.json}`);
  });
  return problems.length > 0 ? { json: null, problems } : valid(`{${parts.join(',')}}`);
}
