import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { CONFIG_VARIABLES } from '../apps/api/src/platform/config.ts';
import { type LimitName, limitVariable, LIMITS } from '../apps/api/src/platform/limits.ts';

test('docs/operations.md has every limit, with its variable and default', () => {
  const doc = readFileSync(path.resolve(import.meta.dirname, '../docs/operations.md'), 'utf8');
  const rows = doc.split('\n').flatMap((line) =>
    /^\|.*PALESTRA_MAX_\w+_PER_ORG/.test(line)
      ? [
          line
            .split('|')
            .slice(1, -1)
            .map((cell) => cell.trim()),
        ]
      : [],
  );
  const expected = (Object.entries(LIMITS) as [LimitName, { key?: number; org: number; text: string }][]).map(
    ([name, { key, org, text }]) => [
      text,
      ...(key === undefined ? ['', ''] : [String(key), `\`${limitVariable(name, 'key')}\``]),
      String(org),
      `\`${limitVariable(name, 'org')}\``,
    ],
  );
  expect(rows).toEqual(expect.arrayContaining(expected));
  const documented = new Set(doc.match(/PALESTRA_MAX_\w+/g));
  expect(CONFIG_VARIABLES.filter((name) => name.startsWith('PALESTRA_MAX_') && !documented.has(name))).toEqual([]);
});
