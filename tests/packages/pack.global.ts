import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { TestProject } from 'vitest/node';
import { type PackedPackage, packAll } from '../../scripts/pack.mjs';

declare module 'vitest' {
  interface ProvidedContext {
    packages: PackedPackage[];
  }
}

/** Packs every workspace once per run. */
export default function setup(project: TestProject): () => void {
  const folder = mkdtempSync(path.join(tmpdir(), 'palestra-packages-'));
  project.provide('packages', packAll(path.join(folder, 'tarballs'), path.join(folder, 'staging')));
  return () => rmSync(folder, { recursive: true, force: true });
}
