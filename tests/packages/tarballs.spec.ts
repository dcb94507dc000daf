import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { homedir, tmpdir } from 'node:os';
import path from 'node:path';
import { publint } from 'publint';
import { parseSync } from 'vite';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';

/** What is in the tarballs. */
const root = path.resolve(import.meta.dirname, '../..');
const packages = inject('packages');
/** Packages of pages. */
const BUNDLES = ['@palestra/dashboard', '@palestra/docs'];
/** Bytes; the largest has the routes of the service, with their declarations and maps. */
const MOST_BYTES = 3_500_000;
const PUBLISHED =
  /^(?:package\.json|README\.md|LICENSE|(?:dist|bin)\/.+\.[cm]?js|dist\/.+\.(?:d\.[cm]?ts|js\.map|mjs\.map|json)|prisma\/migrations\/.+)$/;
const PAGES =
  /^(?:package\.json|README\.md|LICENSE|dist\/(?:[\w/-]+\.html|code\.css|hashmap\.json|favicon\.svg|THIRD-PARTY-LICENSES\.txt|assets\/.+\.(?:css|jpg|js|woff2)))$/;
const TESTS = /\.(?:spec|fixture)\.|(?:^|\/)(?:fixtures|tests?)\/|tsbuildinfo|(?:^|\/)\.env/;
const IMPORT =
  /^\s*(?:import|export)\s(?:[^'";]*?\sfrom\s*)?['"]([^'"]+)['"]|\bimport\(\s*['"]([^'"]+)['"]\s*\)|\brequire\(\s*['"]([^'"]+)['"]\s*\)/gm;

/** Modules are parsed, because templates of files contain imports, too. */
function importsOf(file: string, code: string): string[] {
  if (!/\.m?js$/.test(file)) return [...code.matchAll(IMPORT)].map((match) => match[1] ?? match[2] ?? match[3]!);
  const { staticImports, staticExports, dynamicImports } = parseSync(file, code).module;
  return [
    ...staticImports.map(({ moduleRequest }) => moduleRequest.value),
    ...staticExports.flatMap(({ entries }) => entries.flatMap(({ moduleRequest }) => moduleRequest?.value ?? [])),
    ...dynamicImports.flatMap(({ moduleRequest: { start, end } }) => /^['"](.*)['"]$/.exec(code.slice(start, end))?.[1] ?? []),
  ];
}

test('every package is there', () => {
  expect(packages.map(({ manifest }) => manifest.name)).toEqual(expect.arrayContaining(['palestra', '@palestra/client', ...BUNDLES]));
  expect(packages.length).toBeGreaterThanOrEqual(21);
});

describe.each(packages.map((one) => [one.manifest.name, one] as const))('%s', (name, { manifest, tarball, size }) => {
  const folder = mkdtempSync(path.join(tmpdir(), 'palestra-tarball-'));
  const content = path.join(folder, 'package');
  let files: string[];
  const read = (file: string): string => readFileSync(path.join(content, file), 'utf8');
  beforeAll(() => {
    execFileSync('tar', ['-xzf', tarball, '-C', folder]);
    files = readdirSync(content, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => path.relative(content, path.join(entry.parentPath, entry.name)));
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  test('has compiled files, README and LICENSE, no test and nothing private', () => {
    expect(files).toEqual(expect.arrayContaining(['package.json', 'README.md', 'LICENSE']));
    const known = BUNDLES.includes(name) ? PAGES : PUBLISHED;
    expect(files.filter((file) => !known.test(file) || TESTS.test(file))).toEqual([]);
    expect(size).toBeLessThan(MOST_BYTES);
  });

  test('names no folder of this machine', () => {
    const folders = [root, homedir()].filter((one) => one.length > 2);
    expect(files.filter((file) => folders.some((one) => read(file).includes(`${one}/`)))).toEqual([]);
  });

  test('is what publint expects', async () => {
    const { messages } = await publint({ pkgDir: content, pack: false, strict: true });
    expect(messages).toEqual([]);
    for (const field of ['private', 'scripts', 'devDependencies']) expect(manifest).not.toHaveProperty(field);
    expect(JSON.stringify(manifest)).not.toContain('@palestra/source');
  });

  test('has a declaration and a source map with its sources for each module', () => {
    const compiled = BUNDLES.includes(name) ? [] : files.filter((file) => /^dist\/.*\.js$/.test(file));
    if (!BUNDLES.includes(name)) expect(compiled).not.toEqual([]);
    for (const file of compiled) {
      expect(files).toContain(file.replace(/\.js$/, '.d.ts'));
      const map = JSON.parse(read(`${file}.map`)) as { sources: string[]; sourcesContent?: string[] };
      expect(
        map.sources.every((source) => source.startsWith('../')),
        file,
      ).toBe(true);
      expect(map.sourcesContent, file).toHaveLength(map.sources.length);
    }
  });

  test('imports what is in it, and packages that it depends on', () => {
    const { dependencies, optionalDependencies, peerDependencies, imports } = manifest;
    const declared = new Set([
      name,
      ...Object.keys(imports ?? {}),
      ...Object.keys({ ...dependencies, ...optionalDependencies, ...peerDependencies }),
    ]);
    // Prisma's declarations name a package that only its client depends on.
    const modules = BUNDLES.includes(name)
      ? []
      : files.filter((file) => /\.(?:[cm]?js|d\.[cm]?ts)$/.test(file) && !/\/generated\/.*\.ts$/.test(file));
    const wrong = modules.flatMap((file) =>
      importsOf(file, read(file))
        .filter((specifier) => {
          if (specifier.startsWith('.')) {
            const target = path.join(path.dirname(file), specifier);
            return !files.includes(file.endsWith('.ts') ? target.replace(/js$/, 'ts').replace(/\.([mc]?)ts$/, '.d.$1ts') : target);
          }
          return !isBuiltin(specifier) && !declared.has(specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/'));
        })
        .map((specifier) => `${file}: ${specifier}`),
    );
    expect(wrong).toEqual([]);
  });
});
