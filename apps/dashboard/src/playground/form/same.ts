import { type JsonValue, parseJson, stringifyJson, toPlainNumber } from '@palestra/protocol';
import { fill } from './draft.ts';
import { type Field, isObject } from './field.ts';
import { type Problem, readDraft } from './read.ts';

/** One text for equal values: members in order of their names, numbers as they are spelled. */
function canonical(value: JsonValue): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`;
  if (!isObject(value) || toPlainNumber(value) !== null) return stringifyJson(value);
  const members = Object.keys(value).toSorted();
  return `{${members.map((name) => `${JSON.stringify(name)}:${canonical(value[name])}`).join(',')}}`;
}

/** What the form of a field makes of a JSON text: whether it says the same again, and what its checks find. null: no JSON object. */
export function judge(field: Field, text: string): { same: boolean; problems: Problem[] } | null {
  const value = objectIn(text);
  if (value === null) return null;
  const { json, problems } = readDraft(field, fill(field, value));
  return { same: json !== null && canonical(parseJson(json)) === canonical(value), problems };
}

/** The object that a text is, numbers as they are spelled; null for anything else. */
export function objectIn(text: string): JsonValue {
  try {
    const value = parseJson(text);
    return isObject(value) && toPlainNumber(value) === null ? value : null;
  } catch {
    return null;
  }
}
