import { describe, expect, test } from 'vitest';
import { blank, type Draft, fill } from './draft.ts';
import { fieldOf, limitsOf, type TensorShape, typeName } from './field.ts';
import { readDraft } from './read.ts';
import { compareWithForm } from './compare.ts';
import { sampleOf } from './sample.ts';
import { readTensor, sizeOfTensor } from './tensor.ts';

const numbers = { type: 'array', items: { type: 'number', maximum: 9 }, minItems: 2 };
const matrix = { type: 'array', items: { type: 'array', items: { type: 'integer' }, maxItems: 2 } };
const tensorOf = (schema: object): TensorShape => {
  const { shape } = fieldOf(schema);
  if (shape.kind !== 'tensor') throw new Error(`a ${shape.kind}`);
  return shape;
};
const typed = (text: string): Draft => ({ kind: 'text', text, as: 'text' });

describe('lists of numbers', () => {
  test('are recognised at any depth, with their bounds; lists of other values are not', () => {
    expect(typeName(fieldOf(numbers))).toBe('number[]');
    expect(limitsOf(fieldOf(numbers))).toBe('at least 2 numbers, each at most 9');
    expect(typeName(fieldOf({ type: 'array', items: matrix }))).toBe('integer[][][]');
    expect(fieldOf({ type: 'array', items: { type: ['number', 'null'] } }).shape.kind).toBe('list');
    expect(fieldOf({ type: 'array', items: { enum: [1, 2] } }).shape.kind).toBe('list');
  });

  test.each([
    [numbers, '1, 2.50', '[1,2.50]'],
    [numbers, ' [1,\n 2e0] ', '[1,2e0]'],
    [numbers, '1 2\n3;4', '[1,2,3,4]'],
    [matrix, '1 2\n\n3', '[[1,2],[3]]'],
    [matrix, '[]', '[]'],
    [matrix, '[[1,2],[]]', '[[1,2],[]]'],
    [{ type: 'array', items: matrix }, '[[[12345678901234567890]]]', '[[[12345678901234567890]]]'],
  ])('%j accepts %j', (schema, text, json) => {
    expect(readTensor(tensorOf(schema), text.trim())).toEqual({ json });
  });

  test.each([
    [numbers, '1', 'Enter at least 2 numbers, not 1.'],
    [numbers, '1, x', 'Number 2 (x): Not a number. Enter a number such as -1.5 or 2e6.'],
    [numbers, '1, 10', 'Number 2 (10): Must be at most 9.'],
    [numbers, '[[1, 2], [3, 4]]', 'Nest the lists 1 level deep.'],
    [numbers, '[1, "2"]', 'Enter only numbers, in lists.'],
    [matrix, '1 2 3', 'Enter at most 2 numbers, not 3.'],
    [matrix, '[1, 2]', 'Nest the lists 2 levels deep.'],
    [matrix, '1.5', 'Not a whole number.'],
    [{ ...numbers, uniqueItems: true }, '1 1.0', 'All numbers must differ.'],
    [{ type: 'array', items: matrix }, '1 2', 'Enter JSON such as [[[1, 2], [3, 4]]].'],
  ])('%j rejects %j', (schema, text, problem) => {
    expect(readTensor(tensorOf(schema), text)).toEqual({ json: null, problem });
  });

  test('show their size', () => {
    expect(sizeOfTensor('[1,2,3]')).toBe('3');
    expect(sizeOfTensor('[[1,2],[3,4],[5,6]]')).toBe('3 × 2');
    expect(sizeOfTensor('[[1],[2,3]]')).toBe('2 × uneven');
    expect(sizeOfTensor('[]')).toBe('0');
  });

  test('are omitted when blank and optional, and must be written as [] when empty', () => {
    const field = fieldOf({ type: 'object', properties: { a: matrix, b: matrix }, required: ['a'] });
    const { problems } = readDraft(field, blank(field));
    expect(problems).toEqual([{ path: 'a', message: 'Enter numbers such as 1, 2, 3, or [] for none.' }]);
    expect(readDraft(field, { kind: 'object', members: [typed('[]'), typed('')], others: [] }).json).toBe('{"a":[]}');
  });

  test.each([[[]], [[[1, 2]]], [[[1, 2], [3]]], [[[], [1]]]])('reproduce %j', (value) => {
    const field = fieldOf(matrix);
    expect(JSON.parse(readDraft(field, fill(field, value)).json!)).toEqual(value);
  });
});

describe('booleans', () => {
  const schema = { type: 'object', properties: { must: { type: 'boolean' }, may: { type: 'boolean', default: true } }, required: ['must'] };
  test('are false when required and omitted when optional', () => {
    const field = fieldOf(schema);
    expect(readDraft(field, blank(field)).json).toBe('{"must":false}');
    expect(readDraft(field, fill(field, {})).json).toBe('{"must":false}');
    expect(readDraft(field, fill(field, { must: true, may: false })).json).toBe('{"must":true,"may":false}');
  });
});

describe('compareWithForm', () => {
  const field = fieldOf({
    type: 'object',
    properties: { id: { type: 'integer', maximum: 1e30 }, name: { type: 'string' } },
    required: ['id'],
  });
  test.each([
    ['{"name":"x","id":12345678901234567890}', true],
    ['{ "id" : 1.0 }', true],
    ['{"id":1,"other":2}', false],
    ['{"name":"x"}', false],
    ['{"id":1,"name":7}', false],
  ])('%s: the form reproduces it: %j', (text, same) => {
    expect(compareWithForm(field, text)?.same).toBe(same);
  });
  test.each(['', '[1]', 'null', '1.0', '{"id":'])('%j is no JSON object', (text) => {
    expect(compareWithForm(field, text)).toBeNull();
  });
});

test('sampleOf has the required members within their bounds', () => {
  const field = fieldOf({
    type: 'object',
    properties: {
      text: { type: 'string', minLength: 5 },
      level: { type: 'integer', exclusiveMinimum: 3 },
      matrix: { ...matrix, minItems: 2 },
      kind: { enum: ['a', 'b'] },
      given: { type: 'string', default: 'so' },
      may: { type: 'string' },
    },
    required: ['text', 'level', 'matrix', 'kind', 'given'],
  });
  const sample = sampleOf(field);
  expect(sample).toEqual({ text: 'xxxxx', level: 4, matrix: [[1], [1]], kind: 'a', given: 'so' });
  expect(compareWithForm(field, JSON.stringify(sample))).toEqual({ same: true, problems: [] });
});
