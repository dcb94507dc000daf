import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { AlertEvidence } from '@palestra/protocol';
import { advance, type Judgement } from './alert-state.ts';

const judgement = (holds: boolean, step: number): Judgement => ({ step, at: null, holds, evidence: { step } as AlertEvidence });
const judged = (...holds: boolean[]) => holds.map(judgement);

test('an alert fires once and is resolved once, however often it is judged', () => {
  expect(advance(false, judged(false, true, true, true))).toMatchObject({
    firing: true,
    changes: [{ kind: 'firing', judgement: { step: 1 } }],
  });
  expect(advance(true, judged(true, true)).changes).toEqual([]);
  expect(advance(true, judged(true, false, false))).toMatchObject({
    firing: false,
    changes: [{ kind: 'resolved', judgement: { step: 1 } }],
  });
  expect(advance(true, []).firing).toBe(true);
  expect(advance(false, judged(true, false, true)).changes.map(({ kind }) => kind)).toEqual(['firing', 'resolved', 'firing']);
});

test('changes alternate, begin with the other state and end in the present one, also when there are too many', () => {
  fc.assert(
    fc.property(fc.boolean(), fc.array(fc.boolean(), { maxLength: 120 }), (before, holds) => {
      const { firing, changes } = advance(before, judged(...holds));
      expect(firing).toBe(holds.at(-1) ?? before);
      expect(changes.length).toBeLessThanOrEqual(21);
      const states = [before, ...changes.map(({ kind }) => kind === 'firing')];
      expect(states.slice(1).every((state, at) => state !== states[at])).toBe(true);
      expect(states.at(-1)).toBe(firing);
    }),
  );
});
