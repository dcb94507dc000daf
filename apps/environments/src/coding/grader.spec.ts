import { expect, test } from 'vitest';
import { grade } from './grader.ts';

const tests = Array.from({ length: 4 }, (_, value) => ({ args: [value], expected: value }));
/** A console whose programs run for `ranMs` and print the values of the tests. */
const consoleOf = (ranMs: number) => {
  let runs = -1;
  return { run: async () => ({ stdout: String(runs++), stderr: '', exitCode: 0, parses: true, ranMs, isInterrupted: false }) };
};

test('tests begin until the programs ran for a minute, without the waits for other programs', async () => {
  expect((await grade(consoleOf(25_000), '', tests)).verdicts).toEqual(['passed', 'passed', 'time', 'time']);
  expect((await grade(consoleOf(0), '', tests)).verdicts).toEqual(['passed', 'passed', 'passed', 'passed']);
});
