import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Readable } from 'node:stream';
import { packFolder, SOURCE_LIMITS, unpackSource } from '@palestra/hosting';
import { afterAll, expect, test } from 'vitest';
import { type ChosenFile, includedFiles, packFiles } from '../apps/dashboard/src/hosting/pack-folder.ts';
import { dirname, normalize } from '../apps/dashboard/src/hosting/path.ts';

/** The archive that the page Add environment uploads. */

const root = mkdtempSync(path.join(tmpdir(), 'palestra-browser-pack-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));
const { signal } = new AbortController();
const long = `${'deep/'.repeat(30)}é-file.txt`;
const FILES: Record<string, string> = {
  'environment.ts': 'e'.repeat(2_000),
  'empty.txt': '',
  'run.sh': '#!/bin/sh\n',
  '.gitignore': 'g',
  '.env': 'SECRET=1',
  'src/.env.local': 'SECRET=3',
  '.git/config': 'x',
  'src/node_modules/b/index.js': 'x',
  'src/__pycache__/a.pyc': 'x',
  'data/big.bin': 'x',
  'data/small.txt': 'kept',
  'notes/private.txt': 'x',
  'run.log': 'x',
  'sub/Dockerfile': 'FROM scratch',
  '.dockerignore': 'data/*\n!data/small.txt\n./notes/\n**/*.log\nDockerfile\nsub/Dockerfile\n# comment',
  Dockerfile: 'FROM scratch',
  [long]: 'long',
};
const chosen = (files: Record<string, string>): ChosenFile[] =>
  Object.entries(files).map(([name, content]) => ({ name, file: new File([content], path.basename(name)) }));

function written(files: Record<string, string>): string {
  const folder = mkdtempSync(path.join(root, 'one-'));
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(path.join(folder, path.dirname(name)), { recursive: true });
    writeFileSync(path.join(folder, name), content);
  }
  return folder;
}

async function unpacked(archive: Readable): Promise<string> {
  const folder = mkdtempSync(path.join(root, 'two-'));
  await unpackSource(archive, folder, SOURCE_LIMITS, signal);
  return folder;
}
const namesIn = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => path.relative(folder, path.join(entry.parentPath, entry.name)))
    .toSorted();

test('packs the same files as the terminal does, and the service unpacks them', async () => {
  const blob = await packFiles(await includedFiles(chosen(FILES)), signal);
  const folder = await unpacked(Readable.from(Buffer.from(await blob.arrayBuffer())));
  const terminal = await unpacked((await packFolder(written(FILES))).archive);
  expect(namesIn(folder)).toEqual(namesIn(terminal));
  expect(namesIn(folder)).toContain(long);
  for (const name of namesIn(folder)) expect(readFileSync(path.join(folder, name), 'utf8')).toBe(FILES[name]);
  expect(statSync(path.join(folder, 'run.sh')).mode & 0o111).not.toBe(0);
  expect(statSync(path.join(folder, 'environment.ts')).mode & 0o111).toBe(0);
});

test('refuses nothing and too much, with the largest files', async () => {
  await expect(includedFiles(chosen({ '.env': 'x' }))).rejects.toThrow('no files');
  const limits = { maxBytes: 100, maxFiles: 2, maxArchiveBytes: 10 };
  await expect(includedFiles(chosen({ 'a.txt': 'x', 'b.bin': 'x'.repeat(200) }), limits)).rejects.toThrow('The largest are b.bin');
  await expect(includedFiles(chosen({ a: '', b: '', c: '' }), limits)).rejects.toThrow('3 files, more than 2');
  await expect(packFiles(chosen({ a: 'x' }), signal, limits)).rejects.toThrow('The archive has');
});

test.each(['a', '/', '/a', 'a/b/c.txt', 'a/b//', './a/../b/', '/a//b', '../a', '/../a', '', 'a/./b/'])(
  'the path %j is normalised and cut as Node.js does',
  (name) => {
    expect(normalize(name)).toBe(path.posix.normalize(name));
    expect(dirname(name)).toBe(path.posix.dirname(name));
  },
);
