import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import * as schemas from '@palestra/protocol/schemas';
import { expect, test } from 'vitest';
import { z } from 'zod';

const root = path.resolve(import.meta.dirname, '..');
const read = (file: string) => readFileSync(path.join(root, file), 'utf8');
const schemaFolder = 'libs/protocol/src/schemas';

/** Name of the schema that each type of the wire is inferred from. */
const schemaOf = new Map(
  readdirSync(path.join(root, schemaFolder), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts'))
    .flatMap((file) =>
      [...read(`${schemaFolder}/${file}`).matchAll(/export type (\w+) = z\.(?:infer|input|output)<typeof (\w+)>/g)].map(
        ([, type, schema]) => [type!, schema!] as const,
      ),
    ),
);
const routes = read('apps/dashboard/src/data/routes.ts');
const rowsOf = (table: string) =>
  [
    ...routes
      .slice(routes.indexOf(`interface ${table}`))
      .split('\n}')[0]!
      .matchAll(/'(\w+) ([^']+)': (\w+);/g),
  ].map((row) => row.slice(1));
const { paths } = JSON.parse(read('docs/openapi.json'));

function documented(type: string, io: 'input' | 'output'): unknown {
  const schema = (schemas as Record<string, unknown>)[schemaOf.get(type) ?? ''];
  if (!(schema instanceof z.ZodType)) throw new Error(`${type} is not inferred from an exported schema`);
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io, unrepresentable: 'any' });
  return rest;
}

test.each(rowsOf('Answers'))('%s %s is answered with a %s', (method, route, type) => {
  expect(documented(type!, 'output')).toEqual(paths[route!][method!.toLowerCase()].responses[200].content['application/json'].schema);
});

test.each(rowsOf('Bodies'))('%s %s takes a %s', (method, route, type) => {
  expect(documented(type!, 'input')).toEqual(paths[route!][method!.toLowerCase()].requestBody.content['application/json'].schema);
});

test('sees the routes of the dashboard', () => {
  expect(rowsOf('Answers').length).toBeGreaterThan(50);
  expect(rowsOf('Bodies').length).toBeGreaterThan(10);
});
