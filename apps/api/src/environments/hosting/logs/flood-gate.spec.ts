import { expect, test } from 'vitest';
import { FloodGate } from './flood-gate.ts';

function gateAt(start = 0) {
  const clock = { now: start };
  return { clock, gate: new FloodGate({ lines: 3, linesPerS: 1, bytes: 100, bytesPerS: 10 }, () => clock.now) };
}

test('lets a burst pass, then a rate', () => {
  const { clock, gate } = gateAt();
  expect([1, 2, 3, 4].map(() => gate.admit('a', 1))).toEqual([true, true, true, false]);
  clock.now = 1_000;
  expect([1, 2].map(() => gate.admit('a', 1))).toEqual([true, false]);
  clock.now = 60_000;
  expect([1, 2, 3, 4].map(() => gate.admit('a', 1))).toEqual([true, true, true, false]);
});

test('counts bytes, and each key on its own', () => {
  const { gate } = gateAt();
  expect(gate.admit('a', 90)).toBe(true);
  expect(gate.admit('a', 20)).toBe(false);
  expect(gate.admit('a', 10)).toBe(true);
  expect(gate.admit('b', 100)).toBe(true);
});
