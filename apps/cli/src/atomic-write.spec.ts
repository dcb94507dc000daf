import { execFileSync } from 'node:child_process';
import { lstat, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { writeFileAtomically } from './atomic-write.ts';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'palestra-write-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const { signal } = new AbortController();
async function* bytesOf(text: string, error?: Error): AsyncGenerator<Uint8Array> {
  yield Buffer.from(text);
  if (error) throw error;
}

describe('a file that is written at once', () => {
  it('keeps what it was after an error', async () => {
    const file = path.join(folder, 'kept ü.jsonl');
    await writeFile(file, 'old');
    await expect(writeFileAtomically(file, bytesOf('new', new Error('broken')), signal)).rejects.toThrow('broken');
    expect(await readFile(file, 'utf8')).toBe('old');
    await writeFileAtomically(file, bytesOf('new'), signal);
    expect(await readFile(file, 'utf8')).toBe('new');
    expect((await readdir(folder)).filter((name) => name.endsWith('.partial'))).toEqual([]);
  });

  it('is the one that a link names', async () => {
    const [file, link] = [path.join(folder, 'data.jsonl'), path.join(folder, 'latest.jsonl')];
    await writeFile(file, 'old');
    await symlink('data.jsonl', link);
    await writeFileAtomically(link, bytesOf('new'), signal);
    expect((await lstat(link)).isSymbolicLink()).toBe(true);
    expect(await readFile(file, 'utf8')).toBe('new');
  });

  it('does not take the place of a pipe or a device', async () => {
    const pipe = path.join(folder, 'pipe');
    execFileSync('mkfifo', [pipe]);
    const [read] = await Promise.all([readFile(pipe, 'utf8'), writeFileAtomically(pipe, bytesOf('through'), signal)]);
    expect(read).toBe('through');
    expect((await lstat(pipe)).isFIFO()).toBe(true);
  });
});
