import { expect, test } from 'vitest';
import { compareArguments } from './schema-change.ts';

const schema = (properties: Record<string, object>, required: string[] = []) => ({ type: 'object', properties, required }) as never;
const text = { type: 'string' };

test.each([
  ['equal', schema({ a: text }), schema({ a: { ...text, description: 'new', title: 'A' } }), []],
  ['removed', schema({ a: text }), schema({}), [['argument "a" was removed', true]]],
  ['required one added', schema({}), schema({ a: text }, ['a']), [['required argument "a" was added', true]]],
  ['optional one added', schema({}), schema({ a: text }), [['optional argument "a" was added', false]]],
  ['became required', schema({ a: text }), schema({ a: text }, ['a']), [['argument "a" became required', true]]],
  ['became optional', schema({ a: text }, ['a']), schema({ a: text }), [['argument "a" became optional', false]]],
  [
    'other type',
    schema({ a: text }),
    schema({ a: { type: 'integer' } }),
    [['the type of argument "a" changed from string to integer', true]],
  ],
  [
    'narrower type',
    schema({ a: { anyOf: [text, { type: 'null' }] } }),
    schema({ a: text }),
    [['the type of argument "a" changed from null | string to string', true]],
  ],
  [
    'wider type',
    schema({ a: { type: 'integer' } }),
    schema({ a: { type: 'number' } }),
    [['argument "a" changed from {"type":"integer"} to {"type":"number"}', false]],
  ],
  [
    'value removed',
    schema({ a: { enum: ['x', 'y'] } }),
    schema({ a: { enum: ['x', 'z'] } }),
    [['argument "a" no longer accepts "y"', true]],
  ],
  ['values limited', schema({ a: text }), schema({ a: { ...text, enum: ['x'] } }), [['argument "a" no longer accepts other values', true]]],
  ['no arguments before', null, schema({ a: text }, ['a']), [['required argument "a" was added', true]]],
  ['no arguments any more', schema({ a: text }), null, [['argument "a" was removed', true]]],
])('%s', (_name, from, to, changes) => {
  expect(compareArguments(from, to).map(({ text: what, isBreaking }) => [what, isBreaking])).toEqual(changes);
});

test('follows references, also endless ones', () => {
  const referring = (type: string) =>
    ({
      type: 'object',
      properties: { a: { $ref: '#/$defs/A' } },
      $defs: { A: { type, properties: { a: { $ref: '#/$defs/A' } } } },
    }) as never;
  expect(compareArguments(referring('object'), referring('object'))).toEqual([]);
  expect(compareArguments(referring('object'), referring('string'))).toMatchObject([{ isBreaking: true }]);
});
