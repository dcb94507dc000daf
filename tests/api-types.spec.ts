import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { renderApiTypes } from '../scripts/api-types.mjs';

const read = (file: string) => readFileSync(path.resolve(import.meta.dirname, '..', file), 'utf8');

test('the dashboard reads the API by the types of its OpenAPI document', async () => {
  const types = read('apps/dashboard/src/data/generated/api.ts');
  expect(types).toBe(await renderApiTypes(JSON.parse(read('docs/openapi.json'))));
  expect(types).toContain('"GET /v1/runs/{run}/summary"');
});
