import { type Draft, isSimple } from './draft.ts';
import type { Field, StringShape } from './field.ts';
import { problemOfNumber } from './number.ts';
import { readTensor } from './tensor.ts';

export interface Problem {
  /** `target.rooms.0`, empty for the whole. */
  path: string;
  message: string;
}
export interface Reading {
  /** JSON text, in which every number is spelled as it was typed; null: left out, or not readable. */
  json: string | null;
  problems: Problem[];
}

/** Patterns come from strangers and may take for ever on long texts. */
const PATTERN_CHARACTERS = 500;

const absent: Reading = { json: null, problems: [] };
const told = (json: string): Reading => ({ json, problems: [] });
const wrong = (path: string, message: string): Reading => ({ json: null, problems: [{ path, message }] });
const counted = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`;
export const pathOf = (path: string, part: string | number): string => (path === '' ? String(part) : `${path}.${part}`);

/** The JSON that a form stands for, and all that is wrong with it, in the reader's words. */
export function readDraft(field: Field, draft: Draft, required = true, path = ''): Reading {
  const { shape } = field;
  if (draft.kind === 'text') return readText(field, draft, required, path);
  if (draft.kind === 'pick') {
    if (shape.kind !== 'pick') return absent;
    if (draft.index === null) return required ? wrong(path, 'Choose one.') : absent;
    return told(JSON.stringify(shape.values[draft.index]) ?? 'null');
  }
  if (draft.kind === 'oneOf')
    return shape.kind === 'oneOf' ? readDraft(shape.options[draft.index]!.field, draft.draft, true, path) : absent;
  return draft.kind === 'list' ? readList(field, draft, path) : readObject(field, draft, path);
}

function readText(field: Field, draft: Draft & { kind: 'text' }, required: boolean, path: string): Reading {
  const { shape } = field;
  if (draft.as === 'null') return told('null');
  if (shape.kind === 'string') {
    const value = draft.as === 'empty' ? '' : draft.text;
    if (value === '' && draft.as !== 'empty') {
      if (!required) return absent;
      return wrong(
        path,
        shape.minLength ? `Fill this in: ${counted(shape.minLength, 'character')} at least.` : 'Fill this in, or choose “empty text”.',
      );
    }
    const problem = problemOfString(shape, value);
    return problem === null ? told(JSON.stringify(value)) : wrong(path, problem);
  }
  const value = draft.text.trim();
  if (value === '')
    return required ? wrong(path, shape.kind === 'tensor' ? 'Fill this in: 1, 2, 3, or [] for none.' : 'Fill this in.') : absent;
  if (shape.kind === 'number') {
    const problem = problemOfNumber(shape, value);
    return problem === null ? told(value) : wrong(path, problem);
  }
  if (shape.kind === 'tensor') {
    const { json, problem } = readTensor(shape, value);
    return json === null ? wrong(path, problem) : told(json);
  }
  if (shape.kind !== 'json') return absent;
  const problem = problemOfJson(shape.expects, value);
  return problem === null ? told(value) : wrong(path, problem);
}

function problemOfString({ minLength, maxLength, pattern }: StringShape, value: string): string | null {
  const length = [...value].length;
  if (minLength !== null && length < minLength) return `${counted(minLength, 'character')} at least; these are ${length}.`;
  if (maxLength !== null && length > maxLength) return `${counted(maxLength, 'character')} at most; these are ${length}.`;
  if (pattern === null || length > PATTERN_CHARACTERS) return null;
  try {
    return new RegExp(pattern, 'u').test(value) ? null : `Must match ${pattern}.`;
  } catch {
    // Another dialect of patterns: the environment checks it.
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
  if (shape.kind !== 'list') return absent;
  const items = draft.items.map((item, index) => readDraft(shape.item, item, true, pathOf(path, index)));
  const problems = items.flatMap((item) => item.problems);
  const texts = items.map(({ json }) => json);
  if (shape.min !== null && items.length < shape.min) problems.push({ path, message: `${counted(shape.min, 'item')} at least.` });
  if (shape.max !== null && items.length > shape.max) problems.push({ path, message: `${counted(shape.max, 'item')} at most.` });
  if (shape.unique && new Set(texts).size < texts.length) problems.push({ path, message: 'All items must differ.' });
  return problems.length > 0 ? { json: null, problems } : told(`[${texts.join(',')}]`);
}

function readObject({ shape }: Field, draft: Draft & { kind: 'object' }, path: string): Reading {
  if (shape.kind !== 'object') return absent;
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
    if (name === '') problems.push({ path: at, message: 'Name it.' });
    else if (names.has(name)) problems.push({ path: at, message: `There is a “${name}” already.` });
    names.add(name);
    const reading = readDraft(shape.others, other, true, at);
    problems.push(...reading.problems);
    if (reading.json !== null) parts.push(`${JSON.stringify(name)}:${reading.json}`);
  });
  return problems.length > 0 ? { json: null, problems } : told(`{${parts.join(',')}}`);
}
