import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { parseQuery, QUERY_KEYS, QUERY_LIMITS } from '@palestra/query';
import { renderQuery } from '../scripts/query-doc.mjs';

test('docs/query.md is what the language has', () => {
  const file = path.resolve(import.meta.dirname, '../docs/query.md');
  expect(readFileSync(file, 'utf8')).toBe(renderQuery(QUERY_KEYS, QUERY_LIMITS));
});

test.each(QUERY_KEYS.map(({ example }) => example))('its example is a query: %s', (example) => {
  expect(parseQuery(example).clauses.length).toBeGreaterThan(0);
});
