import { type JsonValue, parseJson, stringifyJson, toPlainNumber } from '@palestra/protocol';
import { fill } from './draft.ts';
import { type Field, isObject } from './field.ts';
import { type Problem, readDraft } from './read.ts';

/** A text that is the same for equal values: members sorted by name, numbers as they are spelled. */
function canonical(value: JsonValue): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`;
  if (!isObject(value) || toPlainNumber(value) !== null) return stringifyJson(value);
  const members = Object.keys(value).toSorted();
  return `{${members.map((name) => `${JSON.stringify(name)}:${canonical(value[name])}`).join(',')}}`;
}

/** Whether the form of a field reproduces a JSON text, and the problems that the form finds in it. null if it is no JSON object. */
export function compareWithForm(field: Field, text: string): { same: boolean; problems: Problem[] } | null {
  const value = objectIn(text);
  if (value === null) return null;
  const { json, problems } = readDraft(field, fill(field, value));
  return { same: json !== null && canonical(parseJson(json)) === canonical(value), problems };
}

/** The JSON object of a text, with numbers as they are spelled; null for any other text. */
export function objectIn(text: string): JsonValue {
  try {
    const value = parseJson(text);
    return isObject(value) && toPlainNumber(value) === null ? value : null;
  } catch {
    return null;
  }
}
