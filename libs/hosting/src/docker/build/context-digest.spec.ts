import { cpSync, mkdirSync, mkdtempSync, renameSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { contextDigest } from './context-digest.ts';
import { kitFolders } from './kit-packages.ts';
import { pythonPackageFolder } from './python-package.ts';

const root = mkdtempSync(path.join(tmpdir(), 'palestra-context-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));
const { signal } = new AbortController();

test('is that of the names and contents of what a build gets', async () => {
  const folder = path.join(root, 'package');
  mkdirSync(path.join(folder, 'src/tests'), { recursive: true });
  writeFileSync(path.join(folder, 'pyproject.toml'), '[project]');
  writeFileSync(path.join(folder, 'src/a.py'), 'a = 1');
  const digest = (place = folder) => contextDigest([pythonPackageFolder(place, 'python-package')], signal);
  const first = await digest();
  expect(first).toMatch(/^[0-9a-f]{64}$/);

  // Neither times, nor its place on this machine, nor what pip does not need.
  utimesSync(path.join(folder, 'src/a.py'), 1, 1);
  mkdirSync(path.join(folder, 'tests'));
  writeFileSync(path.join(folder, 'tests/test_a.py'), '');
  const copy = path.join(root, 'copy');
  cpSync(folder, copy, { recursive: true });
  expect([await digest(), await digest(copy)]).toEqual([first, first]);

  writeFileSync(path.join(folder, 'src/a.py'), 'a = 2');
  const changed = await digest();
  renameSync(path.join(folder, 'src/a.py'), path.join(folder, 'src/b.py'));
  expect(new Set([first, changed, await digest()]).size).toBe(3);
});

test('is the same for the kit of this service each time, and another one for another place', async () => {
  const [one, again, other] = await Promise.all(['kit', 'kit', 'elsewhere'].map((at) => contextDigest(kitFolders(at), signal)));
  expect(again).toBe(one);
  expect(other).not.toBe(one);
});
