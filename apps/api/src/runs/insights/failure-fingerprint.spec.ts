import { expect, test } from 'vitest';
import { fingerprint, normaliseError } from './failure-fingerprint.ts';

test('keeps the kind of an error and replaces the parts that differ', () => {
  const trace = (n: number) =>
    `Traceback (most recent call last):\n  File "/srv/app/main.py", line ${n}, in run\nValueError: no number ${n} at 0x7f3${n}a in /tmp/run-${n}/out.txt\n`;
  expect(normaliseError(trace(12))).toBe('ValueError: no number <n> at <address> in <path>');
  expect(normaliseError(trace(12))).toBe(normaliseError(trace(77)));
  expect(normaliseError(`no file 'a.txt'`)).toBe('no file <text>');
  expect(normaliseError('')).toBe('');
});

test('distinguishes tools, stops and errors', () => {
  const one = { error: 'x', tool: 'bash', stop: 'finished' };
  expect(new Set([one, { ...one, tool: null }, { ...one, stop: 'max_turns' }, { ...one, error: null }].map(fingerprint)).size).toBe(4);
});
