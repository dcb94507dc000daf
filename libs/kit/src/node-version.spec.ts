import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { isSupportedNode, SUPPORTED_NODE } from './node-version.ts';

const root = path.resolve(import.meta.dirname, '../../..');

test.each([
  ['18.20.8', false],
  ['20.18.3', false],
  ['20.19.0', true],
  ['21.7.3', false],
  ['22.11.0', false],
  ['22.12.0', true],
  ['24.0.0', true],
])('Node.js %s: %s', (version, supported) => {
  expect(isSupportedNode(version)).toBe(supported);
});

test('the package palestra, which says it before it loads a module, says the same', () => {
  const { engines } = JSON.parse(readFileSync(path.join(root, 'apps/cli/package.json'), 'utf8')) as { engines: { node: string } };
  expect(engines.node).toBe(SUPPORTED_NODE);
});
