import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { CONFIG_VARIABLES } from '../apps/api/src/platform/config.ts';
import { type LimitName, limitVariable, LIMITS } from '../apps/api/src/platform/limits.ts';

test('docs/operations.md has every limit, with its variable and default', () => {
  const doc = readFileSync(path.resolve(import.meta.dirname, '../docs/operations.md'), 'utf8');
  const items = doc.split('\n- ').map((item) => item.split('\n\n')[0]!.replaceAll(/\s+/g, ' ').trim());
  const expected = (Object.entries(LIMITS) as [LimitName, { key?: number; org: number; text: string }][]).map(
    ([name, { key, org, text }]) =>
      `${text}: ${key === undefined ? '' : `${key} per key (\`${limitVariable(name, 'key')}\`), `}${org} per organisation (\`${limitVariable(name, 'org')}\`)`,
  );
  expect(items).toEqual(expect.arrayContaining(expected));
  const documented = new Set(doc.match(/PALESTRA_MAX_\w+/g));
  expect(CONFIG_VARIABLES.filter((name) => name.startsWith('PALESTRA_MAX_') && !documented.has(name))).toEqual([]);
});
