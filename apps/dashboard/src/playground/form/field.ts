import type { JsonObject, JsonValue } from '@palestra/protocol';

/**
 * What a JSON Schema asks for, as a form and a reader see it. Drafts 4 to 2020-12 as environments send them (pydantic, zod): `$ref` into
 * the same document, `allOf`, `anyOf`, `oneOf`, lists of types, OpenAPI's `nullable`. What has no form of its own is `json`: free text
 * that must be JSON.
 */
export interface Field {
  title: string | null;
  description: string | null;
  /** JSON text of `default`. */
  fallback: string | null;
  /** `null` is taken, too; only of `text`-like shapes, elsewhere null is a choice of its own. */
  nullable: boolean;
  shape: Shape;
}
export interface StringShape {
  kind: 'string';
  minLength: number | null;
  maxLength: number | null;
  pattern: string | null;
  format: string | null;
  /** Several lines are to be expected. */
  long: boolean;
}
export interface NumberShape {
  kind: 'number';
  integer: boolean;
  minimum: number | null;
  maximum: number | null;
  /** The bounds themselves are refused. */
  above: number | null;
  below: number | null;
  multipleOf: number | null;
}
/** Numbers, in rows and rows of rows: written as one text. */
export interface TensorShape {
  kind: 'tensor';
  item: NumberShape;
  /** How many there may be at each level, the outermost first. */
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
  /** `others`: what members of any further name are. */
  | { kind: 'object'; members: Member[]; others: Field | null }
  | { kind: 'oneOf'; options: { label: string; field: Field }[] }
  | { kind: 'json'; expects: 'any' | 'object' | 'list' };
export interface Member {
  name: string;
  required: boolean;
  field: Field;
}

/** A hostile schema may refer to itself twice over at every level: no form has more fields than this. */
const MAX_FIELDS = 2_000;
const MAX_DEPTH = 12;

interface Place {
  root: JsonObject;
  /** References that are being followed: one that comes again is free JSON. */
  refs: readonly string[];
  depth: number;
  left: { fields: number };
}

export const isObject = (value: JsonValue): value is JsonObject => typeof value === 'object' && value !== null && !Array.isArray(value);
const textOf = (value: JsonValue): string | null => (typeof value === 'string' && value !== '' ? value : null);
const numberOf = (value: JsonValue): number | null => (typeof value === 'number' && Number.isFinite(value) ? value : null);
const own = (object: JsonObject, name: string): JsonValue => (Object.hasOwn(object, name) ? object[name] : undefined);

/** The field of a whole schema; `null` or anything that is no schema: any JSON. */
export function fieldOf(schema: JsonValue): Field {
  return read(schema, { root: isObject(schema) ? schema : {}, refs: [], depth: 0, left: { fields: MAX_FIELDS } });
}

/** The arguments of a tool: an object, with no members for a tool without arguments. */
export function argumentsOf(schema: JsonObject | null): Field {
  const none: Shape = { kind: 'object', members: [], others: null };
  if (schema === null) return { ...anything('object'), shape: none };
  const field = fieldOf(schema);
  // An object that names nothing takes nothing, unless it says that it does.
  const further = own(schema, 'additionalProperties');
  const named = further === true || isObject(further) || own(schema, 'patternProperties') !== undefined;
  return field.shape.kind === 'json' && field.shape.expects === 'object' && !named ? { ...field, shape: none } : field;
}

function anything(expects: 'any' | 'object' | 'list' = 'any'): Field {
  return { title: null, description: null, fallback: null, nullable: false, shape: { kind: 'json', expects } };
}

function read(schema: JsonValue, place: Place): Field {
  place.left.fields -= 1;
  if (!isObject(schema) || place.depth > MAX_DEPTH || place.left.fields < 0) return anything();
  const resolved = resolve(schema, place);
  if (resolved === null) return { ...anything(), title: nameOfRef(schema), description: textOf(own(schema, 'description')) };
  const { schema: flat, place: inside } = resolved;
  const fallback = own(flat, 'default');
  const head = {
    title: textOf(own(flat, 'title')),
    description: textOf(own(flat, 'description')),
    fallback: fallback === undefined ? null : JSON.stringify(fallback),
  };
  const { shape, nullable } = shapeOf(flat, { ...inside, depth: inside.depth + 1 });
  return { ...head, nullable, shape };
}

const nameOfRef = (schema: JsonObject): string | null => textOf(own(schema, '$ref'))?.split('/').at(-1) ?? null;

/** The schema without `$ref` and `allOf`; null for a reference that leads nowhere or back to itself. */
function resolve(schema: JsonObject, place: Place): { schema: JsonObject; place: Place } | null {
  const ref = own(schema, '$ref');
  if (typeof ref === 'string') {
    const target = place.refs.includes(ref) ? null : lookUp(place.root, ref);
    if (!isObject(target)) return null;
    const { $ref: _, ...beside } = schema;
    return resolve({ ...target, ...beside }, { ...place, refs: [...place.refs, ref] });
  }
  const all = own(schema, 'allOf');
  if (!Array.isArray(all)) return { schema, place };
  let merged: JsonObject = {};
  let inside = place;
  for (const part of all) {
    const resolved = isObject(part) ? resolve(part, inside) : null;
    if (resolved === null) return null;
    merged = merge(merged, resolved.schema);
    inside = { ...inside, refs: resolved.place.refs };
  }
  const { allOf: _, ...beside } = schema;
  return { schema: merge(merged, beside), place: inside };
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
    at = isObject(at) ? own(at, name) : Array.isArray(at) ? at[Number(name)] : undefined;
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

function shapeOf(schema: JsonObject, place: Place): Shaped {
  const values = own(schema, 'enum');
  if (Array.isArray(values) && values.length > 0) return { shape: { kind: 'pick', values }, nullable: false };
  if (Object.hasOwn(schema, 'const')) return { shape: { kind: 'pick', values: [schema['const']] }, nullable: false };
  const choices = own(schema, 'anyOf') ?? own(schema, 'oneOf');
  if (Array.isArray(choices) && choices.length > 0) {
    const { anyOf: _, oneOf: __, title: ___, description: ____, default: _____, ...base } = schema;
    return chosen(
      choices.map((choice) => (isObject(choice) ? merge(base, choice) : choice)),
      place,
    );
  }
  const type = typeIn(schema);
  if (Array.isArray(type)) {
    const { title: _, description: __, default: ___, ...base } = schema;
    return chosen(
      type.map((one) => ({ ...base, type: one })),
      place,
    );
  }
  if (own(schema, 'nullable') === true) {
    const { nullable: _, ...base } = schema;
    return chosen([base, { type: 'null' }], place);
  }
  return { shape: plainShape(type, schema, place), nullable: false };
}

function typeIn(schema: JsonObject): JsonValue {
  const type = own(schema, 'type');
  if (type !== undefined) return type;
  if (isObject(own(schema, 'properties'))) return 'object';
  return own(schema, 'items') === undefined ? undefined : 'array';
}

const isNull = (schema: JsonValue): boolean => isObject(schema) && (own(schema, 'type') === 'null' || own(schema, 'const') === null);
const isTextLike = ({ kind }: Shape): boolean => kind === 'string' || kind === 'number' || kind === 'tensor';

function chosen(schemas: JsonValue[], place: Place): Shaped {
  const others = schemas.filter((schema) => !isNull(schema));
  const takesNull = others.length < schemas.length;
  if (others.length === 0) return { shape: { kind: 'pick', values: [null] }, nullable: false };
  const fields = others.map((schema) => read(schema, place));
  if (fields.length === 1) {
    const [field] = fields as [Field];
    if (!takesNull || field.nullable) return field;
    if (isTextLike(field.shape)) return { shape: field.shape, nullable: true };
    if (field.shape.kind === 'pick') return { shape: { kind: 'pick', values: [...field.shape.values, null] }, nullable: false };
  }
  // Choices that are all values are one choice: zod's union of literals, enums with descriptions.
  if (fields.every(({ shape }) => shape.kind === 'pick')) {
    const values = fields.flatMap(({ shape }) => (shape.kind === 'pick' ? shape.values : []));
    return { shape: { kind: 'pick', values: takesNull ? [...values, null] : values }, nullable: false };
  }
  const options = fields.map((field) => ({ label: field.title ?? constantOf(field) ?? typeName(field), field }));
  if (takesNull) options.push({ label: 'null', field: { ...anything(), shape: { kind: 'pick', values: [null] } } });
  return { shape: { kind: 'oneOf', options }, nullable: false };
}

/** What tells a choice from the others: the constant that one of its members must be (`kind: "line"`). */
function constantOf({ shape }: Field): string | null {
  if (shape.kind !== 'object') return null;
  for (const { required, field } of shape.members) {
    if (!required || field.shape.kind !== 'pick' || field.shape.values.length !== 1) continue;
    const [value] = field.shape.values;
    return typeof value === 'string' ? value : JSON.stringify(value);
  }
  return null;
}

function plainShape(type: JsonValue, schema: JsonObject, place: Place): Shape {
  switch (type) {
    case 'string':
      return {
        kind: 'string',
        minLength: numberOf(own(schema, 'minLength')),
        maxLength: numberOf(own(schema, 'maxLength')),
        pattern: textOf(own(schema, 'pattern')),
        format: textOf(own(schema, 'format')),
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
      return listShape(schema, place);
    case 'object':
      return objectShape(schema, place);
    default:
      return { kind: 'json', expects: 'any' };
  }
}

const LONG_CHARACTERS = 200;
/** What schemas say, each in its way, of a text that does not fit on a line. */
function isLong(schema: JsonObject): boolean {
  const said = [own(schema, 'format'), own(schema, 'contentMediaType'), own(schema, 'x-widget')].join(' ');
  return (numberOf(own(schema, 'maxLength')) ?? 0) > LONG_CHARACTERS || /multi-?line|textarea|markdown|html|python|code|text\//i.test(said);
}

function numberShape(schema: JsonObject, integer: boolean): NumberShape {
  const [minimum, maximum] = [numberOf(own(schema, 'minimum')), numberOf(own(schema, 'maximum'))];
  // In draft 4 these are booleans that sharpen the bounds.
  const [above, below] = [own(schema, 'exclusiveMinimum'), own(schema, 'exclusiveMaximum')];
  return {
    kind: 'number',
    integer,
    minimum: above === true ? null : minimum,
    maximum: below === true ? null : maximum,
    above: above === true ? minimum : numberOf(above),
    below: below === true ? maximum : numberOf(below),
    multipleOf: numberOf(own(schema, 'multipleOf')),
  };
}

function listShape(schema: JsonObject, place: Place): Shape {
  const items = own(schema, 'items');
  if (Array.isArray(items) || own(schema, 'prefixItems') !== undefined) return { kind: 'json', expects: 'list' };
  const size = { min: numberOf(own(schema, 'minItems')), max: numberOf(own(schema, 'maxItems')) };
  const unique = own(schema, 'uniqueItems') === true;
  const item = read(items ?? {}, place);
  if (!item.nullable && item.shape.kind === 'number') return { kind: 'tensor', item: item.shape, sizes: [size], unique };
  if (!item.nullable && item.shape.kind === 'tensor' && !item.shape.unique && !unique)
    return { ...item.shape, sizes: [size, ...item.shape.sizes] };
  return { kind: 'list', item, ...size, unique };
}

function objectShape(schema: JsonObject, place: Place): Shape {
  const properties = own(schema, 'properties');
  const required = own(schema, 'required');
  const further = own(schema, 'additionalProperties');
  const members = isObject(properties)
    ? Object.entries(properties).map(([name, property]) => ({
        name,
        required: Array.isArray(required) && required.includes(name),
        field: read(property, place),
      }))
    : [];
  if (members.length === 0 && !isObject(further)) return { kind: 'json', expects: 'object' };
  return { kind: 'object', members, others: isObject(further) && Object.keys(further).length > 0 ? read(further, place) : null };
}

/** `string`, `integer[]`, `"a" | "b"`, `{…}`: a field in a few words. */
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

/** A yes or no, where null is no third answer. */
export const isBoolean = ({ values }: { values: JsonValue[] }): boolean => values.length === 2 && values[0] === true && values[1] === false;

/** Its bounds in words: `3 to 10 characters`, `at least 0`, `matches ^a+$`. */
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
