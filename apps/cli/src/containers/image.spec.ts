import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import type { ContainerEngine } from './engine.ts';
import { buildImage } from './image.ts';

test('an image is not built with the keys of env dev in it', async () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'palestra-image-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const built: string[][] = [];
  const engine = { run: async (args: string[]) => void built.push(args) } as unknown as ContainerEngine;
  const build = () => buildImage(engine, folder, [], new AbortController().signal);
  writeFileSync(path.join(folder, 'Dockerfile'), 'FROM scratch\nCOPY . .\n');
  await build();
  mkdirSync(path.join(folder, '.palestra'));
  await expect(build()).rejects.toThrow('Add the line ".palestra"');
  writeFileSync(path.join(folder, '.dockerignore'), '.git\n!.palestra\n');
  await expect(build()).rejects.toThrow('Add the line ".palestra"');
  writeFileSync(path.join(folder, '.dockerignore'), '.git\n.palestra/\n');
  await build();
  expect(built).toHaveLength(2);
});
