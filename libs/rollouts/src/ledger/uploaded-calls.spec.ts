import { describe, expect, it } from 'vitest';
import { cpuTime } from '../../../../tests/support/cpu-time.ts';
import { canonicalArgsHash } from '../json/canonical-json.ts';
import { isInterruptedScore } from './interrupted-score.ts';
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
    const early = message(-1, 'tool_result', null, { reward: 9 });
    expect(uploadedCalls([early, first, second, ...results]).map(({ reward }) => reward)).toEqual([1, 2]);
  });

  it('pairs very many results without ids in a moment', () => {
    const calls = Array.from({ length: 50_000 }, (_, index) => message(index, 'tool_call', null));
    const results = calls.map(({ index }) => message(calls.length + index, 'tool_result', null, { reward: index }));
    const startedAt = cpuTime();
    expect(uploadedCalls([...calls, ...results]).map(({ reward }) => reward)).toEqual(calls.map(({ index }) => index));
    expect(cpuTime() - startedAt).toBeLessThan(5_000);
  });
});

describe('isInterruptedScore', () => {
  const call = (failureClass: string, { finished = false, reward = null as number | null } = {}): LedgerCall => {
    return { seq: 1, tool: 'look', argsHash: '', reward, finished, durationMs: 1, failureClass };
  };
  const lost = call('infrastructure');
  const half = call('ok', { reward: 0.5 });
  it.each([
    ['the last call was lost', null, [0, null], [call('ok'), lost], true],
    ['nothing was claimed at all', null, [], [lost], true],
    ['the tool raised', 0, [0], [call('environment')], false],
    ['an earlier call was lost', 0, [0], [lost, call('ok')], false],
    ['the episode had ended', 0, [0], [call('ok', { finished: true }), lost], false],
    ['a total is claimed that the session did not give', 0.5, [0], [lost], false],
    ['a call is claimed to have scored', 0, [0, -1], [call('ok'), lost], false],
    ['the session has no calls', 0, [], [], false],
    ['the rewards are those that it got before', 0.5, [0.5, 0], [half, lost], true],
    ['they are in single precision', Math.fround(0.1), [Math.fround(0.1)], [call('ok', { reward: 0.1 }), lost], true],
    ['the total is that of the session alone', 1, [0.5], [half, half, lost], true],
    ['the total is that of the upload alone', 0.5, [0.5], [half, half, lost], true],
    ['no reward of the session is claimed', 0, [0, 0], [half, lost], true],
    ['the total is more than it got', 0.75, [0.5, 0], [half, lost], false],
    ['the lost call is claimed to have scored', null, [0.5, 0.5], [half, lost], false],
    ['the tool raised after a reward', 0.5, [0.5], [half, call('environment')], false],
  ] as const)('when %s', (_case, reported, rewards, calls, answer) => {
    const claimed = rewards.map((reward, at) => ({ reward, recorded: calls[at]?.reward ?? null }));
    expect(isInterruptedScore({ reported, calls: claimed }, calls)).toBe(answer);
  });
});
