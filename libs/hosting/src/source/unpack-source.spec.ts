import { mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { gzipSync } from 'node:zlib';
import { type Header, pack } from 'tar-stream';
import { afterAll, expect, test } from 'vitest';
import { unpackSource } from './unpack-source.ts';

const root = mkdtempSync(path.join(tmpdir(), 'palestra-unpack-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));
const LIMITS = { maxBytes: 1_000_000, maxEntries: 100 };
const { signal } = new AbortController();

type Item = Partial<Header> & { name: string; content?: string | Buffer };

async function archive(items: Item[]): Promise<Buffer> {
  const tar = pack();
  for (const { content = '', ...header } of items) tar.entry(header, content);
  tar.finalize();
  return buffer(Readable.from(tar));
}

async function unpack(bytes: Buffer, limits = LIMITS): Promise<string> {
  const folder = mkdtempSync(path.join(root, 'one-'));
  await unpackSource(Readable.from([bytes]), folder, limits, signal);
  return folder;
}

const unpackItems = async (items: Item[], limits = LIMITS) => unpack(gzipSync(await archive(items)), limits);

test('files, folders, links and executable bits are unpacked; owners, times and special bits are not', async () => {
  const folder = await unpackItems([
    { name: './', type: 'directory' },
    { name: './run.sh', content: 'echo', mode: 0o4755, uid: 12, mtime: new Date(0) },
    { name: 'deep/er/file.txt', content: 'x'.repeat(100_000), mode: 0o600 },
    { name: 'deep/link', type: 'symlink', linkname: '../run.sh' },
    { name: `${'long/'.repeat(40)}name`, content: 'long' },
    { name: 'empty', type: 'directory' },
  ]);
  expect(readFileSync(path.join(folder, 'deep/link'), 'utf8')).toBe('echo');
  expect(readlinkSync(path.join(folder, 'deep/link'))).toBe('../run.sh');
  expect(statSync(path.join(folder, 'run.sh')).mode & 0o7777).toBe(0o755);
  expect(statSync(path.join(folder, 'deep/er/file.txt'))).toMatchObject({ size: 100_000 });
  expect(statSync(path.join(folder, 'deep/er/file.txt')).mode & 0o7777).toBe(0o644);
  expect(readFileSync(path.join(folder, 'long/'.repeat(40), 'name'), 'utf8')).toBe('long');
  expect(readdirSync(folder).toSorted()).toEqual(['deep', 'empty', 'long', 'run.sh']);
});

test.each<[string, Item[], RegExp]>([
  ['a path above the folder', [{ name: '../evil', content: 'x' }], /leaves the folder/],
  ['a path that goes up inside', [{ name: 'a/../../evil', content: 'x' }], /leaves the folder/],
  ['an absolute path', [{ name: '/tmp/evil', content: 'x' }], /absolute/],
  ['an absolute folder', [{ name: '/tmp/evil', type: 'directory' }], /absolute/],
  ['data of Git', [{ name: '.git/hooks/post-checkout', content: 'x' }], /Git/],
  ['an absolute link', [{ name: 'a', type: 'symlink', linkname: '/etc' }], /leads out/],
  ['a link above the folder', [{ name: 'a/b', type: 'symlink', linkname: '../../c' }], /leads out/],
  [
    'a file through a link',
    [
      { name: 'a', type: 'symlink', linkname: '.' },
      { name: 'a/b', content: 'x' },
    ],
    /no folder/,
  ],
  [
    'a link through a link',
    [
      { name: 'a/b/c', type: 'symlink', linkname: '../..' },
      { name: 'd', type: 'symlink', linkname: 'a/b/c/..' },
    ],
    /leads out/,
  ],
  [
    'a file over a link',
    [
      { name: 'a', type: 'symlink', linkname: 'b' },
      { name: 'a', content: 'x' },
    ],
    /twice/,
  ],
  [
    'a file twice',
    [
      { name: 'a', content: 'x' },
      { name: './a', content: 'y' },
    ],
    /twice/,
  ],
  ['a hard link', [{ name: 'a', type: 'link', linkname: '/etc/passwd' }], /is a link/],
  ['a device', [{ name: 'a', type: 'character-device', devmajor: 1, devminor: 3 }], /character-device/],
  ['a pipe', [{ name: 'a', type: 'fifo' }], /fifo/],
  [
    'paths that differ in case',
    [
      { name: 'Readme', content: 'x' },
      { name: 'README', content: 'y' },
    ],
    /one path/,
  ],
  [
    'folders that differ in case',
    [
      { name: 'A/x', content: 'x' },
      { name: 'a/y', content: 'y' },
    ],
    /one path/,
  ],
  [
    'paths that differ in their Unicode form',
    [
      { name: 'caf\u00e9', content: 'x' },
      { name: 'cafe\u0301', content: 'y' },
    ],
    /one path/,
  ],
  ['a name that is too long', [{ name: 'n'.repeat(300), content: 'x' }], /longer than 255/],
  ['a path that is too long', [{ name: 'ab/'.repeat(500), type: 'directory' }], /longer than 1024/],
  ['too many files', Array.from({ length: 101 }, (_, index) => ({ name: `f${index}`, content: '' })), /more than 100 files/],
  ['too many folders', [{ name: 'a/'.repeat(101), type: 'directory' }], /more than 100 files/],
  ['nothing', [], /empty/],
])('%s is refused', async (_, items, message) => {
  await expect(unpackItems(items)).rejects.toMatchObject({ code: 'source_invalid', message: expect.stringMatching(message) as string });
  expect(readdirSync(root).every((name) => name.startsWith('one-'))).toBe(true);
});

test('a bomb is refused by its headers, before it is written', async () => {
  const bomb = gzipSync(await archive([{ name: 'zeros', content: Buffer.alloc(2_000_000) }]));
  expect(bomb.length).toBeLessThan(10_000);
  await expect(unpack(bomb)).rejects.toMatchObject({
    code: 'source_invalid',
    message: expect.stringMatching(/more than 1\.0 MiB/) as string,
  });
  const many = Array.from({ length: 50 }, (_, index) => ({ name: `z${index}`, content: Buffer.alloc(50_000) }));
  await expect(unpackItems(many)).rejects.toThrow(/more than 1\.0 MiB/);
});

test('a name of 64 MiB is not kept in memory', async () => {
  const long = await archive([{ name: 'x', content: '' }]);
  const header = Buffer.from(long.subarray(0, 512));
  // A GNU header of a long name, of 64 MiB.
  header.write('L', 156);
  header.write((64 * 1024 * 1024).toString(8).padStart(11, '0'), 124);
  header.fill(' ', 148, 156);
  header.write(
    `${header
      .reduce((sum, byte) => sum + byte, 0)
      .toString(8)
      .padStart(6, '0')}\0 `,
    148,
  );
  const compressed = gzipSync(Buffer.concat([header, Buffer.alloc(64 * 1024 * 1024, 'n')]));
  await expect(unpack(compressed, { maxBytes: 1e9, maxEntries: 10 })).rejects.toMatchObject({
    code: 'source_invalid',
    message: expect.stringContaining('Header exceeds max size') as string,
  });
});

test('padding without end is refused', async () => {
  const padded = gzipSync(Buffer.concat([await archive([{ name: 'a', content: 'x' }]), Buffer.alloc(4_000_000)]));
  await expect(unpack(padded)).rejects.toThrow(/more headers and padding than files/);
});

test.each([
  ['text', Buffer.from('hello')],
  ['an empty body', Buffer.alloc(0)],
  ['a compressed text', gzipSync('hello '.repeat(1_000))],
])('%s is no archive', async (_, bytes) => {
  await expect(unpack(bytes)).rejects.toMatchObject({ code: 'source_invalid' });
});

test('an archive that ends early is refused', async () => {
  const whole = gzipSync(
    await archive([{ name: 'a', content: Buffer.from(Array.from({ length: 50_000 }, (_, index) => (index * 7_919) % 251)) }]),
  );
  await expect(unpack(whole.subarray(0, whole.length / 2))).rejects.toMatchObject({ code: 'source_invalid' });
});

test('an abort ends it with the reason of the signal', async () => {
  const stop = new AbortController();
  const endless = new Readable({ read() {} });
  const running = unpackSource(endless, mkdtempSync(path.join(root, 'one-')), LIMITS, stop.signal);
  stop.abort(new Error('cancelled'));
  await expect(running).rejects.toThrow('cancelled');
  expect(endless.destroyed).toBe(true);
});
