import { expect, test } from 'vitest';
import { z } from 'zod';
import { SeededRandom } from '../random.ts';
import { randomInput } from './random-player.ts';

const schema = z.strictObject({
  text: z.string().min(2).max(5),
  count: z.int().min(3).max(5),
  share: z.number().gt(0).lt(4),
  flag: z.boolean(),
  choice: z.enum(['a', 'b']),
  list: z.array(z.int()).min(1),
  either: z.union([z.string().min(1), z.int()]),
  nested: z.strictObject({ kind: z.literal('k'), note: z.string().optional() }),
  maybe: z.string().optional(),
});

test('random arguments match every schema of the kit, and use the given words', () => {
  const json = z.toJSONSchema(schema, { io: 'input' }) as Record<string, unknown>;
  const random = new SeededRandom('inputs');
  const inputs = Array.from({ length: 200 }, () => randomInput(json, ['seven', 'x'], () => random.next()));
  for (const input of inputs) expect(schema.safeParse(input).error?.issues ?? []).toEqual([]);
  expect(new Set(inputs.map(({ choice }) => choice))).toEqual(new Set(['a', 'b']));
  expect(new Set(inputs.map(({ text }) => text))).toEqual(new Set(['seven', 'xx']));
  expect(new Set(inputs.map((input) => 'maybe' in input))).toEqual(new Set([true, false]));
});

test('a tool without arguments gets none, and references and odd schemas end', () => {
  expect(randomInput(null, [], () => 0)).toEqual({});
  const recursive = {
    type: 'object',
    properties: { next: { $ref: '#/$defs/node' } },
    required: ['next'],
    $defs: {} as Record<string, unknown>,
  };
  recursive.$defs['node'] = { type: 'object', properties: { next: { $ref: '#/$defs/node' } }, required: ['next'] };
  expect(JSON.stringify(randomInput(recursive, [], () => 0))).toBe('{"next":{"next":{"next":null}}}');
  expect(randomInput({ type: 'string' }, [], () => 0)).toEqual({});
  expect(randomInput({ type: 'object', properties: { odd: true, any: {} }, required: ['odd', 'any'] }, [], () => 0)).toEqual({
    odd: null,
    any: null,
  });
});

test('a schema that describes millions of values gives an input of bounded size', () => {
  let schema: object = { type: 'integer' };
  for (let depth = 0; depth < 5; depth += 1) schema = { type: 'array', minItems: 20, items: schema };
  const input = randomInput({ type: 'object', required: ['a'], properties: { a: schema } } as never, [], () => 0.5);
  expect(JSON.stringify(input).length).toBeLessThan(200_000);
});
