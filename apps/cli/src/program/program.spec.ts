import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it, test } from 'vitest';
import { OUTPUT_FORMATS } from '../output-format.ts';
import { examplesOf, pathOf, visibleCommands } from './define.ts';
import { parse, wordsOf } from './parse-line.fixture.ts';
import { buildProgram } from './program.ts';

const program = buildProgram();
const commands = [program, ...visibleCommands(program)];
/** Commands that print no data: they run the service, write a script or a help, or imitate Docker. */
const WITHOUT_DATA = /^palestra (?:up|worker|migrate|demo|help|completion|docker .*)$/;

test('the walk sees the commands', () => {
  const paths = commands.map(pathOf);
  expect(paths).toEqual(
    expect.arrayContaining(['palestra', 'palestra up', 'palestra env push', 'palestra docker run', 'palestra rollouts import']),
  );
  expect(paths).not.toContain('palestra __complete');
  expect(paths).not.toContain('palestra docker forward');
});

describe.each(commands.map((command) => [pathOf(command), command] as const))('%s', (path, command) => {
  const isGroup = command.commands.length > 0;

  it('has a description, also of its arguments and options', () => {
    expect(command.description()).toMatch(/^\S.*[^.]$/);
    const parts = [...command.registeredArguments, ...command.options];
    expect(parts.filter(({ description }) => !description).map((part) => ('flags' in part ? part.flags : part.name()))).toEqual([]);
  });

  it('has examples that it accepts', async () => {
    expect(examplesOf(command).length).toBeGreaterThan(0);
    for (const line of examplesOf(command)) {
      const called = await parse(wordsOf(line));
      expect(`${pathOf(called)} `, line).toContain(isGroup ? `${path} ` : path);
    }
  });
});

const printing = commands.filter((command) => command.commands.length === 0 && !WITHOUT_DATA.test(pathOf(command)));
it.each(printing.map((command) => [pathOf(command), command] as const))('%s prints its data in every format', (_path, command) => {
  const option = command.options.find(({ long }) => long === '--output');
  expect(option?.short).toBe('-o');
  expect(option?.argChoices).toEqual(OUTPUT_FORMATS);
});

/** The packages and files that importing a file loads, without those of `import type` and `import()`. */
function loadedBy(file: string, seen = new Set<string>()): Set<string> {
  if (seen.has(file)) return seen;
  seen.add(file);
  const code = readFileSync(file, 'utf8');
  for (const [, name] of code.matchAll(/^(?:import|export) (?!type )(?:[^;]*? from )?'([^']+)';/gm)) {
    if (name!.startsWith('.')) loadedBy(path.resolve(path.dirname(file), name!), seen);
    else seen.add(name!);
  }
  return seen;
}

test('a help and an error load nothing that only a running command needs', () => {
  const loaded = [...loadedBy(path.resolve(import.meta.dirname, '../main.ts'))];
  expect(loaded.filter((one) => one.endsWith('.ts')).length).toBeGreaterThan(15);
  expect(loaded.filter((one) => !one.endsWith('.ts')).toSorted()).toEqual([
    '@palestra/protocol',
    '@palestra/protocol/version',
    'commander',
    'node:util',
  ]);
});
