import { describe, expect, it } from 'vitest';
import { rolloutState } from './rollout-state.ts';

describe('rolloutState', () => {
  it.each([
    [{ messages: 0, finished: false, lastEventAgeMs: 1 }, 'live'],
    [{ messages: 0, finished: false, lastEventAgeMs: 60_000 }, 'empty'],
    [{ messages: 3, finished: true, lastEventAgeMs: 1 }, 'complete'],
    [{ messages: 3, finished: false, lastEventAgeMs: 60_000 }, 'complete'],
    [{ messages: 3, finished: false, lastEventAgeMs: 700_000 }, 'stale'],
  ])('%j is %s', (rollout, state) => {
    expect(rolloutState(rollout)).toBe(state);
  });
});
