import { SESSION_STATES } from '@palestra/protocol';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { InvalidTransitionError, isDead, isSetUp, mayFollow, sessionTransitions, transition } from './state.ts';

describe('session states', () => {
  test('the table has every state', () => {
    expect(sessionTransitions).toMatchInlineSnapshot(`
      {
        "closed": [],
        "diverged": [],
        "expired": [],
        "failed": [
          "closed",
          "expired",
        ],
        "finished": [
          "restoring",
          "closed",
          "expired",
          "lost",
        ],
        "lost": [],
        "ready": [
          "restoring",
          "finished",
          "closed",
          "expired",
          "lost",
        ],
        "reserved": [
          "reserved",
          "starting",
          "closed",
          "expired",
          "lost",
        ],
        "restoring": [
          "restoring",
          "ready",
          "finished",
          "failed",
          "closed",
          "expired",
          "lost",
          "diverged",
        ],
        "starting": [
          "reserved",
          "starting",
          "ready",
          "restoring",
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
    for (const from of SESSION_STATES) {
      for (const to of SESSION_STATES) {
        const record = { state: from, version: 7, endedAt: null, secrets: new Uint8Array(1), waitingOn: 'x', note: '' };
        if (sessionTransitions[from].includes(to)) {
          const kept = isDead(to)
            ? { endedAt: 42, secrets: null, waitingOn: null }
            : { endedAt: null, secrets: record.secrets, waitingOn: 'x' };
          expect(transition(record, to, 42, { note: 'x' })).toEqual({ state: to, version: 8, note: 'x', ...kept });
        } else {
          expect(() => transition(record, to, 42)).toThrow(InvalidTransitionError);
        }
      }
    }
  });

  test('on any path, ends are final, versions rise by one, and setup is never undone (property)', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...SESSION_STATES)), (wishes) => {
        const first = { version: 1, endedAt: null as number | null, secrets: null, waitingOn: null };
        let record = { ...first, state: 'reserved' as (typeof SESSION_STATES)[number] };
        let steps = 0;
        for (const wish of wishes) {
          if (!mayFollow(record.state, wish)) continue;
          const next = transition(record, wish, 1);
          expect(isDead(record.state)).toBe(false);
          if (isSetUp(record.state)) expect(isSetUp(next.state) || isDead(next.state) || next.state === 'restoring').toBe(true);
          record = next;
          steps += 1;
        }
        expect(record.version).toBe(1 + steps);
        expect(record.endedAt !== null).toBe(isDead(record.state));
      }),
    );
  });
});
