import { expect, test } from 'vitest';
import { HUES, huesOf, shortNames } from './hues.ts';

test('a run keeps its hue in every comparison', () => {
  const first = huesOf(['a', 'b'], []);
  expect(first.hues).toEqual([1, 2]);
  const second = huesOf(['c', 'b'], first.remembered);
  expect(second.hues).toEqual([3, 2]);
  expect(huesOf(['a', 'c', 'b'], second.remembered).hues).toEqual([1, 3, 2]);
});

test('two runs of a comparison never share a hue, even after many comparisons', () => {
  let remembered = huesOf([], []).remembered;
  for (let i = 0; i < 40; i += 1) {
    const runs = [`r${i}`, `r${(i * 7) % 13}`, `s${i % 5}`].filter((run, at, all) => all.indexOf(run) === at);
    const found = huesOf(runs, remembered);
    expect(new Set(found.hues).size).toBe(runs.length);
    expect(found.remembered.length).toBeLessThanOrEqual(HUES);
    expect(new Set(found.remembered.map(([, hue]) => hue)).size).toBe(found.remembered.length);
    remembered = found.remembered;
  }
});

test('short names show the part that differs', () => {
  expect(shortNames(['whodunit-grpo-7', 'whodunit-grpo-8-lr3e-6'])).toEqual(['…7', '…8-lr3e-6']);
  const runs = ['whodunit-grpo-7', 'whodunit-grpo-8-lr3e-6', 'skyrl-whodunit'];
  expect(shortNames(runs)).toEqual(['whod…it-grpo-7', 'whod…-8-lr3e-6', 'skyrl-whodunit']);
  expect(shortNames(['run', 'run'])).toEqual(['run', 'run']);
  expect(shortNames(['alpha', 'alphabet'])).toEqual(['alpha', 'alphabet']);
  expect(shortNames(['a very long name of a run', 'b'])).toEqual(['a ve… of a run', 'b']);
});
