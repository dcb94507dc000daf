import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';

/** Every document and decision that a file cites is in this repository, with the cited heading, and no line of a document is long. */
const root = path.resolve(import.meta.dirname, '..');
const MAX_LINE_LENGTH = 120;
const CITING = /\.(?:tsx?|mjs|md|sql|prisma|py|sh|ya?ml|css|html)$/;
/** Names of documents that are not in the repository: arguments and output of programs. */
const EXAMPLES = new Set(['LAKE.md', 'instruction.md']);
const SKIPPED = /(?:^|\/)(?:node_modules|dist|generated|fixtures|migrations|artifacts)(?:\/|$)/;

function listFiles(folder: string): string[] {
  return readdirSync(path.join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const file = path.posix.join(folder, entry.name);
    if (SKIPPED.test(file)) return [];
    if (entry.isDirectory()) return listFiles(file);
    return CITING.test(entry.name) ? [file] : [];
  });
}
const topLevel = readdirSync(root, { withFileTypes: true }).flatMap(({ name }) => (/\.(?:md|ya?ml)$/.test(name) ? [name] : []));
const folders = ['apps', 'libs', 'integrations', 'docs', 'scripts', 'bench', 'tests', '.ci', '.github'];
const files = [...topLevel, ...folders.flatMap(listFiles)]
  .filter((file) => file !== 'tests/citations.spec.ts')
  .map((file) => ({ file, text: readFileSync(path.join(root, file), 'utf8') }));
const documents = files.filter(({ file }) => file.endsWith('.md'));

/** The anchor that GitHub gives a heading. */
const anchorOf = (heading: string): string =>
  heading
    .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .trim()
    .replaceAll(/\s/g, '-');
const withoutCode = (text: string): string => text.replaceAll(/^ *```[\s\S]*?^ *```/gm, '');
const anchors = new Map(
  documents.map(({ file, text }) => [
    file,
    new Set([...withoutCode(text).matchAll(/^#{1,6} (.+)$/gm)].map(([, heading]) => anchorOf(heading!))),
  ]),
);

/** Whether `target`, relative to the root, exists and has the heading, if any. */
function resolves(target: string): boolean {
  const [file, anchor] = target.split('#', 2) as [string, string?];
  if (!existsSync(path.join(root, file))) return false;
  return anchor === undefined || anchor === '' || anchors.get(file)?.has(anchor) === true;
}

describe('citations', () => {
  test('sees the files', () => {
    expect(files.length).toBeGreaterThan(1000);
    expect(documents.length).toBeGreaterThan(40);
  });

  test('documents and headings exist', () => {
    const broken = files.flatMap(({ file, text }) =>
      [...text.matchAll(/(?<![\w/.-])docs\/[\w./-]+\.md(?:#[\w-]+)?/g)]
        .filter(([target]) => !resolves(target))
        .map(([target]) => `${file}: ${target}`),
    );
    expect(broken).toEqual([]);
  });

  test('documents that a file names by a path or by their name exist', () => {
    const names = new Set(documents.map(({ file }) => path.basename(file)));
    const exists = (name: string, file: string): boolean =>
      [name, path.posix.join('docs', name), path.posix.join(path.dirname(file), name)].some((target) =>
        existsSync(path.join(root, target)),
      ) ||
      (file.endsWith('.md') && names.has(name));
    const broken = files.flatMap(({ file, text }) =>
      [...text.matchAll(/(?<![\w./:@*{}-])(?:\.{0,2}\/)?[\w-][\w./-]*\.md\b/g)]
        .filter(([name]) => !EXAMPLES.has(path.basename(name)) && !exists(name, file))
        .map(([name]) => `${file}: ${name}`),
    );
    expect(broken).toEqual([]);
  });

  test('decisions exist', () => {
    const numbers = new Set(readdirSync(path.join(root, 'docs/adr')).map((name) => Number.parseInt(name, 10)));
    const broken = files.flatMap(({ file, text }) =>
      [...text.matchAll(/\bADRs? (\d+)(?:(?:, | and | or |–)(\d+))*/g)]
        .flatMap(([whole]) => whole.match(/\d+/g)!.map(Number))
        .filter((number) => !numbers.has(number))
        .map((number) => `${file}: ADR ${number}`),
    );
    expect(broken).toEqual([]);
  });

  test('links of documents resolve', () => {
    const broken = documents.flatMap(({ file, text }) =>
      [...withoutCode(text).matchAll(/\]\((?!\w+:)([^)\s]+)\)/g)]
        .map(([, target]) => (target!.startsWith('#') ? file + target : path.posix.join(path.dirname(file), target!)))
        .filter((target) => !resolves(target))
        .map((target) => `${file}: ${target}`),
    );
    expect(broken).toEqual([]);
  });
});

test(`no line of a document is longer than ${MAX_LINE_LENGTH} characters`, () => {
  const long = documents.flatMap(({ file, text }) =>
    text.split('\n').flatMap((line, at) => ([...line].length > MAX_LINE_LENGTH ? [`${file}:${at + 1}`] : [])),
  );
  expect(long).toEqual([]);
});

test('types of the glossary are in the files that it names', () => {
  const glossary = documents.find(({ file }) => file === 'docs/glossary.md')!.text.replaceAll(/\s+/g, ' ');
  const named = [...glossary.matchAll(/\(`(\w+)` in `([\w./-]+)`\)/g)].map(([, type, file]) => [type!, file!] as const);
  expect(named.length).toBeGreaterThan(20);
  const declares = (type: string, file: string): boolean =>
    existsSync(path.join(root, file)) &&
    new RegExp(`export (?:abstract |async )?(?:interface|type|class|function|const) ${type}\\b`).test(
      readFileSync(path.join(root, file), 'utf8'),
    );
  expect(named.filter(([type, file]) => !declares(type, file))).toEqual([]);
});

test('docs/architecture.md names files and folders that exist', () => {
  const map = documents.find(({ file }) => file === 'docs/architecture.md')!.text;
  const named = [...map.matchAll(/`((?:apps|libs|tests|docs)\/[\w./-]+)`/g)].map(([, name]) => name!);
  expect(named.length).toBeGreaterThan(20);
  expect(named.filter((name) => !existsSync(path.join(root, name)))).toEqual([]);
});

test('docs/README.md has every document', () => {
  const index = documents.find(({ file }) => file === 'docs/README.md')!.text;
  const missing = documents.flatMap(({ file }) =>
    file.startsWith('docs/') && file !== 'docs/README.md' && !index.includes(`](${file.slice('docs/'.length)})`) ? [file] : [],
  );
  expect(missing).toEqual([]);
});
