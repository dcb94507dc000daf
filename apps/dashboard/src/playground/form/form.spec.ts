import { describe, expect, test } from 'vitest';
import { blank, type Draft, fill } from './draft.ts';
import { argumentsOf, fieldOf, limitsOf, typeName } from './field.ts';
import { readDraft } from './read.ts';
import { cpuTime } from '../../../../../tests/support/cpu-time.ts';

const typed = (text: string): Draft => ({ kind: 'text', text, as: 'text' });
const messages = (schema: object, draft: Draft): string[] => readDraft(fieldOf(schema), draft).problems.map(({ message }) => message);
const object = (...members: (Draft | null)[]): Draft => ({ kind: 'object', members, others: [] });

describe('fieldOf', () => {
  test.each<[object, string]>([
    [{ type: 'string' }, 'string'],
    [{ type: 'integer' }, 'integer'],
    [{ type: 'boolean' }, 'boolean'],
    [{ enum: ['a', 'b'] }, '"a" | "b"'],
    [{ const: 3 }, '3'],
    [{ type: ['string', 'null'] }, 'string | null'],
    [{ anyOf: [{ type: 'number' }, { type: 'null' }] }, 'number | null'],
    [{ type: 'string', nullable: true }, 'string | null'],
    [{ anyOf: [{ type: 'string' }, { type: 'integer' }] }, 'string | integer'],
    [{ anyOf: [{ const: 'x' }, { const: 'y' }, { type: 'null' }] }, '"x" | "y" | null'],
    [{ type: 'array', items: { type: ['string', 'integer'] } }, '(string | integer)[]'],
    [{ type: 'object', additionalProperties: { type: 'number' } }, '{ name: number }'],
    [{ type: 'object' }, 'object'],
    [{}, 'any'],
  ])('%j has the type %s', (schema, name) => {
    expect(typeName(fieldOf(schema))).toBe(name);
  });

  test('resolves references and allOf; a circular or external reference is free JSON', () => {
    const schema = {
      type: 'object',
      properties: { place: { $ref: '#/$defs/Place', description: 'Where' }, odd: { $ref: '#/$defs/~1a~0b' }, far: { $ref: 'http://x/y' } },
      required: ['place'],
      $defs: {
        Named: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] },
        Place: { allOf: [{ $ref: '#/$defs/Named' }, { properties: { inside: { $ref: '#/$defs/Place' } }, required: ['inside'] }] },
        '/a~b': { type: 'integer' },
      },
    };
    const { shape } = fieldOf(schema);
    const [place, odd, far] = shape.kind === 'object' ? shape.members : [];
    expect(place).toMatchObject({ name: 'place', required: true, field: { description: 'Where', shape: { kind: 'object' } } });
    const inside = place!.field.shape.kind === 'object' ? place!.field.shape.members : [];
    expect(inside.map(({ name, required, field }) => [name, required, field.shape.kind])).toEqual([
      ['name', true, 'string'],
      ['inside', true, 'json'],
    ]);
    expect(typeName(odd!.field)).toBe('integer');
    expect(far!.field.shape).toEqual({ kind: 'json', expects: 'any' });
  });

  test('labels options by their required constant', () => {
    const kind = (name: string) => ({ type: 'object', properties: { kind: { const: name }, x: {} }, required: ['kind'] });
    expect(typeName(fieldOf({ anyOf: [kind('line'), kind('dot'), { type: 'null' }] }))).toBe('line | dot | null');
  });

  test('limits the fields of a schema that doubles at every level', () => {
    const $defs = Object.fromEntries(
      Array.from({ length: 30 }, (_, level) => {
        const next = { $ref: `#/$defs/l${level + 1}` };
        return [`l${level}`, { type: 'object', properties: { a: next, b: next, c: next } }];
      }),
    );
    const before = cpuTime();
    expect(fieldOf({ $ref: '#/$defs/l0', $defs }).shape.kind).toBe('object');
    expect(cpuTime() - before).toBeLessThan(500);
  });

  test('describes constraints, also those of draft 4', () => {
    expect(limitsOf(fieldOf({ type: 'integer', minimum: 0, exclusiveMinimum: true, maximum: 9 }))).toBe('at most 9, above 0');
    expect(limitsOf(fieldOf({ type: 'string', minLength: 2, maxLength: 4, pattern: '^a' }))).toBe('2 to 4 characters, matches ^a');
    expect(limitsOf(fieldOf({ type: 'array', items: {}, minItems: 1, uniqueItems: true }))).toBe('at least 1 item, all different');
  });

  test('gives an empty form for every schema of a tool without arguments', () => {
    for (const schema of [null, { type: 'object' }, { $schema: 'x', type: 'object', properties: {}, additionalProperties: false }]) {
      const field = argumentsOf(schema);
      expect(readDraft(field, blank(field))).toEqual({ json: '{}', problems: [] });
    }
    expect(argumentsOf({ type: 'object', additionalProperties: true }).shape).toEqual({ kind: 'json', expects: 'object' });
  });
});

describe('readDraft', () => {
  test('keeps the spelling of numbers', () => {
    const schema = { type: 'object', properties: { id: { type: 'integer' }, x: { type: 'number' } }, required: ['id', 'x'] };
    const draft = object(typed('12345678901234567890'), typed(' 1.0 '));
    expect(readDraft(fieldOf(schema), draft).json).toBe('{"id":12345678901234567890,"x":1.0}');
  });

  test.each<[object, string, string]>([
    [{ type: 'string' }, '', 'Fill this in, or choose “Empty text”.'],
    [{ type: 'string', minLength: 3 }, 'ab', 'Enter at least 3 characters, not 2.'],
    [{ type: 'string', maxLength: 1 }, '👩x', 'Enter at most 1 character, not 2.'],
    [{ type: 'string', pattern: '^\\d+$' }, 'x', 'Must match ^\\d+$.'],
    [{ type: 'integer' }, '1.5', 'Not a whole number.'],
    [{ type: 'integer' }, '0x10', 'Not a whole number.'],
    [{ type: 'number' }, 'NaN', 'Not a number. Enter a number such as -1.5 or 2e6.'],
    [{ type: 'number', minimum: 2 }, '1', 'Must be at least 2.'],
    [{ type: 'number', maximum: 2 }, '3', 'Must be at most 2.'],
    [{ type: 'number', exclusiveMinimum: 0 }, '0', 'Must be above 0.'],
    [{ type: 'number', multipleOf: 0.1 }, '0.35', 'Must be a multiple of 0.1.'],
    [{}, '{"a":', "Not valid JSON: Expected property name or '}' in JSON"],
    [{ type: 'object' }, '[1]', 'Must be a JSON object: { … }.'],
  ])('%j rejects %j', (schema, text, message) => {
    const [first, ...others] = messages(schema, typed(text));
    expect(first?.startsWith(message.slice(0, 16))).toBe(true);
    if (!message.startsWith('Not valid JSON')) expect(first).toBe(message);
    expect(others).toEqual([]);
  });

  test('accepts a multiple of 0.1 despite floating point, and ignores a pattern of another dialect', () => {
    expect(messages({ type: 'number', multipleOf: 0.1 }, typed('0.3'))).toEqual([]);
    expect(messages({ type: 'string', pattern: '(?P<x>a)' }, typed('b'))).toEqual([]);
  });

  test('omits blank optional members and writes empty text and null', () => {
    const properties = { a: { type: 'string' }, b: { type: 'boolean' }, c: { type: 'array', items: { type: 'string' } }, d: {} };
    const field = fieldOf({ type: 'object', properties });
    expect(readDraft(field, blank(field)).json).toBe('{}');
    expect(readDraft(fieldOf({ type: 'string' }), { kind: 'text', text: 'x', as: 'empty' }).json).toBe('""');
    expect(readDraft(fieldOf({ type: ['string', 'null'] }), { kind: 'text', text: 'x', as: 'null' }).json).toBe('null');
  });

  test('reports the path of a problem in nested lists, objects and choices', () => {
    const step = { type: 'object', properties: { x: { type: 'integer', maximum: 3 } }, required: ['x'] };
    const schema = { type: 'object', properties: { steps: { type: 'array', items: { oneOf: [step, { type: 'string' }] }, maxItems: 1 } } };
    const chosen = (text: string): Draft => ({ kind: 'oneOf', index: 0, draft: object(typed(text)) });
    const { problems } = readDraft(fieldOf(schema), object({ kind: 'list', items: [chosen('9'), chosen('')] }));
    expect(problems).toEqual([
      { path: 'steps.0.x', message: 'Must be at most 3.' },
      { path: 'steps.1.x', message: 'Fill this in.' },
      { path: 'steps', message: 'Remove items: at most 1 item.' },
    ]);
  });

  test('rejects missing, repeated and reserved names of additional members', () => {
    const field = fieldOf({ type: 'object', properties: { a: { type: 'string' } }, additionalProperties: { type: 'integer' } });
    const others = ['', 'a', 'b', 'b'].map((name) => ({ name, draft: typed('1') }));
    const { problems } = readDraft(field, { kind: 'object', members: [typed('')], others });
    expect(problems.map(({ path, message }) => `${path} ${message}`)).toEqual([
      '+0 Enter a name.',
      '+1 The name “a” is used twice.',
      '+3 The name “b” is used twice.',
    ]);
  });

  test('accepts a member called __proto__', () => {
    const field = fieldOf(JSON.parse('{"type":"object","properties":{"__proto__":{"type":"integer"}},"required":["__proto__"]}'));
    expect(readDraft(field, object(typed('1'))).json).toBe('{"__proto__":1}');
  });
});

describe('fill', () => {
  const schema = {
    type: 'object',
    properties: {
      text: { type: 'string', default: '' },
      level: { type: 'integer', default: 2 },
      kind: { enum: ['a', 'b'] },
      move: { oneOf: [{ type: 'object', properties: { by: { const: 'sea' } }, required: ['by'] }, { type: 'string' }] },
      tags: { type: 'array', items: { type: 'string' } },
      free: {},
    },
    required: ['text', 'level'],
  };
  test.each([
    { text: '', level: 4, kind: 'b', move: { by: 'sea' }, tags: ['x', 'y'], free: { deep: [1, null] } },
    { text: 'hello', level: -1, move: 'home', tags: [] },
  ])('reproduces %j', (value) => {
    const field = fieldOf(schema);
    const { json, problems } = readDraft(field, fill(field, value));
    expect(problems).toEqual([]);
    expect(JSON.parse(json!)).toEqual(value);
  });
  test('blank has the defaults of required members', () => {
    const field = fieldOf(schema);
    expect(readDraft(field, blank(field)).json).toBe('{"text":"","level":2}');
  });
});
