import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, test } from 'vitest';
import { palestraPackage, requirementAt } from './python-library.ts';

test('the package "palestra" is a path, and a place without it is refused with what to do', () => {
  expect(palestraPackage()).toMatch(/\/integrations\/python$/);
  const folder = mkdtempSync(path.join(tmpdir(), 'palestra-wheel-'));
  const wheel = path.join(folder, 'palestra-1-py3-none-any.whl');
  const refused = expect.objectContaining({ code: 'hosting_unsupported', message: expect.stringContaining('PALESTRA_PYTHON_PACKAGE') });
  try {
    for (const place of [wheel, folder]) expect(() => palestraPackage(place), place).toThrow(refused);
    writeFileSync(wheel, '');
    expect(palestraPackage(wheel)).toBe(wheel);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('only the package "palestra" gets a path', () => {
  expect(['palestra', 'palestra[serve]', 'palestra-x', 'uvicorn'].map((name) => requirementAt(name, '/p'))).toEqual([
    '/p',
    '/p[serve]',
    'palestra-x',
    'uvicorn',
  ]);
});
