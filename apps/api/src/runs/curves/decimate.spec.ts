import fc from 'fast-check';
import { expect, test } from 'vitest';
import { decimate } from './decimate.ts';

test('keeps all points that fit', () => expect(decimate([1, null, 3], 3)).toEqual([0, 1, 2]));

test('keeps at most the requested number, with every extreme, the first and the last point', () => {
  fc.assert(
    fc.property(
      // Zero has one sign: 0 and -0 are one extreme.
      fc.array(fc.option(fc.double({ noNaN: true }).map((value) => value + 0)), { minLength: 1, maxLength: 400 }),
      fc.integer({ min: 4, max: 60 }),
      (values, max) => {
        const kept = decimate(values, max);
        expect(kept.length).toBeLessThanOrEqual(max);
        expect(kept).toEqual([...new Set(kept)].toSorted((a, b) => a - b));
        expect([kept[0], kept.at(-1)]).toEqual([0, values.length - 1]);
        const known = values.filter((value) => value !== null);
        const shown = kept.map((at) => values[at]!).filter((value) => value !== null);
        if (known.length > 0) expect([Math.min(...shown), Math.max(...shown)]).toEqual([Math.min(...known), Math.max(...known)]);
      },
    ),
  );
});
