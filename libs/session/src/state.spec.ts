import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { InvalidTransitionError, isDead, isSetUp, mayFollow, sessionStates, sessionTransitions, transition } from './state.ts';

describe('session states', () => {
  test('the table', () => {
    expect(sessionTransitions).toMatchInlineSnapshot(`
      {
        "closed": [],
        "expired": [],
        "failed": [
          "closed",
          "expired",
        ],
        "finished": [
          "closed",
          "expired",
          "lost",
        ],
        "lost": [],
        "ready": [
          "finished",
          "closed",
          "expired",
          "lost",
        ],
        "reserved": [
          "starting",
          "closed",
          "expired",
        ],
        "starting": [
          "reserved",
          "starting",
          "ready",
          "finished",
          "failed",
          "closed",
          "expired",
          "lost",
        ],
      }
    `);
  });

  test('exactly the transitions of the table are allowed, and each raises the version', () => {
    for (const from of sessionStates) {
      for (const to of sessionStates) {
        const record = { state: from, version: 7, endedAt: null, note: '' };
        if (sessionTransitions[from].includes(to)) {
          expect(transition(record, to, 42, { note: 'x' })).toEqual({ state: to, version: 8, endedAt: isDead(to) ? 42 : null, note: 'x' });
        } else {
          expect(() => transition(record, to, 42)).toThrow(InvalidTransitionError);
        }
      }
    }
  });

  test('on any walk: death is final, versions rise by one, setup is never undone', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...sessionStates)), (wishes) => {
        let record = { state: 'reserved' as (typeof sessionStates)[number], version: 1, endedAt: null as number | null };
        let steps = 0;
        for (const wish of wishes) {
          if (!mayFollow(record.state, wish)) continue;
          const next = transition(record, wish, 1);
          expect(isDead(record.state)).toBe(false);
          if (isSetUp(record.state)) expect(isSetUp(next.state) || isDead(next.state)).toBe(true);
          record = next;
          steps += 1;
        }
        expect(record.version).toBe(1 + steps);
        expect(record.endedAt !== null).toBe(isDead(record.state));
      }),
    );
  });
});
