import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';

const root = path.resolve(import.meta.dirname, '..');
const glossary = readFileSync(path.join(root, 'docs/glossary.md'), 'utf8').replaceAll(/\s+/g, ' ');
const terms = [...glossary.matchAll(/- \*\*([^*]+)\*\*:/g)].map(([, term]) => term!);
const types = [...glossary.matchAll(/`(\w+)` in `([\w./-]+)`/g)].map(([, name, file]) => ({ name: name!, file: file! }));

test('the glossary names the type behind most terms', () => {
  expect(terms.length).toBeGreaterThanOrEqual(30);
  expect(new Set(terms).size).toBe(terms.length);
  expect(types.length).toBeGreaterThanOrEqual(20);
});

test.each(types)('$file exports $name', ({ name, file }) => {
  expect(existsSync(path.join(root, file))).toBe(true);
  const text = readFileSync(path.join(root, file), 'utf8');
  expect(text).toMatch(new RegExp(String.raw`^export (?:abstract )?(?:class|interface|type|const|function) ${name}\b`, 'm'));
});
