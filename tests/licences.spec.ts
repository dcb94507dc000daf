import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { isAllowed, licenceOf } from '../scripts/licences.mjs';

const root = path.resolve(import.meta.dirname, '..');

test.each([
  ['MIT', true],
  ['(MPL-2.0 OR Apache-2.0)', true],
  ['GPL-3.0-only OR MIT', true],
  ['MIT AND (ISC OR AGPL-3.0-only)', true],
  ['MIT AND GPL-3.0-only', false],
  ['GPL-3.0-only', false],
  ['(MIT', false],
  ['MIT MIT', false],
  ['SEE LICENSE IN LICENSE.txt', false],
  ['', false],
])('we may ship what is under %j: %s', (expression, allowed) => {
  expect(isAllowed(expression)).toBe(allowed);
});

test('a component without a licence has none, unless it is ours', () => {
  expect(licenceOf({ name: 'odd' })).toBeNull();
  expect(licenceOf({ name: 'api', properties: [{ name: 'cdx:npm:package:private', value: 'true' }] })).toBe('Apache-2.0');
  expect(licenceOf({ name: 'two', licenses: [{ license: { id: 'MIT' } }, { license: { id: 'GPL-2.0-only' } }] })).toBe(
    'MIT AND GPL-2.0-only',
  );
});

test('docs/licences.md has every package that the service depends on', () => {
  const text = readFileSync(path.join(root, 'docs/licences.md'), 'utf8');
  const { dependencies } = JSON.parse(readFileSync(path.join(root, 'apps/api/package.json'), 'utf8')) as {
    dependencies: Record<string, string>;
  };
  const foreign = Object.keys(dependencies).filter((name) => !name.startsWith('@palestra/'));
  expect(foreign.length).toBeGreaterThan(10);
  expect(
    foreign.filter((name) => !text.includes(`- ${name} `)),
    'run `npm run sbom`',
  ).toEqual([]);
});
