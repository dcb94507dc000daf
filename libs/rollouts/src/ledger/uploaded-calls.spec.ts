import { describe, expect, it } from 'vitest';
import { canonicalArgsHash } from '../json/canonical-json.ts';
import { isFalseZero } from './false-zero.ts';
import type { LedgerCall } from './ledger-alignment.ts';
import { type CallMessage, uploadedCalls } from './uploaded-calls.ts';

const message = (index: number, type: string, callId: string | null, more: Partial<CallMessage> = {}): CallMessage => {
  return { index, type, name: type === 'tool_call' ? 'look' : null, callId, content: null, reward: null, isFinished: false, ...more };
};

describe('uploadedCalls', () => {
  it('pairs results with the latest call of their id, in whatever order they came, and the first result stands', () => {
    const calls = uploadedCalls([
      message(4, 'tool_result', 'b', { reward: 2, isFinished: true }),
      message(5, 'tool_result', 'b', { reward: 9 }),
      message(1, 'tool_call', 'a', { content: '{"z":1.0}' }),
      message(2, 'tool_result', 'a', { reward: 1 }),
      message(3, 'tool_call', 'b'),
      message(6, 'tool_result', 'nobody', { reward: 3 }),
      message(7, 'tool_call', 'a'),
    ]);
    expect(calls.map(({ index, reward, finished, hasResult }) => [index, reward, finished, hasResult])).toEqual([
      [1, 1, false, true],
      [3, 2, true, true],
      [7, null, false, false],
    ]);
    expect(calls[0]!.argsHash).toBe(canonicalArgsHash('{"z":1}'));
  });

  it('pairs results without ids in order', () => {
    const [first, second] = [message(0, 'tool_call', null), message(1, 'tool_call', null)];
    const results = [message(2, 'tool_result', null, { reward: 1 }), message(3, 'tool_result', null, { reward: 2 })];
    expect(uploadedCalls([first, second, ...results]).map(({ reward }) => reward)).toEqual([1, 2]);
  });
});

describe('isFalseZero', () => {
  const call = (failureClass: string, finished = false): LedgerCall => {
    return { seq: 1, tool: 'look', argsHash: '', reward: null, finished, durationMs: 1, failureClass };
  };
  it.each([
    ['the last call was lost', null, [0, null], [call('ok'), call('infrastructure')], true],
    ['nothing was claimed at all', null, [], [call('infrastructure')], true],
    ['the tool raised', 0, [0], [call('environment')], false],
    ['an earlier call was lost', 0, [0], [call('infrastructure'), call('ok')], false],
    ['the episode had ended', 0, [0], [call('ok', true), call('infrastructure')], false],
    ['a total is claimed', 0.5, [0], [call('infrastructure')], false],
    ['a call is claimed to have scored', 0, [0, -1], [call('infrastructure')], false],
    ['the session has no calls', 0, [], [], false],
  ] as const)('when %s', (_case, reported, ofCalls, calls, answer) => {
    expect(isFalseZero({ reported, ofCalls }, calls)).toBe(answer);
  });
});
