import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { compareCommand } from '../apps/cli/src/commands/compare.ts';
import { parseCondition } from '../apps/cli/src/commands/compare-conditions.ts';
import { environmentCommands } from '../apps/cli/src/commands/environments.ts';
import { keyCommands } from '../apps/cli/src/commands/keys.ts';
import { runCommands } from '../apps/cli/src/commands/runs.ts';
import { taskCommands } from '../apps/cli/src/commands/tasks.ts';

/** Commands of the command line that the texts for users name. */
const root = path.resolve(import.meta.dirname, '..');
const docs = readdirSync(path.join(root, 'docs')).filter((name) => name.endsWith('.md'));
const files = ['README.md', ...docs.map((name) => `docs/${name}`)];
const families = new Map(
  [environmentCommands(), taskCommands(), keyCommands(), ...runCommands(Number)].map((family) => [
    family.name(),
    new Set(family.commands.flatMap((command) => [command.name(), ...command.aliases()])),
  ]),
);
const SPOKEN = new RegExp(String.raw`\bpalestra (?:-- )?(${[...families.keys()].join('|')}) ([a-z][a-z-]*)`, 'g');

describe.each(files)('%s', (file) => {
  test('names commands that there are', () => {
    const named = [...readFileSync(path.join(root, file), 'utf8').matchAll(SPOKEN)];
    const missing = named.flatMap(([words, family, command]) => (families.get(family!)!.has(command!) ? [] : [words]));
    expect(missing).toEqual([]);
  });
});

describe('palestra compare', () => {
  const examples = [...files, 'docs/reference/metrics.md'].flatMap((file) => {
    const text = readFileSync(path.join(root, file), 'utf8');
    return [...text.matchAll(/^.*\bpalestra (?:-- )?compare (?<words>[^`\n]*)$/gm)].map(({ groups }) => groups!['words']!);
  });

  test('has an example, with options and conditions that there are', () => {
    expect(examples.length).toBeGreaterThan(0);
    const options = compareCommand().options.map(({ long }) => long);
    for (const words of examples) {
      for (const [option] of words.matchAll(/--[a-z-]+/g)) expect(options).toContain(option);
      for (const [, condition] of words.matchAll(/--fail-if "([^"]+)"/g)) expect(() => parseCondition(condition!)).not.toThrow();
    }
  });
});
