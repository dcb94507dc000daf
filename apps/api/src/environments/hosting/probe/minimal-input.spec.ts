import { expect, test } from 'vitest';
import { minimalInput } from './minimal-input.ts';

const properties = (schemas: Record<string, object>) => ({ type: 'object', properties: schemas, required: Object.keys(schemas) }) as never;

test.each([
  [{ type: 'string' }, ''],
  [{ type: 'string', minLength: 3 }, 'xxx'],
  [{ type: 'integer', minimum: 2 }, 2],
  [{ type: 'integer', exclusiveMinimum: 2 }, 3],
  [{ type: 'integer', maximum: -5 }, -5],
  [{ type: 'number' }, 0],
  [{ type: 'boolean' }, false],
  [{ type: ['string', 'null'] }, ''],
  [{ enum: ['b', 'a'] }, 'b'],
  [{ const: 7 }, 7],
  [{ type: 'string', default: 'd' }, 'd'],
  [{ anyOf: [{ type: 'integer' }, { type: 'null' }] }, 0],
  [{ type: 'array', items: { type: 'string' }, minItems: 2 }, ['', '']],
  [{ type: 'array', items: { type: 'string' } }, []],
  [{ properties: { a: { type: 'string' }, b: {} }, required: ['a'] }, { a: '' }],
])('%j gives %j', (schema, value) => {
  expect(minimalInput(properties({ value: schema }))).toEqual({ value });
});

test('leaves optional arguments out, and follows references', () => {
  const schema = {
    type: 'object',
    properties: { a: { $ref: '#/$defs/A' }, b: { type: 'string' } },
    required: ['a'],
    $defs: { A: { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] } },
  };
  expect(minimalInput(schema as never)).toEqual({ a: { n: 0 } });
  expect(minimalInput(null)).toEqual({});
});

test('ends for a schema without an end', () => {
  const endless = { type: 'object', properties: { a: { $ref: '#' }, b: { $ref: '#' } }, required: ['a', 'b'] };
  expect(JSON.stringify(minimalInput(endless as never)).length).toBeLessThan(10_000);
  const many = properties({ value: { type: 'array', minItems: 1e9, items: { type: 'array', minItems: 1e9, items: {} } } });
  expect(JSON.stringify(minimalInput(many)).length).toBeLessThan(100_000);
});
