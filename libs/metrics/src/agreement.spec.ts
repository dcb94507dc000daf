import { describe, expect, it } from 'vitest';
import { alphaInterval, type AnswerPattern, krippendorffAlpha } from './agreement.ts';

/** One item per entry, its answers as text. */
const itemsOf = (...answers: string[]): AnswerPattern[] =>
  answers.map((values) => {
    const counts: Record<string, number> = {};
    for (const value of values) counts[value] = (counts[value] ?? 0) + 1;
    return { counts, items: 1 };
  });

/** The definition without any algebra: over all pairs of answers. */
function slowAlpha(answers: readonly string[]): number | null {
  const paired = answers.filter((values) => values.length >= 2);
  const all = paired.join('');
  let within = 0;
  for (const values of paired)
    for (const [i, x] of [...values].entries())
      for (const [j, y] of [...values].entries()) if (i !== j && x !== y) within += 1 / (values.length - 1);
  let chance = 0;
  for (const [i, x] of [...all].entries()) for (const [j, y] of [...all].entries()) if (i !== j && x !== y) chance += 1;
  return chance === 0 ? null : 1 - within / all.length / (chance / (all.length * (all.length - 1)));
}

describe("Krippendorff's alpha, nominal", () => {
  it('is that of the examples in Krippendorff 2011', () => {
    // Section A: binary data, two observers, 10 units.
    expect(krippendorffAlpha(itemsOf('01', '11', '01', '00', '00', '01', '00', '00', '10', '00'))).toEqual({
      alpha: expect.closeTo(0.095, 3),
      items: 10,
    });
    // Section B: nominal data, two observers, 12 units.
    expect(krippendorffAlpha(itemsOf('ab', 'aa', 'bb', 'bb', 'db', 'cc', 'cc', 'cc', 'ee', 'dd', 'dd', 'ad')).alpha).toBeCloseTo(0.692, 3);
    // Section C: four observers, 12 units, missing data; the unit with one answer does not count.
    const reliability = ['111', '2223', '3333', '3333', '2222', '1234', '4444', '1121', '2222', '555', '11', '3'];
    expect(krippendorffAlpha(itemsOf(...reliability))).toEqual({ alpha: expect.closeTo(0.743, 3), items: 11 });
  });

  it('does not exist for one reviewer, or when all answers are equal', () => {
    expect(krippendorffAlpha([])).toEqual({ alpha: null, items: 0 });
    expect(krippendorffAlpha(itemsOf('a', 'b', 'a'))).toEqual({ alpha: null, items: 0 });
    expect(krippendorffAlpha(itemsOf('aa', 'aaa'))).toEqual({ alpha: null, items: 2 });
    expect(alphaInterval(itemsOf('a', 'b'))).toBeNull();
    expect(alphaInterval(itemsOf('aa', 'aa'))).toBeNull();
  });

  it('is 1 when reviewers always agree, and negative when they never do', () => {
    expect(krippendorffAlpha(itemsOf('aa', 'bb')).alpha).toBe(1);
    expect(krippendorffAlpha(itemsOf('ab', 'ab')).alpha).toBeLessThan(0);
  });

  it('counts items of one pattern as many times as they occur', () => {
    const answers = ['aab', 'aab', 'ab', 'bb', 'ccc', 'c', 'aab'];
    const patterns = [{ counts: { a: 2, b: 1 }, items: 3 }, ...itemsOf('ab', 'bb', 'ccc', 'c')];
    expect(krippendorffAlpha(patterns).alpha).toBeCloseTo(slowAlpha(answers)!, 12);
    expect(krippendorffAlpha(itemsOf(...answers)).alpha).toBeCloseTo(slowAlpha(answers)!, 12);
  });

  it('has an interval that contains it, and narrows with more items', () => {
    const few = alphaInterval([
      { counts: { a: 2 }, items: 8 },
      { counts: { b: 2 }, items: 6 },
      { counts: { a: 1, b: 1 }, items: 6 },
    ])!;
    const many = alphaInterval([
      { counts: { a: 2 }, items: 800 },
      { counts: { b: 2 }, items: 600 },
      { counts: { a: 1, b: 1 }, items: 600 },
    ])!;
    const { alpha } = krippendorffAlpha([
      { counts: { a: 2 }, items: 8 },
      { counts: { b: 2 }, items: 6 },
      { counts: { a: 1, b: 1 }, items: 6 },
    ]);
    expect(few.low).toBeLessThan(alpha!);
    expect(few.high).toBeGreaterThan(alpha!);
    expect(many.high - many.low).toBeLessThan((few.high - few.low) / 5);
    expect(alphaInterval([{ counts: { a: 1, b: 1 }, items: 5 }])).toEqual({ low: expect.any(Number), high: expect.any(Number) });
  });
});
