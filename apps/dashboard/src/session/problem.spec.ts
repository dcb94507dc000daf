import type { SessionView } from '@palestra/protocol';
import { describe, expect, test } from 'vitest';
import { sessionProblem } from './problem.ts';

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

describe('sessionProblem', () => {
  test('is null for a closed and for a running session', () => {
    expect(sessionProblem(ended('closed'))).toBeNull();
    expect(sessionProblem(ended('ready'))).toBeNull();
  });

  test('names the timeout that expired: pings or requests', () => {
    expect(sessionProblem(ended('expired', 901_000))!.title).toBe('The session timed out: no ping for 15 m');
    expect(sessionProblem(ended('expired', 5_000))!.title).toBe('The session timed out: no request for 24 h');
  });

  test('has a meaning for every failed state', () => {
    for (const state of ['failed', 'expired', 'lost', 'diverged'] as const) expect(sessionProblem(ended(state))?.meaning).toMatch(/\.$/);
  });
});
