import { describe, expect, it } from 'vitest';
import { missingIndexes } from '../events/gaps.ts';
import { rolloutState } from '../outcome/rollout-state.ts';
import { canonicalStop } from '../outcome/stop-reason.ts';
import { factsOfStart } from './start-facts.ts';

describe('factsOfStart', () => {
  it('reads a SkyRL name only when its prefix is the event’s own', () => {
    const event = {
      rolloutName: 'acme-my-math-train-17',
      environment: 'acme/my-math',
      split: 'train',
      metadata: { stop_reason: 'no_tool_call', num_turns: 3, total_reward: 0 },
    };
    expect(factsOfStart(event)).toMatchObject({ taskIndex: 17, step: null, stop: 'no_tool_call', turns: 3, reward: 0 });
    expect(factsOfStart({ ...event, split: 'test' })).toMatchObject({ taskIndex: null });
  });

  it('reads a tinker name and reported steps', () => {
    const event = { rolloutName: 'a-b-train-4-step12-r3', environment: 'a/b', split: 'train' };
    expect(factsOfStart(event)).toMatchObject({ taskIndex: 4, step: 12 });
    expect(factsOfStart({ ...event, metadata: { step: 9 } })).toMatchObject({ step: 9 });
  });

  it('knows no stop reason that nobody defined', () => {
    expect(canonicalStop('constructor')).toBeNull();
    expect(canonicalStop('length')).toBe('max_tokens');
  });
});

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

  it('names missing indexes', () => {
    expect(missingIndexes([])).toEqual([]);
    expect(missingIndexes([2, 3, 3, 6])).toEqual([0, 1, 4, 5]);
  });
});
