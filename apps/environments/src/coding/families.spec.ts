import { PythonConsole } from '@palestra/sandbox';
import { afterAll, describe, expect, test } from 'vitest';
import { families } from './families/index.ts';
import { grade, TEST_LIMITS } from './grader.ts';
import { exerciseOf, SPLITS, tasks, testsOf } from './tasks.ts';

/** For all solutions on a busy machine. */
const PATIENCE_MS = 480_000;

const ending = new AbortController();
afterAll(() => ending.abort());
const openConsole = () => new PythonConsole(ending.signal, TEST_LIMITS);
const all = SPLITS.flatMap((split) => tasks[split]!);

describe('the tasks of coding', () => {
  test('are many, of many families and all levels, each in one split', () => {
    expect(Object.fromEntries(SPLITS.map((split) => [split, tasks[split]!.length]))).toEqual({ train: 369, validation: 39, test: 84 });
    expect(families.length).toBe(37);
    for (const split of SPLITS) expect(new Set(tasks[split]!.map(({ level }) => level)), split).toEqual(new Set([1, 2, 3, 4, 5]));
    const statements = all.map((task) => exerciseOf(task).statement);
    expect(new Set(statements).size).toBe(all.length);
  });

  test('have hidden tests that differ from the examples, and no result that most of them share', () => {
    for (const task of all) {
      const { examples, hidden } = testsOf(task);
      const inputs = [...examples, ...hidden].map(({ args }) => JSON.stringify(args));
      const name = `${task.family} ${task.variant}`;
      expect(new Set(inputs).size, name).toBe(inputs.length);
      expect(hidden.length, name).toBeGreaterThanOrEqual(9);
      const results = hidden.map(({ expected }) => JSON.stringify(expected));
      const share = Math.max(...results.map((result) => results.filter((other) => other === result).length)) / results.length;
      expect(share, name).toBeLessThan(0.6);
    }
  });

  test('are solved by their programs, within the limits, with the results of their references', { timeout: PATIENCE_MS }, async () => {
    // A second implementation of every exercise, in the sandbox. One interpreter for all: starting one takes longer than most tests.
    const console = openConsole();
    const failed: string[] = [];
    for (const task of all) {
      const { examples, hidden } = testsOf(task);
      const { verdicts, failure } = await grade(console, exerciseOf(task).python, [...examples, ...hidden]);
      if (verdicts.some((verdict) => verdict !== 'passed')) failed.push(`${task.family} ${task.variant}: ${failure ?? verdicts.join(' ')}`);
    }
    expect(failed).toEqual([]);
    await console.close();
  });

  test('fail typical mistakes and slow programs', { timeout: PATIENCE_MS }, async () => {
    // The mistakes of one exercise per family, and the slow programs of every fourth family that has some: each takes its interpreter with it.
    const survived: string[] = [];
    let slowFamilies = 0;
    const console = openConsole();
    for (const [index, { name, exercises }] of families.entries()) {
      const variant = (index * 7) % exercises.length;
      const { mutants, slow } = exercises[variant]!;
      const { hidden } = testsOf({ family: name, variant });
      const tried = slow.length > 0 && (slowFamilies += 1) % 4 === 1 ? [...mutants, ...slow] : mutants;
      for (const [number, mutant] of tried.entries()) {
        const { verdicts } = await grade(console, mutant, hidden);
        if (verdicts.every((verdict) => verdict === 'passed')) survived.push(`${name} ${variant}: mutant ${number}`);
      }
    }
    expect(slowFamilies).toBeGreaterThan(4);
    expect(survived).toEqual([]);
    await console.close();
  });
});
