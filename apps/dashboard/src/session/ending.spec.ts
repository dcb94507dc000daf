import type { SessionView } from '@palestra/protocol';
import { describe, expect, test } from 'vitest';
import { endingOf } from './ending.ts';

const ended = (state: SessionView['state'], seenBeforeEndMs = 0): SessionView => {
  const endedAt = Date.parse('2026-01-01T12:00:00Z');
  return {
    state,
    ended_at: new Date(endedAt).toISOString(),
    last_seen_at: new Date(endedAt - seenBeforeEndMs).toISOString(),
    heartbeat_timeout_s: 900,
    idle_timeout_s: 86_400,
  } as SessionView;
};

describe('what went wrong with a session', () => {
  test('is nothing when it was closed', () => {
    expect(endingOf(ended('closed'))).toBeNull();
    expect(endingOf(ended('ready'))).toBeNull();
  });

  test('names the clock that ran out: of pings, or of requests', () => {
    expect(endingOf(ended('expired', 901_000))!.title).toBe('Its client went silent for 15 m');
    expect(endingOf(ended('expired', 5_000))!.title).toBe('Its client went silent for 24 h');
  });

  test('is said for every way to fail', () => {
    for (const state of ['failed', 'expired', 'lost', 'diverged'] as const) expect(endingOf(ended(state))?.meaning).toMatch(/\.$/);
  });
});
