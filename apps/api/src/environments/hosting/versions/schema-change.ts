import { isObject, type JsonObject, type JsonValue, stringifyJson } from '@palestra/protocol';
import { canonicalJson } from '../../task-sets/canonical-json.ts';

/** Keys of a JSON Schema that say nothing about valid values. */
const ANNOTATIONS = new Set(['title', 'description', 'default', 'examples', '$comment', 'deprecated', '$schema']);
const DEPTH = 12;

/** A difference of two argument schemas. `isBreaking`: a call that was valid may be refused now. */
export interface ArgumentChange {
  text: string;
  isBreaking: boolean;
}

/** Compares the arguments of a tool. Null is a tool without arguments. */
export function compareArguments(from: JsonObject | null, to: JsonObject | null): ArgumentChange[] {
  const [before, after] = [argumentsOf(from), argumentsOf(to)];
  const changes: ArgumentChange[] = [];
  for (const [name, argument] of before) {
    const now = after.get(name);
    if (now === undefined) changes.push({ text: `argument ${quoted(name)} was removed`, isBreaking: true });
    else changes.push(...compareArgument(name, argument, now));
  }
  for (const [name, { isRequired }] of after) {
    if (before.has(name)) continue;
    changes.push({ text: `${isRequired ? 'required' : 'optional'} argument ${quoted(name)} was added`, isBreaking: isRequired });
  }
  return changes;
}

interface Argument {
  schema: JsonValue;
  isRequired: boolean;
}

function argumentsOf(schema: JsonObject | null): Map<string, Argument> {
  const properties = isObject(schema?.['properties']) ? schema['properties'] : {};
  const required = Array.isArray(schema?.['required']) ? schema['required'] : [];
  return new Map(
    Object.entries(properties).map(([name, property]) => [
      name,
      { schema: inlined(property as JsonValue, schema ?? {}, DEPTH), isRequired: required.includes(name) },
    ]),
  );
}

function compareArgument(name: string, from: Argument, to: Argument): ArgumentChange[] {
  const changes: ArgumentChange[] = [];
  if (!from.isRequired && to.isRequired) changes.push({ text: `argument ${quoted(name)} became required`, isBreaking: true });
  if (from.isRequired && !to.isRequired) changes.push({ text: `argument ${quoted(name)} became optional`, isBreaking: false });
  const [before, after] = [from.schema, to.schema];
  if (canonicalJson(before) === canonicalJson(after)) return changes;
  const [types, nowTypes] = [typesOf(before), typesOf(after)];
  if (types !== null && nowTypes !== null && !isCovered(types, nowTypes)) {
    const text = `the type of argument ${quoted(name)} changed from ${types.join(' | ')} to ${nowTypes.join(' | ')}`;
    return [...changes, { text, isBreaking: true }];
  }
  const lost = lostValues(before, after);
  if (lost.length > 0) return [...changes, { text: `argument ${quoted(name)} no longer accepts ${lost.join(', ')}`, isBreaking: true }];
  const constraint = (value: JsonValue) => short(stringifyJson(value));
  return [...changes, { text: `argument ${quoted(name)} changed from ${constraint(before)} to ${constraint(after)}`, isBreaking: false }];
}

/** Without annotations, with the definitions that it names. */
function inlined(schema: JsonValue, root: JsonObject, depth: number): JsonValue {
  if (Array.isArray(schema)) return schema.map((item) => inlined(item, root, depth - 1));
  if (!isObject(schema)) return schema;
  const reference = schema['$ref'];
  if (typeof reference === 'string' && depth > 0) return inlined(resolved(reference, root), root, depth - 1);
  const kept = Object.entries(schema).filter(([key]) => !ANNOTATIONS.has(key));
  return Object.fromEntries(
    kept.map(([key, value]) => [key, depth > 0 ? inlined(value as JsonValue, root, depth - 1) : value]),
  ) as JsonObject;
}

function resolved(reference: string, root: JsonObject): JsonValue {
  const path = /^#\/(.+)$/.exec(reference)?.[1]?.split('/') ?? [];
  return (path.reduce<unknown>((value, key) => (isObject(value) ? value[key] : undefined), root) ?? null) as JsonValue;
}

/** Sorted; null when the schema does not say. */
function typesOf(schema: JsonValue): string[] | null {
  if (!isObject(schema)) return null;
  const { type } = schema;
  if (typeof type === 'string') return [type];
  if (Array.isArray(type)) return type.filter((one): one is string => typeof one === 'string').toSorted();
  const choices = schema['anyOf'] ?? schema['oneOf'];
  if (!Array.isArray(choices)) return null;
  const types = choices.map((choice) => typesOf(choice as JsonValue));
  return types.includes(null) ? null : [...new Set(types.flat() as string[])].toSorted();
}

const isCovered = (types: readonly string[], by: readonly string[]): boolean =>
  types.every((type) => by.includes(type) || (type === 'integer' && by.includes('number')));

/** Values of an enumeration that the other one lacks. */
function lostValues(from: JsonValue, to: JsonValue): string[] {
  if (!isObject(from) || !isObject(to) || !Array.isArray(to['enum'])) return [];
  const accepted = new Set(to['enum'].map((value) => stringifyJson(value as JsonValue)));
  if (!Array.isArray(from['enum'])) return ['other values'];
  return from['enum'].map((value) => stringifyJson(value as JsonValue)).filter((value) => !accepted.has(value));
}

const MAX_CHARS = 200;
const short = (text: string): string => (text.length > MAX_CHARS ? `${text.slice(0, MAX_CHARS)}…` : text);
const quoted = (name: string): string => JSON.stringify(short(name));
