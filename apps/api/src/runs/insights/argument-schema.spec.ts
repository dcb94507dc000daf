import { expect, test } from 'vitest';
import { argumentCheck } from './argument-schema.ts';
import { cpuTime } from '../../../../../tests/support/cpu-time.ts';

const schema = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  type: 'object',
  properties: { room: { type: 'string', pattern: '^[a-z ]+$' }, depth: { enum: [1, 2] }, at: { type: 'string', format: 'date' } },
  required: ['room'],
  additionalProperties: false,
};

test('reports the first violation of the arguments', () => {
  const check = argumentCheck(schema)!;
  expect(check('{"room":"study","depth":2,"at":"noon"}')).toBeNull();
  expect(check('{"depth":2}')).toEqual({ path: '', rule: 'required', message: "must have required property 'room'" });
  expect(check('')).toMatchObject({ rule: 'required' });
  expect(check('{"room":3}')).toEqual({ path: '/room', rule: 'type', message: 'must be string' });
  expect(check('{"room":"STUDY"}')).toMatchObject({ path: '/room', rule: 'pattern' });
  expect(check('{"room":"study","depth":9}')).toEqual({ path: '/depth', rule: 'enum', message: 'must be one of [1,2]' });
  expect(check('{"room":"study","why":1}')).toMatchObject({ rule: 'additionalProperties', message: "must not have the property 'why'" });
  expect(check('{"room":')).toEqual({ path: '', rule: 'json', message: 'is not JSON' });
  expect(check('["study"]')).toEqual({ path: '', rule: 'json', message: 'is not a JSON object' });
});

test('accepts older drafts, and rejects invalid schemas and references to other documents', () => {
  const old = argumentCheck({ $schema: 'http://json-schema.org/draft-07/schema#', items: [{ type: 'string' }], type: 'object' })!;
  expect(old('{}')).toBeNull();
  for (const bad of [
    null,
    'object',
    { type: 'nonsense' },
    { $ref: 'https://elsewhere.example/schema' },
    { properties: { a: { pattern: '(' } } },
  ])
    expect(argumentCheck(bad)).toBeNull();
});

test('runs a pattern that would backtrack in linear time', () => {
  const check = argumentCheck({ type: 'object', properties: { a: { type: 'string', pattern: '^(a+)+$' } } })!;
  const began = cpuTime();
  expect(check(JSON.stringify({ a: `${'a'.repeat(5_000)}!` }))).toMatchObject({ rule: 'pattern' });
  expect(cpuTime() - began).toBeLessThan(1_000);
});
