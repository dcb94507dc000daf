import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { EXIT_CODES } from '../apps/cli/src/exit-codes.ts';
import { defaultOf, examplesOf, pathOf, visibleCommands } from '../apps/cli/src/program/define.ts';
import { buildProgram } from '../apps/cli/src/program/program.ts';
import { renderCli } from '../scripts/cli-doc.mjs';

const text = renderCli({ program: buildProgram(), defaultOf, examplesOf, pathOf, visibleCommands, exitCodes: EXIT_CODES });

test('docs/cli.md is what the command line has', () => {
  expect(readFileSync(path.resolve(import.meta.dirname, '../docs/cli.md'), 'utf8')).toBe(text);
});

test('it has every command with its options, and no hidden one', () => {
  expect(text).toContain('### palestra env push\n');
  expect(text).toContain('`--capacity <count>`: concurrent sessions');
  expect(text).not.toMatch(/registry-style|exit-with-parent|__complete|docker forward/);
});
