import { type JsonValue, parseJson, stringifyJson, toPlainNumber } from '@palestra/protocol';
import { type Field, isBoolean, isObject, type Member } from './field.ts';

/** The state of a form. It has the structure of its field. Immutable. */
export type Draft =
  /** If `as` is `null` or `empty`, the text is ignored. */
  | { kind: 'text'; text: string; as: 'text' | 'empty' | 'null' }
  | { kind: 'pick'; index: number | null }
  | { kind: 'list'; items: Draft[] }
  /** `members` have the order of the field's members; null: omitted. */
  | { kind: 'object'; members: (Draft | null)[]; others: { name: string; draft: Draft }[] }
  | { kind: 'oneOf'; index: number; draft: Draft };

const text = (value: string): Draft => ({ kind: 'text', text: value, as: 'text' });

/** Simple fields are always shown, and omitted while blank. The reader adds the other optional fields. */
export const isSimple = ({ shape }: Field): boolean => ['string', 'number', 'tensor', 'pick', 'json'].includes(shape.kind);

/** An empty form: constants are chosen, booleans are false, required members have their default. */
export function blank(field: Field): Draft {
  const { shape } = field;
  switch (shape.kind) {
    case 'pick':
      return { kind: 'pick', index: shape.values.length === 1 ? 0 : isBoolean(shape) ? 1 : null };
    case 'list':
      return { kind: 'list', items: Array.from({ length: Math.min(shape.min ?? 0, 20) }, () => blank(shape.item)) };
    case 'object':
      return { kind: 'object', members: shape.members.map(blankMember), others: [] };
    case 'oneOf':
      return { kind: 'oneOf', index: 0, draft: blank(shape.options[0]!.field) };
    default:
      return text('');
  }
}

function blankMember({ required, field }: Member): Draft | null {
  if (required) return field.fallback === null ? blank(field) : fill(field, parseJson(field.fallback));
  return omitted(field);
}

/** The draft of an optional member that is omitted. */
function omitted(field: Field): Draft | null {
  if (!isSimple(field)) return null;
  // The reader chooses an optional constant.
  return field.shape.kind === 'pick' ? { kind: 'pick', index: null } : blank(field);
}

/** A number as JSON text, with its original spelling; null for other values. */
const numberText = (value: JsonValue): string | null => (toPlainNumber(value) === null ? null : stringifyJson(value));

/** A form filled with a value of `parseJson`. Parts that do not fit stay blank. */
export function fill(field: Field, value: JsonValue): Draft {
  const { shape } = field;
  if (value === null && field.nullable) return { kind: 'text', text: '', as: 'null' };
  switch (shape.kind) {
    case 'string':
      return typeof value !== 'string' ? blank(field) : value === '' ? { kind: 'text', text: '', as: 'empty' } : text(value);
    case 'number':
      return text(numberText(value) ?? '');
    case 'tensor':
      return Array.isArray(value) ? text(tensorText(value)) : blank(field);
    case 'pick': {
      const index = shape.values.findIndex((choice) => stringifyJson(choice) === stringifyJson(value));
      return { kind: 'pick', index: index === -1 ? null : index };
    }
    case 'list':
      return Array.isArray(value) ? { kind: 'list', items: value.map((item) => fill(shape.item, item)) } : blank(field);
    case 'object': {
      if (!isObject(value)) return blank(field);
      const named = new Set(shape.members.map(({ name }) => name));
      const { others } = shape;
      return {
        kind: 'object',
        members: shape.members.map((member) =>
          Object.hasOwn(value, member.name) ? fill(member.field, value[member.name]) : absent(member),
        ),
        others:
          others === null
            ? []
            : Object.entries(value).flatMap(([name, item]) => (named.has(name) ? [] : [{ name, draft: fill(others, item) }])),
      };
    }
    case 'oneOf': {
      const index = Math.max(
        0,
        shape.options.findIndex((option) => fits(option.field, value)),
      );
      return { kind: 'oneOf', index, draft: fill(shape.options[index]!.field, value) };
    }
    case 'json':
      return text(readable(value));
  }
}

/** The draft of a member that the value does not have. It is blank, because the default would change the value. */
const absent = ({ required, field }: Member): Draft | null => (required && isSimple(field) ? blank(field) : omitted(field));

/** Indented, unless that would change the spelling of a number. */
export function readable(value: JsonValue): string {
  const text = stringifyJson(value);
  return text === JSON.stringify(value) ? JSON.stringify(value, null, 2) : text;
}

/** `1, 2, 3`, or one line per row, or JSON if these forms cannot express the value. */
function tensorText(value: JsonValue[]): string {
  const row = (numbers: JsonValue): string | null => {
    const texts = Array.isArray(numbers) ? numbers.map(numberText) : [null];
    return texts.length === 0 || texts.includes(null) ? null : texts.join(', ');
  };
  if (value.length === 0 || !Array.isArray(value[0])) return row(value) ?? stringifyJson(value);
  const rows = value.map(row);
  return rows.includes(null) || rows.length < 2 ? stringifyJson(value) : rows.join('\n');
}

/** The depth of nested lists of numbers; 0 if they have other values. An empty list has depth 1. */
function depthOf(value: JsonValue): number {
  if (!Array.isArray(value)) return 0;
  const [first] = value as JsonValue[];
  if (first === undefined || toPlainNumber(first) !== null) return 1;
  const inner = depthOf(first);
  return inner === 0 ? 0 : inner + 1;
}

/** Whether a value has the type of a field. Objects must have the required members. */
export function fits({ shape, nullable }: Field, value: JsonValue): boolean {
  if (value === null && nullable) return true;
  switch (shape.kind) {
    case 'string':
      return typeof value === 'string';
    case 'number':
      return toPlainNumber(value) !== null && (!shape.integer || Number.isInteger(toPlainNumber(value)));
    case 'tensor':
      return Array.isArray(value) && depthOf(value) === shape.sizes.length;
    case 'pick':
      return shape.values.some((choice) => stringifyJson(choice) === stringifyJson(value));
    case 'list':
      return Array.isArray(value);
    case 'object':
      return (
        isObject(value) &&
        toPlainNumber(value) === null &&
        shape.members.every(
          ({ name, required, field }) =>
            (!required && !Object.hasOwn(value, name)) ||
            (Object.hasOwn(value, name) && (field.shape.kind !== 'pick' || fits(field, value[name]))),
        )
      );
    case 'oneOf':
      return shape.options.some((option) => fits(option.field, value));
    case 'json':
      return shape.expects === 'any' || (shape.expects === 'list' ? Array.isArray(value) : isObject(value));
  }
}
