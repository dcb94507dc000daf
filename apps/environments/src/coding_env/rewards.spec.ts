import { expect, test } from 'vitest';
import { rewardProgram } from './rewards.ts';

const long = `print(${'1'.repeat(100)})`;
test.each([
  ['def f(:', false, -0.1, null],
  [`${long} (`, false, -0.2, null],
  ['import  os', true, -0.9, 'import\\s+os'],
  [`${long}; eval("1")`, true, -1, 'eval\\('],
  ['import subprocess, os; import os', true, -0.9, 'import\\s+os'],
  ['print(1)', true, 0.1, null],
  [` ${'é'.repeat(100)} \n`, true, 0.1, null],
  [long, true, 0, null],
] as const)('%j, parses: %j, is worth %d', (code, parses, reward, violation) => {
  const given = rewardProgram(code, parses);
  expect(given).toEqual({ reward: expect.closeTo(reward, 12), violation });
});
