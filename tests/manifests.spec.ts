import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { VERSION } from '@palestra/protocol/version';

/** package.json of every workspace, which scripts/pack.mjs publishes. */
const root = path.resolve(import.meta.dirname, '..');

interface Manifest {
  name: string;
  version: string;
  description?: string;
  license?: string;
  private?: boolean;
  files?: string[];
  engines?: { node: string };
  exports?: Record<string, unknown>;
  dependencies?: Record<string, string>;
  optionalDependencies?: Record<string, string>;
  peerDependencies?: Record<string, string>;
}
const read = (folder: string): Manifest => JSON.parse(readFileSync(path.join(root, folder, 'package.json'), 'utf8')) as Manifest;
const workspace = read('.');
const manifests = ['apps', 'libs'].flatMap((area) =>
  readdirSync(path.join(root, area)).map((name) => [`${area}/${name}`, read(`${area}/${name}`)] as const),
);

test('programs read the version of the workspace', () => {
  expect(VERSION).toBe(workspace.version);
});

describe.each(manifests)('%s', (_folder, manifest) => {
  test('has the version, the licence and the Node.js versions of the workspace', () => {
    expect(manifest).toMatchObject({ version: workspace.version, license: workspace.license, engines: workspace.engines });
  });

  test('says what it is and what it ships, and npm publishes it from here by no accident', () => {
    expect(manifest).toMatchObject({ description: expect.stringMatching(/^[A-Z].*\.$/), private: true });
    expect(manifest.files).toContain('dist');
    expect(manifest.exports).toHaveProperty(['./package.json']);
  });

  test('needs other packages in real ranges, and ours in this version', () => {
    const { dependencies, optionalDependencies, peerDependencies } = manifest;
    for (const [name, range] of Object.entries({ ...dependencies, ...optionalDependencies, ...peerDependencies })) {
      if (/^(?:@palestra\/|palestra$)/.test(name)) expect(range, name).toBe(`^${workspace.version}`);
      // A second version of the types of Node.js in one program would contradict the first.
      else if (name === '@types/node') expect(range).toBe('>=20.19.0');
      else expect(range, name).toMatch(/^[\^~]?\d+\.\d+\.\d+/);
    }
  });
});
