import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';

/**
 * Who may import whom. Every import of every source file is read, so that a forbidden one fails here rather than in review,
 * and the number of files seen is asserted, so that this test cannot go blind.
 */
const root = path.resolve(import.meta.dirname, '..');

const allowed: Record<string, string[]> = {
  'libs/kit': [],
  'libs/protocol': [],
  'libs/session': ['protocol', 'kit'],
  'libs/rollouts': ['protocol', 'kit'],
  'libs/metrics': ['protocol', 'kit'],
  'libs/query': ['protocol', 'kit'],
  'libs/backends': ['protocol', 'session', 'kit', 'environment-kit'],
  'libs/hosting': ['kit'],
  'libs/dialects': ['protocol', 'session', 'kit'],
  'libs/blobs': ['kit'],
  'libs/exports': ['protocol', 'rollouts', 'kit'],
  'libs/client': ['protocol', 'kit'],
  'libs/environment-kit': ['protocol', 'kit'],
  'apps/dashboard': ['protocol', 'rollouts', 'metrics', 'query'],
};
/** The one way from an application to another: what apps/worker runs is the API in another role (docs/adr/0015). */
const doors: Record<string, string> = { 'apps/worker': '@palestra/api/worker' };
const frameworks = /^(@nestjs\/|@prisma\/|prisma$|fastify$|@fastify\/)/;

interface Source {
  file: string;
  workspace: string;
  imports: string[];
}

const importPattern = /(?:^|\n)\s*(?:import|export)\s(?:[^'";]*?\sfrom\s*)?['"]([^'"]+)['"]|\bimport\(\s*['"]([^'"]+)['"]\s*\)/g;

function importsOf(text: string): string[] {
  return [...text.matchAll(importPattern)].map((match) => match[1] ?? match[2]!);
}

function readSources(): Source[] {
  return ['apps', 'libs'].flatMap((area) =>
    readdirSync(path.join(root, area)).flatMap((name) => {
      const folder = path.join(root, area, name, 'src');
      if (!existsSync(folder)) return [];
      return readdirSync(folder, { recursive: true, encoding: 'utf8' })
        .filter((file) => /\.tsx?$/.test(file) && !file.includes('generated'))
        .map((file) => ({
          file: `${area}/${name}/src/${file}`,
          workspace: `${area}/${name}`,
          imports: importsOf(readFileSync(path.join(folder, file), 'utf8')),
        }));
    }),
  );
}

const sources = readSources();
/** `libs/kit` for '@palestra/kit' and for a relative path that leads there; null for a package of somebody else. */
function workspaceOf(source: Source, specifier: string): string | null {
  if (specifier.startsWith('@palestra/')) {
    const name = specifier.split('/')[1]!;
    return existsSync(path.join(root, 'libs', name)) ? `libs/${name}` : `apps/${name}`;
  }
  if (!specifier.startsWith('.')) return null;
  return path.join(path.dirname(source.file), specifier).split(path.sep).slice(0, 2).join('/');
}

describe('architecture', () => {
  test.each([
    'kit',
    'protocol',
    'session',
    'rollouts',
    'metrics',
    'query',
    'backends',
    'hosting',
    'dialects',
    'blobs',
    'exports',
    'client',
    'environment-kit',
  ])('sees the files and imports of libs/%s', (name) => {
    const own = sources.filter((source) => source.workspace === `libs/${name}`);
    expect(own.length).toBeGreaterThanOrEqual(3);
    expect(own.flatMap((source) => source.imports).length).toBeGreaterThan(0);
  });

  test.each([
    ['apps/api', 50],
    ['apps/cli', 5],
    ['apps/dashboard', 10],
    ['apps/environments', 5],
  ])('sees the files and imports of %s', (workspace, least) => {
    const own = sources.filter((source) => source.workspace === workspace);
    expect(own.length).toBeGreaterThanOrEqual(least);
    expect(own.flatMap((source) => source.imports).length).toBeGreaterThan(least);
  });

  test('reads every form of import', () => {
    const text = [
      `import a from 'a';`,
      `import type { B } from "b";`,
      `import 'c';`,
      `export * from './d.ts';`,
      `import {\n  e,\n} from 'e';`,
      `const f = await import('f');`,
    ].join('\n');
    expect(importsOf(text).toSorted()).toEqual(['./d.ts', 'a', 'b', 'c', 'e', 'f']);
  });

  test('a workspace imports only what its line of the table allows', () => {
    const wrong = sources.flatMap((source) =>
      source.imports
        .map((specifier) => ({ specifier, target: workspaceOf(source, specifier) }))
        .filter(({ target }) => target !== null && target !== source.workspace)
        .filter(({ specifier }) => specifier !== doors[source.workspace])
        .filter(({ target }) => {
          const libs = allowed[source.workspace];
          return target!.startsWith('apps/') || (libs !== undefined && !libs.includes(target!.slice('libs/'.length)));
        })
        .map(({ specifier }) => `${source.file} imports ${specifier}`),
    );
    expect(wrong).toEqual([]);
  });

  test('what comes from the server comes through apps/dashboard/src/data', () => {
    const pages = sources.filter(
      ({ file }) => file.startsWith('apps/dashboard/src/') && !file.includes('/data/') && !file.includes('.spec.'),
    );
    expect(pages.length).toBeGreaterThan(40);
    const asks = /\bfetch\(|\bnew (?:EventSource|WebSocket|XMLHttpRequest|SharedWorker)\b|\b(?:api|request)(?:<[^>]*>)?\(['"`]/;
    expect(pages.filter(({ file }) => asks.test(readFileSync(path.join(root, file), 'utf8'))).map(({ file }) => file)).toEqual([]);
  });

  test('apps/worker is nothing but the door that it opens', () => {
    const own = sources.filter((source) => source.workspace === 'apps/worker');
    expect(own.map(({ file, imports }) => ({ file, imports }))).toEqual([
      { file: 'apps/worker/src/main.ts', imports: ['@palestra/api/worker'] },
    ]);
  });

  test('every lib has its line in the table', () => {
    const libs = readdirSync(path.join(root, 'libs')).map((name) => `libs/${name}`);
    expect(libs.filter((lib) => allowed[lib] === undefined)).toEqual([]);
  });

  test('libs know neither Nest, Fastify nor Prisma', () => {
    const wrong = sources
      .filter((source) => source.workspace.startsWith('libs/'))
      .flatMap((source) =>
        source.imports.filter((specifier) => frameworks.test(specifier)).map((specifier) => `${source.file} imports ${specifier}`),
      );
    expect(wrong).toEqual([]);
  });

  test('the kinds of backend do not import each other', () => {
    const kinds = ['ors', 'local'];
    const wrong = sources.flatMap((source) => {
      const kind = kinds.find((name) => source.file.startsWith(`libs/backends/src/${name}/`));
      if (kind === undefined) return [];
      return source.imports
        .filter((specifier) => specifier.startsWith('.'))
        .map((specifier) => path.join(path.dirname(source.file), specifier))
        .filter((target) => kinds.some((other) => other !== kind && target.startsWith(`libs/backends/src/${other}/`)))
        .map((target) => `${source.file} imports ${target}`);
    });
    expect(wrong).toEqual([]);
  });
});
