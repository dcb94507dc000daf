import { Ajv, type ValidateFunction } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { RE2JS } from 're2js';

/** A larger schema is not compiled: the server of the environment chooses it. */
const MAX_SCHEMA_CHARS = 100_000;

/** Maximum of characters in a path and in a message: both can quote the arguments. */
const MAX_TEXT = 500;

/** Why the arguments of a call do not match the schema. */
export interface Violation {
  /** JSON pointer into the arguments. */
  path: string;
  rule: string;
  message: string;
}

/** Patterns run in RE2, whose time is linear, so that a pattern of a schema cannot make a check slow. */
const linearRegExp = Object.assign(
  (pattern: string) => {
    const compiled = RE2JS.compile(pattern);
    return { test: (text: string) => compiled.matcher(text).find() };
  },
  { code: 'new RegExp' },
);
const OPTIONS = { strict: false, validateSchema: false, validateFormats: false, logger: false, code: { regExp: linearRegExp } } as const;

/**
 * Returns a check of arguments against a tool's schema, draft 2020-12 unless it names an older one; null when the schema is unusable.
 * Compiling and checking can take any time and memory: for schemas of tenants only `argument-schema.work.ts` calls this.
 */
export function argumentCheck(schema: unknown): ((argumentsText: string) => Violation | null) | null {
  const validate = compiled(schema);
  return validate && ((text) => violationOf(validate, text));
}

function compiled(schema: unknown): ValidateFunction | null {
  if (typeof schema !== 'object' || schema === null || JSON.stringify(schema).length > MAX_SCHEMA_CHARS) return null;
  const { $schema: dialect, ...rest } = schema as Record<string, unknown>;
  const isOld = typeof dialect === 'string' && /draft-0[467]/.test(dialect);
  try {
    // Throws for a reference to another document: nothing is fetched.
    return (isOld ? new Ajv(OPTIONS) : new Ajv2020(OPTIONS)).compile(rest);
  } catch {
    return null;
  }
}

function violationOf(validate: ValidateFunction, text: string): Violation | null {
  let value: unknown;
  try {
    // Clients send an empty text for a call without arguments.
    value = text.trim() === '' ? {} : JSON.parse(text);
  } catch {
    return { path: '', rule: 'json', message: 'is not JSON' };
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return { path: '', rule: 'json', message: 'is not a JSON object' };
  if (validate(value)) return null;
  const error = validate.errors![0]!;
  return { path: error.instancePath.slice(0, MAX_TEXT), rule: error.keyword, message: messageOf(error).slice(0, MAX_TEXT) };
}

function messageOf({ keyword, message, params }: NonNullable<ValidateFunction['errors']>[number]): string {
  if (keyword === 'additionalProperties') return `must not have the property '${String(params['additionalProperty']).slice(0, 100)}'`;
  if (keyword === 'enum' && Array.isArray(params['allowedValues']))
    return `must be one of ${JSON.stringify(params['allowedValues']).slice(0, 200)}`;
  return message ?? keyword;
}
