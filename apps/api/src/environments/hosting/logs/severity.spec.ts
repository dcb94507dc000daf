import { expect, test } from 'vitest';
import { SeverityGuess } from './severity.ts';

test.each([
  ['INFO:     Started server process [12]', 'info'],
  ['2026-11-27 10:00:00,123 - app - ERROR - it broke', 'error'],
  ['[WARN] slow', 'warning'],
  ['warning: unused variable', 'warning'],
  ['npm warn deprecated x', 'warning'],
  ['npm ERR! code E404', 'error'],
  ['error: failed to solve', 'error'],
  ['ModuleNotFoundError: No module named x', 'error'],
  ['Traceback (most recent call last):', 'error'],
  ['{"level":50,"msg":"x"}', 'error'],
  ['{"level":30,"msg":"an ERROR of the past"}', 'info'],
  ['{"severity":"WARNING","message":"x"}', 'warning'],
  ['{"level":"debug"}', 'debug'],
  ['{"not":"a level"}', 'debug'],
  ['{broken}', 'debug'],
  ['no errors were found', 'debug'],
  ['the terror of INFORMATION', 'debug'],
  ['', 'debug'],
])('%j is %s', (text, severity) => {
  expect(new SeverityGuess('debug').of(text)).toBe(severity);
});

test('an indented line continues the line before it', () => {
  const guess = new SeverityGuess('info');
  const lines = ['Traceback (most recent call last):', '  File "a.py", line 1', '    x()', 'done'];
  expect(lines.map((line) => guess.of(line))).toEqual(['error', 'error', 'error', 'info']);
});
