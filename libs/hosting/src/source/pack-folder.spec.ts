import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { afterAll, expect, test } from 'vitest';
import { packFolder } from './pack-folder.ts';
import { digestOf, listSource } from './source-tree.ts';
import { SOURCE_LIMITS } from './source-limits.ts';
import { unpackSource } from './unpack-source.ts';

const root = mkdtempSync(path.join(tmpdir(), 'palestra-pack-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));
const { signal } = new AbortController();

function folderOf(files: Record<string, string>): string {
  const folder = mkdtempSync(path.join(root, 'one-'));
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(path.join(folder, path.dirname(name)), { recursive: true });
    writeFileSync(path.join(folder, name), content);
  }
  return folder;
}

async function unpacked(folder: string): Promise<{ folder: string; names: string[] }> {
  const { archive } = await packFolder(folder);
  const other = mkdtempSync(path.join(root, 'two-'));
  await unpackSource(archive, other, SOURCE_LIMITS, signal);
  return { folder: other, names: (await listSource(other)).map(({ name }) => name) };
}

test('leaves out data of Git, secrets, installed packages and what .dockerignore excludes', async () => {
  const folder = folderOf({
    'environment.ts': 'e',
    'src/a.py': 'a',
    '.gitignore': 'g',
    '.git/config': 'x',
    '.env': 'SECRET=1',
    '.env.local': 'SECRET=2',
    'src/.env': 'SECRET=3',
    'node_modules/a/index.js': 'x',
    'src/node_modules/b/index.js': 'x',
    '.venv/bin/python': 'x',
    'src/__pycache__/a.pyc': 'x',
    'data/big.bin': 'x',
    'data/small.txt': 'kept',
    'notes/private.txt': 'x',
    'run.log': 'x',
    '.dockerignore': 'data/*\n!data/small.txt\nnotes\n**/*.log\nDockerfile\n',
    Dockerfile: 'FROM scratch',
  });
  const { names } = await unpacked(folder);
  expect(names).toEqual(['.dockerignore', '.gitignore', 'Dockerfile', 'data/small.txt', 'environment.ts', 'src/a.py']);
});

test('a reader may stop before the end', async () => {
  const folder = folderOf(Object.fromEntries(Array.from({ length: 50 }, (_, index) => [`file-${index}`, 'x'.repeat(10_000)])));
  const { archive } = await packFolder(folder);
  archive.destroy();
  // An error without a listener would end the process.
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect(archive.destroyed).toBe(true);
});

test('the same contents give the same bytes and the same digest, whatever their times are', async () => {
  const files = { 'b/two': 'two', 'a-one': 'one', 'a/x': 'x', é: 'unicode' };
  const one = folderOf(files);
  const other = folderOf(Object.fromEntries(Object.entries(files).toReversed()));
  utimesSync(path.join(other, 'a/x'), 1, 2);
  chmodSync(path.join(other, 'a/x'), 0o600);
  const [first, second] = await Promise.all([one, other].map(async (folder) => buffer((await packFolder(folder)).archive)));
  expect(first!.equals(second!)).toBe(true);
  expect(await digestOf(one)).toBe(await digestOf(other));
  expect(await digestOf((await unpacked(one)).folder)).toBe(await digestOf(one));
});

test('contents, names, executable bits and links decide the digest', async () => {
  const files = { a: 'one', b: 'two' };
  const digests = await Promise.all(
    [
      folderOf(files),
      folderOf({ a: 'one', b: 'twO' }),
      folderOf({ a: 'one', c: 'two' }),
      folderOf({ a: 'on', b: 'etwo' }),
      (() => {
        const folder = folderOf(files);
        chmodSync(path.join(folder, 'a'), 0o755);
        return folder;
      })(),
      (() => {
        const folder = folderOf(files);
        symlinkSync('a', path.join(folder, 'link'));
        return folder;
      })(),
    ].map((folder) => digestOf(folder)),
  );
  expect(new Set(digests).size).toBe(digests.length);
  expect(digests[0]).toMatch(/^sha256:[0-9a-f]{64}$/);
});

test('links inside are packed, links out of the folder are refused', async () => {
  const folder = folderOf({ 'a/file': 'x' });
  symlinkSync('a/file', path.join(folder, 'link'));
  expect((await unpacked(folder)).names).toEqual(['a/file', 'link']);
  symlinkSync('/etc/passwd', path.join(folder, 'out'));
  await expect(packFolder(folder)).rejects.toMatchObject({ code: 'source_invalid', message: expect.stringContaining('"out"') as string });
});

test('a folder over the limit is refused with its largest files', async () => {
  const folder = folderOf({ 'small.txt': 'x', 'data/large.bin': 'x'.repeat(3_000_000), 'data/larger.bin': 'x'.repeat(4_000_000) });
  await expect(packFolder(folder, { maxBytes: 5_000_000, maxEntries: 100 })).rejects.toThrow(
    'The folder has 6.7 MiB of files, more than 4.8 MiB. The largest are data/larger.bin (3.8 MiB), data/large.bin (2.9 MiB), small.txt (0.0 MiB). ' +
      'List what is not needed in .dockerignore.',
  );
  await expect(packFolder(folder, { maxBytes: 1e9, maxEntries: 2 })).rejects.toThrow('more than 2 files and folders');
  await expect(packFolder(folderOf({ '.env': 'x' }))).rejects.toThrow('no files');
});

test('a file that changes meanwhile ends the archive with an error', async () => {
  const folder = folderOf({ a: 'x'.repeat(500_000) });
  const { archive } = await packFolder(folder);
  writeFileSync(path.join(folder, 'a'), 'short');
  await expect(buffer(Readable.from(archive))).rejects.toThrow();
});
