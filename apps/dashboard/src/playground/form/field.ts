import type { JsonObject, JsonValue } from '@palestra/protocol';

/**
 * A JSON Schema as a form shows it. Supports drafts 4 to 2020-12 as pydantic and zod write them: `$ref` into the same document, `allOf`,
 * `anyOf`, `oneOf`, lists of types, and `nullable` of OpenAPI. Everything else has the shape `json`: a text that must be JSON.
 */
export interface Field {
  title: string | null;
  description: string | null;
  /** JSON text of `default`. */
  fallback: string | null;
  /** Also accepts null. Only text-like shapes use it; for other shapes null is a choice. */
  nullable: boolean;
  shape: Shape;
}
export interface StringShape {
  kind: 'string';
  minLength: number | null;
  maxLength: number | null;
  pattern: string | null;
  format: string | null;
  /** The control has several lines. */
  long: boolean;
}
export interface NumberShape {
  kind: 'number';
  integer: boolean;
  minimum: number | null;
  maximum: number | null;
  /** Exclusive bounds. */
  above: number | null;
  below: number | null;
  multipleOf: number | null;
}
/** Nested lists of numbers, entered as one text. */
export interface TensorShape {
  kind: 'tensor';
  item: NumberShape;
  /** Bounds of the length at each level, the outermost first. */
  sizes: { min: number | null; max: number | null }[];
  unique: boolean;
}
export type Shape =
  | StringShape
  | NumberShape
  | TensorShape
  /** One of these values: booleans, enums, constants. */
  | { kind: 'pick'; values: JsonValue[] }
  | { kind: 'list'; item: Field; min: number | null; max: number | null; unique: boolean }
  /** `others`: the field of additional members. */
  | { kind: 'object'; members: Member[]; others: Field | null }
  | { kind: 'oneOf'; options: { label: string; field: Field }[] }
  | { kind: 'json'; expects: 'any' | 'object' | 'list' };
export interface Member {
  name: string;
  required: boolean;
  field: Field;
}

/** A hostile schema can double at every level. Further fields become free JSON. */
const MAX_FIELDS = 2_000;
const MAX_DEPTH = 12;

interface ReadContext {
  root: JsonObject;
  /** References that are being resolved. A repeated one becomes free JSON. */
  refs: readonly string[];
  depth: number;
  budget: { fields: number };
}

export const isObject = (value: JsonValue): value is JsonObject => typeof value === 'object' && value !== null && !Array.isArray(value);
const textOf = (value: JsonValue): string | null => (typeof value === 'string' && value !== '' ? value : null);
const numberOf = (value: JsonValue): number | null => (typeof value === 'number' && Number.isFinite(value) ? value : null);
const ownValue = (object: JsonObject, name: string): JsonValue => (Object.hasOwn(object, name) ? object[name] : undefined);

/** The field of a schema. A value that is no schema gives a field for any JSON. */
export function fieldOf(schema: JsonValue): Field {
  return read(schema, { root: isObject(schema) ? schema : {}, refs: [], depth: 0, budget: { fields: MAX_FIELDS } });
}

/** The arguments of a tool as an object. A tool without arguments has no members. */
export function argumentsOf(schema: JsonObject | null): Field {
  const none: Shape = { kind: 'object', members: [], others: null };
  if (schema === null) return { ...anything('object'), shape: none };
  const field = fieldOf(schema);
  // An object without properties has no arguments, unless the schema allows additional ones.
  const additional = ownValue(schema, 'additionalProperties');
  const isOpen = additional === true || isObject(additional) || ownValue(schema, 'patternProperties') !== undefined;
  return field.shape.kind === 'json' && field.shape.expects === 'object' && !isOpen ? { ...field, shape: none } : field;
}

function anything(expects: 'any' | 'object' | 'list' = 'any'): Field {
  return { title: null, description: null, fallback: null, nullable: false, shape: { kind: 'json', expects } };
}

function read(schema: JsonValue, context: ReadContext): Field {
  context.budget.fields -= 1;
  if (!isObject(schema) || context.depth > MAX_DEPTH || context.budget.fields < 0) return anything();
  const resolved = resolve(schema, context);
  if (resolved === null) return { ...anything(), title: nameOfRef(schema), description: textOf(ownValue(schema, 'description')) };
  const { schema: flat, context: inner } = resolved;
  const fallback = ownValue(flat, 'default');
  const head = {
    title: textOf(ownValue(flat, 'title')),
    description: textOf(ownValue(flat, 'description')),
    fallback: fallback === undefined ? null : JSON.stringify(fallback),
  };
  const { shape, nullable } = shapeOf(flat, { ...inner, depth: inner.depth + 1 });
  return { ...head, nullable, shape };
}

const nameOfRef = (schema: JsonObject): string | null => textOf(ownValue(schema, '$ref'))?.split('/').at(-1) ?? null;

/** The schema with `$ref` and `allOf` resolved; null for a missing or circular reference. */
function resolve(schema: JsonObject, context: ReadContext): { schema: JsonObject; context: ReadContext } | null {
  const ref = ownValue(schema, '$ref');
  if (typeof ref === 'string') {
    const target = context.refs.includes(ref) ? null : lookUp(context.root, ref);
    if (!isObject(target)) return null;
    const { $ref: _, ...beside } = schema;
    return resolve({ ...target, ...beside }, { ...context, refs: [...context.refs, ref] });
  }
  const all = ownValue(schema, 'allOf');
  if (!Array.isArray(all)) return { schema, context };
  let merged: JsonObject = {};
  let inner = context;
  for (const part of all) {
    const resolved = isObject(part) ? resolve(part, inner) : null;
    if (resolved === null) return null;
    merged = merge(merged, resolved.schema);
    inner = { ...inner, refs: resolved.context.refs };
  }
  const { allOf: _, ...beside } = schema;
  return { schema: merge(merged, beside), context: inner };
}

function merge(a: JsonObject, b: JsonObject): JsonObject {
  const both: JsonObject = { ...a, ...b };
  if (isObject(a['properties']) && isObject(b['properties'])) both['properties'] = { ...a['properties'], ...b['properties'] };
  if (Array.isArray(a['required']) && Array.isArray(b['required'])) both['required'] = [...a['required'], ...b['required']];
  return both;
}

function lookUp(root: JsonObject, ref: string): JsonValue {
  if (!ref.startsWith('#')) return null;
  let at: JsonValue = root;
  for (const raw of ref.slice(1).split('/').filter(Boolean)) {
    const name = decode(raw);
    at = isObject(at) ? ownValue(at, name) : Array.isArray(at) ? at[Number(name)] : undefined;
  }
  return at;
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part).replaceAll('~1', '/').replaceAll('~0', '~');
  } catch {
    return part;
  }
}

type Shaped = Pick<Field, 'shape' | 'nullable'>;

function shapeOf(schema: JsonObject, context: ReadContext): Shaped {
  const values = ownValue(schema, 'enum');
  if (Array.isArray(values) && values.length > 0) return { shape: { kind: 'pick', values }, nullable: false };
  if (Object.hasOwn(schema, 'const')) return { shape: { kind: 'pick', values: [schema['const']] }, nullable: false };
  const choices = ownValue(schema, 'anyOf') ?? ownValue(schema, 'oneOf');
  if (Array.isArray(choices) && choices.length > 0) {
    const { anyOf: _, oneOf: __, title: ___, description: ____, default: _____, ...base } = schema;
    return unionOf(
      choices.map((choice) => (isObject(choice) ? merge(base, choice) : choice)),
      context,
    );
  }
  const type = typeIn(schema);
  if (Array.isArray(type)) {
    const { title: _, description: __, default: ___, ...base } = schema;
    return unionOf(
      type.map((one) => ({ ...base, type: one })),
      context,
    );
  }
  if (ownValue(schema, 'nullable') === true) {
    const { nullable: _, ...base } = schema;
    return unionOf([base, { type: 'null' }], context);
  }
  return { shape: shapeOfType(type, schema, context), nullable: false };
}

function typeIn(schema: JsonObject): JsonValue {
  const type = ownValue(schema, 'type');
  if (type !== undefined) return type;
  if (isObject(ownValue(schema, 'properties'))) return 'object';
  return ownValue(schema, 'items') === undefined ? undefined : 'array';
}

const isNull = (schema: JsonValue): boolean =>
  isObject(schema) && (ownValue(schema, 'type') === 'null' || ownValue(schema, 'const') === null);
const isTextLike = ({ kind }: Shape): boolean => kind === 'string' || kind === 'number' || kind === 'tensor';

function unionOf(schemas: JsonValue[], context: ReadContext): Shaped {
  const others = schemas.filter((schema) => !isNull(schema));
  const takesNull = others.length < schemas.length;
  if (others.length === 0) return { shape: { kind: 'pick', values: [null] }, nullable: false };
  const fields = others.map((schema) => read(schema, context));
  if (fields.length === 1) {
    const [field] = fields as [Field];
    if (!takesNull || field.nullable) return field;
    if (isTextLike(field.shape)) return { shape: field.shape, nullable: true };
    if (field.shape.kind === 'pick') return { shape: { kind: 'pick', values: [...field.shape.values, null] }, nullable: false };
  }
  // A union of values is one choice: literals of zod, enums with descriptions.
  if (fields.every(({ shape }) => shape.kind === 'pick')) {
    const values = fields.flatMap(({ shape }) => (shape.kind === 'pick' ? shape.values : []));
    return { shape: { kind: 'pick', values: takesNull ? [...values, null] : values }, nullable: false };
  }
  const options = fields.map((field) => ({ label: field.title ?? constantOf(field) ?? typeName(field), field }));
  if (takesNull) options.push({ label: 'null', field: { ...anything(), shape: { kind: 'pick', values: [null] } } });
  return { shape: { kind: 'oneOf', options }, nullable: false };
}

/** The discriminator of an option: the constant of a required member (`kind: "line"`). */
function constantOf({ shape }: Field): string | null {
  if (shape.kind !== 'object') return null;
  for (const { required, field } of shape.members) {
    if (!required || field.shape.kind !== 'pick' || field.shape.values.length !== 1) continue;
    const [value] = field.shape.values;
    return typeof value === 'string' ? value : JSON.stringify(value);
  }
  return null;
}

function shapeOfType(type: JsonValue, schema: JsonObject, context: ReadContext): Shape {
  switch (type) {
    case 'string':
      return {
        kind: 'string',
        minLength: numberOf(ownValue(schema, 'minLength')),
        maxLength: numberOf(ownValue(schema, 'maxLength')),
        pattern: textOf(ownValue(schema, 'pattern')),
        format: textOf(ownValue(schema, 'format')),
        long: isLong(schema),
      };
    case 'number':
    case 'integer':
      return numberShape(schema, type === 'integer');
    case 'boolean':
      return { kind: 'pick', values: [true, false] };
    case 'null':
      return { kind: 'pick', values: [null] };
    case 'array':
      return listShape(schema, context);
    case 'object':
      return objectShape(schema, context);
    default:
      return { kind: 'json', expects: 'any' };
  }
}

const LONG_CHARACTERS = 200;
/** Whether a schema describes a text of several lines. There is no standard keyword for that. */
function isLong(schema: JsonObject): boolean {
  const hints = [ownValue(schema, 'format'), ownValue(schema, 'contentMediaType'), ownValue(schema, 'x-widget')].join(' ');
  return (
    (numberOf(ownValue(schema, 'maxLength')) ?? 0) > LONG_CHARACTERS || /multi-?line|textarea|markdown|html|python|code|text\//i.test(hints)
  );
}

function numberShape(schema: JsonObject, integer: boolean): NumberShape {
  const [minimum, maximum] = [numberOf(ownValue(schema, 'minimum')), numberOf(ownValue(schema, 'maximum'))];
  // In draft 4 these are booleans that sharpen the bounds.
  const [above, below] = [ownValue(schema, 'exclusiveMinimum'), ownValue(schema, 'exclusiveMaximum')];
  return {
    kind: 'number',
    integer,
    minimum: above === true ? null : minimum,
    maximum: below === true ? null : maximum,
    above: above === true ? minimum : numberOf(above),
    below: below === true ? maximum : numberOf(below),
    multipleOf: numberOf(ownValue(schema, 'multipleOf')),
  };
}

function listShape(schema: JsonObject, context: ReadContext): Shape {
  const items = ownValue(schema, 'items');
  if (Array.isArray(items) || ownValue(schema, 'prefixItems') !== undefined) return { kind: 'json', expects: 'list' };
  const size = { min: numberOf(ownValue(schema, 'minItems')), max: numberOf(ownValue(schema, 'maxItems')) };
  const unique = ownValue(schema, 'uniqueItems') === true;
  const item = read(items ?? {}, context);
  if (!item.nullable && item.shape.kind === 'number') return { kind: 'tensor', item: item.shape, sizes: [size], unique };
  if (!item.nullable && item.shape.kind === 'tensor' && !item.shape.unique && !unique)
    return { ...item.shape, sizes: [size, ...item.shape.sizes] };
  return { kind: 'list', item, ...size, unique };
}

function objectShape(schema: JsonObject, context: ReadContext): Shape {
  const properties = ownValue(schema, 'properties');
  const required = ownValue(schema, 'required');
  const additional = ownValue(schema, 'additionalProperties');
  const members = isObject(properties)
    ? Object.entries(properties).map(([name, property]) => ({
        name,
        required: Array.isArray(required) && required.includes(name),
        field: read(property, context),
      }))
    : [];
  if (members.length === 0 && !isObject(additional)) return { kind: 'json', expects: 'object' };
  return { kind: 'object', members, others: isObject(additional) && Object.keys(additional).length > 0 ? read(additional, context) : null };
}

/** The type of a field as text: `string`, `integer[]`, `"a" | "b"`. */
export function typeName({ shape, nullable }: Field): string {
  const name = shapeName(shape);
  return nullable ? `${name} | null` : name;
}

function shapeName(shape: Shape): string {
  switch (shape.kind) {
    case 'string':
      return shape.format ?? 'string';
    case 'number':
      return shape.integer ? 'integer' : 'number';
    case 'pick':
      return isBoolean(shape) ? 'boolean' : shape.values.map((value) => JSON.stringify(value)).join(' | ');
    case 'tensor':
      return (shape.item.integer ? 'integer' : 'number') + '[]'.repeat(shape.sizes.length);
    case 'list': {
      const item = typeName(shape.item);
      return item.includes(' | ') ? `(${item})[]` : `${item}[]`;
    }
    case 'object':
      return shape.members.length === 0 && shape.others ? `{ name: ${typeName(shape.others)} }` : 'object';
    case 'oneOf':
      return shape.options.map(({ label }) => label).join(' | ');
    case 'json':
      return shape.expects === 'any' ? 'any' : shape.expects;
  }
}

/** Whether the values are true and false only. */
export const isBoolean = ({ values }: { values: JsonValue[] }): boolean => values.length === 2 && values[0] === true && values[1] === false;

/** The constraints of a field as text: `3 to 10 characters`, `at least 0`, `matches ^a+$`. */
export function limitsOf({ shape }: Field): string {
  switch (shape.kind) {
    case 'string':
      return [range(shape.minLength, shape.maxLength, ' characters'), shape.pattern && `matches ${shape.pattern}`]
        .filter(Boolean)
        .join(', ');
    case 'number':
      return boundsOf(shape);
    case 'tensor': {
      const sizes = shape.sizes.map(({ min, max }, level) => range(min, max, level === shape.sizes.length - 1 ? ' numbers' : ' rows'));
      const each = boundsOf(shape.item);
      return [...sizes, each && `each ${each}`, shape.unique && 'all different'].filter(Boolean).join(', ');
    }
    case 'list':
      return [range(shape.min, shape.max, ' items'), shape.unique && 'all different'].filter(Boolean).join(', ');
    default:
      return '';
  }
}

const boundsOf = ({ minimum, maximum, above, below, multipleOf }: NumberShape): string =>
  [
    range(minimum, maximum, ''),
    above !== null && `above ${above}`,
    below !== null && `below ${below}`,
    multipleOf !== null && `a multiple of ${multipleOf}`,
  ]
    .filter(Boolean)
    .join(', ');

function range(min: number | null, max: number | null, unit: string): string {
  const counted = (count: number): string => `${count}${count === 1 ? unit.replace(/s$/, '') : unit}`;
  if (min !== null && max !== null) return min === max ? `exactly ${counted(min)}` : `${min} to ${counted(max)}`;
  if (min !== null && min !== 0) return `at least ${counted(min)}`;
  if (max !== null) return `at most ${counted(max)}`;
  return min === 0 && unit === '' ? 'at least 0' : '';
}
