import { describe, expect, test } from 'vitest';
import type { StoredSession } from '../http/protocol.ts';
import { lastMessage, verdictOf } from './nemo-gym-verdict.ts';

const session = (more: Partial<StoredSession>): StoredSession => ({
  state: 'ready',
  isLive: true,
  totalReward: 0.75,
  failure: null,
  ...more,
});

describe('a verdict', () => {
  test('is the sum of the rewards, and 0 without any', () => {
    const valid = { mask_sample: false, failure_kind: null, failure_reason: null };
    expect(verdictOf(session({}))).toEqual({ reward: 0.75, ...valid });
    expect(verdictOf(session({ totalReward: null }))).toEqual({ reward: 0, ...valid });
  });

  test.each([
    ['infrastructure', 'session_lost', 'session_lost'],
    ['infrastructure', 'session_expired', 'session_expired'],
    ['infrastructure', 'backend_unreachable', 'transport_unreachable'],
    ['infrastructure', 'backend_timeout', 'transport_timeout'],
    ['infrastructure', 'limit_reached', 'provider_quota_exhausted'],
    ['environment', 'environment_failed', 'palestra:environment_failed'],
    ['infrastructure', 'internal_error', 'provider_unavailable'],
  ] as const)('a failure of the %s, %s, masks the sample as %s', (failureClass, code, kind) => {
    const verdict = verdictOf(session({ failure: { failureClass, code, detail: 'Why.' } }));
    expect(verdict).toEqual({ reward: 0, mask_sample: true, failure_kind: kind, failure_reason: `${code}: Why.` });
  });

  test('a tool that raised masks the sample', () => {
    const failure = { failureClass: 'environment', code: null, detail: 'division by zero' } as const;
    const expected = { mask_sample: true, failure_kind: 'palestra:environment_failed', failure_reason: 'division by zero' };
    expect(verdictOf(session({ failure }))).toMatchObject(expected);
  });

  test('a session that ended before masks the sample', () => {
    expect(verdictOf(session({ isLive: false, state: 'closed' }))).toMatchObject({ mask_sample: true, failure_kind: 'cancelled' });
  });
});

test('the last message of a response', () => {
  const text = (words: string) => ({ type: 'output_text', text: words });
  const message = { type: 'message', role: 'assistant', content: [text('a'), text('b')] };
  expect(lastMessage({ output: [{ type: 'reasoning' }, message] })).toBe('ab');
  for (const other of [null, {}, { output: [] }, { output: [message, { type: 'function_call' }] }, { output: 'x' }]) {
    expect(lastMessage(other)).toBeNull();
  }
});
