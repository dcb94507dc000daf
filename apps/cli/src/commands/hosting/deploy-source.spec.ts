import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { nameOfSource, sourceOf } from './deploy-source.ts';

describe('what is deployed', () => {
  test('is a folder, a repository, an image or servers, not several of them', () => {
    expect(sourceOf(undefined, {})).toEqual({ kind: 'folder', folder: process.cwd() });
    expect(sourceOf(undefined, { git: 'https://x/y', ref: 'main' })).toEqual({ kind: 'git', url: 'https://x/y', ref: 'main' });
    expect(sourceOf(undefined, { image: 'a/b:1', port: 80 })).toEqual({ kind: 'image', image: 'a/b:1', port: 80 });
    expect(sourceOf(undefined, { url: ['http://a', 'http://b'] })).toEqual({ kind: 'url', urls: ['http://a', 'http://b'] });
    expect(() => sourceOf('.', { image: 'a/b' })).toThrow('Pass one of a folder and --image, not both.');
    expect(() => sourceOf(undefined, { ref: 'main' })).toThrow('--ref and --subdirectory need --git.');
    expect(() => sourceOf('no-such-folder', {})).toThrow('no-such-folder: no such folder.');
  });

  test('gives the environment its name', async () => {
    const folder = mkdtempSync(path.join(tmpdir(), 'Guess game '));
    expect(await nameOfSource({ kind: 'folder', folder })).toMatch(/^Guess-game-/);
    writeFileSync(path.join(folder, 'openenv.yaml'), 'name: guess\n');
    expect(await nameOfSource({ kind: 'folder', folder })).toBe('guess');
    expect(await nameOfSource({ kind: 'git', url: 'https://x.example/team/echo_env.git' })).toBe('echo_env');
    expect(await nameOfSource({ kind: 'git', url: 'https://x.example/envs', subdirectory: 'games/guess' })).toBe('guess');
    expect(await nameOfSource({ kind: 'image', image: 'registry.example:5000/team/guess:1.0' })).toBe('guess');
    expect(() => nameOfSource({ kind: 'image', image: 'r.example/a:1' })).toThrow('cannot be the name of an environment');
    expect(() => nameOfSource({ kind: 'url', urls: ['http://a'] })).toThrow('Pass --name owner/name.');
  });
});
