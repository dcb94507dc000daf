import { type JsonValue, parseJson, stringifyJson, toPlainNumber } from '@palestra/protocol';
import { type Field, isBoolean, isObject, type Member } from './field.ts';

/** What somebody has filled in so far; of the same form as its field. Immutable. */
export type Draft =
  /** `as` null or empty: the text is not looked at. */
  | { kind: 'text'; text: string; as: 'text' | 'empty' | 'null' }
  | { kind: 'pick'; index: number | null }
  | { kind: 'list'; items: Draft[] }
  /** `members` in the order of the field's; null: left out. */
  | { kind: 'object'; members: (Draft | null)[]; others: { name: string; draft: Draft }[] }
  | { kind: 'oneOf'; index: number; draft: Draft };

const text = (value: string): Draft => ({ kind: 'text', text: value, as: 'text' });

/** Simple fields are always there and count as left out while they are blank; the others are added by hand. */
export const isSimple = ({ shape }: Field): boolean => ['string', 'number', 'tensor', 'pick', 'json'].includes(shape.kind);

/** An empty form: constants are chosen, a yes or no is no, what must be given begins with its default. */
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
  return leftOut(field);
}

/** A member that need not be there, and is not. */
function leftOut(field: Field): Draft | null {
  if (!isSimple(field)) return null;
  // An optional constant is chosen by hand.
  return field.shape.kind === 'pick' ? { kind: 'pick', index: null } : blank(field);
}

/** As JSON writes it: numbers keep the spelling that they came with. */
const numberText = (value: JsonValue): string | null => (toPlainNumber(value) === null ? null : stringifyJson(value));

/** A form filled with a value (of `parseJson`), as far as the value fits into it. */
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
      const index = shape.values.findIndex((one) => stringifyJson(one) === stringifyJson(value));
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

/** A member that the value has not: its default would be another value. */
const absent = ({ required, field }: Member): Draft | null => (required && isSimple(field) ? blank(field) : leftOut(field));

/** Indented where every number is one that JavaScript writes back as it was. */
export function readable(value: JsonValue): string {
  const text = stringifyJson(value);
  return text === JSON.stringify(value) ? JSON.stringify(value, null, 2) : text;
}

/** `1, 2, 3`; rows on lines of their own; JSON where that would not say the same. */
function tensorText(value: JsonValue[]): string {
  const row = (numbers: JsonValue): string | null => {
    const texts = Array.isArray(numbers) ? numbers.map(numberText) : [null];
    return texts.length === 0 || texts.includes(null) ? null : texts.join(', ');
  };
  if (value.length === 0 || !Array.isArray(value[0])) return row(value) ?? stringifyJson(value);
  const rows = value.map(row);
  return rows.includes(null) || rows.length < 2 ? stringifyJson(value) : rows.join('\n');
}

/** Levels of a list of lists of numbers; 0 for what holds anything else. An empty list has one. */
function deepest(value: JsonValue): number {
  if (!Array.isArray(value)) return 0;
  const [first] = value as JsonValue[];
  if (first === undefined || toPlainNumber(first) !== null) return 1;
  const inner = deepest(first);
  return inner === 0 ? 0 : inner + 1;
}

/** Whether a value looks like one of a choice's fields: its type, and of objects the names that must be there. */
export function fits({ shape, nullable }: Field, value: JsonValue): boolean {
  if (value === null && nullable) return true;
  switch (shape.kind) {
    case 'string':
      return typeof value === 'string';
    case 'number':
      return toPlainNumber(value) !== null && (!shape.integer || Number.isInteger(toPlainNumber(value)));
    case 'tensor':
      return Array.isArray(value) && deepest(value) === shape.sizes.length;
    case 'pick':
      return shape.values.some((one) => stringifyJson(one) === stringifyJson(value));
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
