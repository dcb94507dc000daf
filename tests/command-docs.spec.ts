import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { defaultOf } from '../apps/cli/src/program/define.ts';
import { parse, wordsOf } from '../apps/cli/src/program/parse-line.fixture.ts';
import { buildProgram } from '../apps/cli/src/program/program.ts';

/** Commands of the command line that the texts for users name. */
const root = path.resolve(import.meta.dirname, '..');
const docs = readdirSync(path.join(root, 'docs'), { recursive: true, encoding: 'utf8' }).filter((name) =>
  /^(?:(?:reference|tutorials)\/)?[^/]*\.md$/.test(name),
);
const pages = readdirSync(path.join(root, 'apps/dashboard/src'), { recursive: true, encoding: 'utf8' }).filter((name) =>
  name.endsWith('.tsx'),
);
const files = ['README.md', ...docs.map((name) => `docs/${name}`), ...pages.map((name) => `apps/dashboard/src/${name}`)];
const textOf = (file: string) => readFileSync(path.join(root, file), 'utf8');
const program = buildProgram();
type Command = typeof program;

/** A name that no command has, such as `finnish` of `palestra runs finnish`; null for words that name a command. */
function unknownName(command: Command, [word, ...rest]: string[]): string | null {
  if (word === undefined || !/^[a-z][a-z-]*$/.test(word) || command.commands.length === 0) return null;
  const next = command.commands.find((one) => one.name() === word || one.aliases().includes(word));
  if (next) return unknownName(next, rest);
  return defaultOf(command) ? null : word;
}

const FAMILIES = program.commands.map((command) => command.name()).join('|');
const SPOKEN = new RegExp(String.raw`\bpalestra (?:-- )?((?:${FAMILIES})(?: [a-z][a-z-]*)*)`, 'g');

/** Lines of code blocks that call the command line. */
function linesOf(file: string): string[] {
  const blocks = [...textOf(file).matchAll(/^```(?:sh|bash)?\n(?<code>[^]*?)^```/gm)].map(({ groups }) => groups!['code']!);
  return blocks.flatMap((code) => code.split('\n')).filter((line) => /^(?:npm run |npx )?palestra (?:-- )?[a-z]/.test(line));
}

test('the search finds commands and command lines, and mistakes in them', async () => {
  expect(files.flatMap(linesOf).length).toBeGreaterThan(10);
  expect(unknownName(program, ['env', 'pussh'])).toBe('pussh');
  expect(unknownName(program, ['runs', 'some-run'])).toBeNull();
  await expect(parse(wordsOf('palestra env push --nonsense'))).rejects.toThrow('unknown option');
});

describe.each(files.filter((file) => /\bpalestra (?:-- )?[a-z]/.test(textOf(file))))('%s', (file) => {
  test('names commands that there are', () => {
    const named = [...textOf(file).matchAll(SPOKEN)];
    expect(named.filter(([, words]) => unknownName(program, words!.split(' ')) !== null).map(([words]) => words)).toEqual([]);
  });

  test('has command lines that the command line accepts', async () => {
    for (const line of linesOf(file)) await expect(parse(wordsOf(line)), line).resolves.toBeDefined();
  });
});
