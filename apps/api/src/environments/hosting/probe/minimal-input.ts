import { isObject, type JsonObject } from '@palestra/protocol';

const DEPTH = 6;
/** Values of one input: a schema of a hostile server can describe billions. */
const MAX_VALUES = 1_000;
const MAX_LENGTH = 1_000;

/** The smallest input that matches a tool's schema: required arguments only, each with the first or smallest value. Always the same. */
export function minimalInput(schema: JsonObject | null): JsonObject {
  const value = schema === null ? {} : new MinimalValue(schema).of(schema, DEPTH);
  return isObject(value) ? value : {};
}

class MinimalValue {
  #values = 0;

  constructor(private readonly root: JsonObject) {}

  of(schema: unknown, depth: number): unknown {
    this.#values += 1;
    if (!isObject(schema) || depth === 0 || this.#values > MAX_VALUES) return null;
    if ('const' in schema) return schema['const'];
    for (const [key, value] of Object.entries(schema)) if (key === 'default' && value !== null) return value;
    for (const key of ['enum', 'examples']) {
      const values = schema[key];
      if (Array.isArray(values) && values.length > 0) return values[0];
    }
    if (typeof schema['$ref'] === 'string') return this.of(this.#resolve(schema['$ref']), depth - 1);
    for (const key of ['anyOf', 'oneOf', 'allOf']) {
      const choices = schema[key];
      if (Array.isArray(choices) && choices.length > 0) return this.of(choices[0], depth - 1);
    }
    const { type } = schema;
    switch (Array.isArray(type) ? type[0] : (type ?? ('properties' in schema ? 'object' : undefined))) {
      case 'object':
        return this.#object(schema, depth);
      case 'array': {
        const length = Math.min(numberOf(schema['minItems']) ?? 0, MAX_VALUES - this.#values);
        return Array.from({ length: Math.max(0, length) }, () => this.of(schema['items'], depth - 1));
      }
      case 'integer':
        return Math.ceil(lowest(schema));
      case 'number':
        return lowest(schema);
      case 'boolean':
        return false;
      case 'string':
        return 'x'.repeat(Math.min(numberOf(schema['minLength']) ?? 0, MAX_LENGTH));
      default:
        return null;
    }
  }

  #object(schema: JsonObject, depth: number): JsonObject {
    const properties = isObject(schema['properties']) ? schema['properties'] : {};
    const required = Array.isArray(schema['required']) ? schema['required'] : [];
    const names = required.filter((name): name is string => typeof name === 'string');
    return Object.fromEntries(names.map((name) => [name, this.of(properties[name], depth - 1)])) as JsonObject;
  }

  #resolve(reference: string): unknown {
    const path = /^#\/(.+)$/.exec(reference)?.[1]?.split('/') ?? [];
    return path.reduce<unknown>((value, key) => (isObject(value) ? value[key] : undefined), this.root);
  }
}

const numberOf = (value: unknown): number | null => {
  const number = value === undefined || value === null ? Number.NaN : Number(value);
  return Number.isFinite(number) ? number : null;
};

function lowest(schema: JsonObject): number {
  const exclusive = numberOf(schema['exclusiveMinimum']);
  const low = numberOf(schema['minimum']) ?? (exclusive === null ? null : exclusive + 1);
  if (low !== null) return low;
  return Math.min(0, numberOf(schema['maximum']) ?? 0);
}
