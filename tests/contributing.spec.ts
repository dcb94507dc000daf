import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';

const root = path.resolve(import.meta.dirname, '..');
const scripts = (JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8')) as { scripts: Record<string, string> }).scripts;
/** Made by a build or a start. */
const MADE = ['.palestra/dev'];

describe.each(['README.md', 'CONTRIBUTING.md'])('%s', (file) => {
  const text = readFileSync(path.join(root, file), 'utf8');

  test('names files and folders that there are', () => {
    const quoted = [...text.matchAll(/`((?:apps|libs|tests|docs|prisma|scripts|\.[a-z]+)\/[\w./-]+)`/g)].map(([, name]) => name!);
    const linked = [...text.matchAll(/\]\(([\w.][\w./-]*)\)/g)].map(([, name]) => name!);
    const named = [...quoted, ...linked].filter((name) => !MADE.includes(name));
    expect(named.length).toBeGreaterThan(5);
    expect(named.filter((name) => !existsSync(path.join(root, name)))).toEqual([]);
  });

  test('names scripts that there are', () => {
    const named = [...text.matchAll(/npm run ([\w:]+)/g)].map(([, name]) => name!);
    expect(named.filter((name) => scripts[name] === undefined)).toEqual([]);
  });
});

test('README has one command to run and one to test', () => {
  const text = readFileSync(path.join(root, 'README.md'), 'utf8');
  expect(text).toContain('```sh\nnpm ci && npm start\n```');
  expect(text).toContain('```sh\nnpm ci && npm test\n```');
});
