import { describe, expect, it, test } from 'vitest';
import { OUTPUT_FORMATS } from '../output-format.ts';
import { examplesOf, pathOf, visibleCommands } from './define.ts';
import { parse, wordsOf } from './parse-line.fixture.ts';
import { buildProgram } from './program.ts';

const program = buildProgram();
const commands = [program, ...visibleCommands(program)];
/** Commands that print no data: they serve, write a script or a help, or imitate Docker. */
const WITHOUT_DATA = /^palestra (?:up|worker|migrate|demo|env (?:init|validate|serve|push)|help|completion|docker .*)$/;

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

  it.runIf(!isGroup && !WITHOUT_DATA.test(path))('prints its data in every format', () => {
    const option = command.options.find(({ long }) => long === '--output');
    expect(option?.short).toBe('-o');
    expect(option?.argChoices).toEqual(OUTPUT_FORMATS);
  });
});
