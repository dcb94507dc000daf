import type { MessageType, RolloutMessageView } from '@palestra/protocol';
import { describe, expect, test } from 'vitest';
import { argumentsOf, buildTranscript, decisiveIndex, rowOfMessage, withoutRepeatedCalls } from './transcript.ts';

const message = (index: number, type: MessageType, more: Partial<RolloutMessageView> = {}): RolloutMessageView => ({
  eventId: `e${index}`,
  index,
  timestamp: 0,
  type,
  content: '',
  contentReference: null,
  summary: null,
  name: null,
  callId: null,
  reward: null,
  isFinished: false,
  metadata: {},
  ...more,
});

describe('buildTranscript', () => {
  test('joins calls with results by id, in index order, and counts turns', () => {
    const items = buildTranscript(
      [
        message(4, 'tool_result', { callId: 'b', reward: 1, isFinished: true }),
        message(0, 'user_message'),
        message(1, 'tool_call', { callId: 'a' }),
        message(2, 'tool_result', { callId: 'a' }),
        message(3, 'tool_call', { callId: 'b' }),
      ],
      [],
    );
    expect(items.map((item) => [item.kind, item.anchor, item.kind === 'call' ? item.turn : null])).toEqual([
      ['message', 0, null],
      ['call', 1, 1],
      ['call', 3, 2],
    ]);
    expect(decisiveIndex(items)).toBe(2);
    expect(rowOfMessage(items, 4)).toBe(2);
  });

  test('pairs repeated and absent ids in order, keeps orphans and parallel calls of one turn', () => {
    const items = buildTranscript(
      [
        message(0, 'tool_call', { callId: 'x' }),
        message(1, 'tool_call', { callId: 'x' }),
        message(2, 'tool_result', { callId: 'x', content: 'first' }),
        message(3, 'tool_result', { callId: 'x', content: 'second' }),
        message(4, 'tool_result', { callId: 'nobody', content: 'orphan' }),
      ],
      [],
    );
    expect(items.map((item) => (item.kind === 'call' ? [item.turn, item.call?.index, item.result?.content] : null))).toEqual([
      [1, 0, 'first'],
      [1, 1, 'second'],
      [1, undefined, 'orphan'],
    ]);
  });

  test('shows missing indexes as ranges in their place, also at the end', () => {
    const items = buildTranscript([message(0, 'user_message'), message(4, 'assistant_message')], [3, 1, 2, 6]);
    expect(items.map((item) => (item.kind === 'gap' ? `${item.from}-${item.to}` : item.anchor))).toEqual([0, '1-3', 4, '6-6']);
  });
});

test('arguments keep their order and survive a key called __proto__', () => {
  expect(argumentsOf(message(0, 'tool_call', { content: '{"b":"x","__proto__":1,"a":[1]}' }))).toEqual([
    ['b', 'x'],
    ['__proto__', '1'],
    ['a', '[1]'],
  ]);
  expect(argumentsOf(message(0, 'tool_call', { content: 'not json' }))).toBeNull();
});

test('repeated tool calls are taken out of assistant text', () => {
  expect(withoutRepeatedCalls('I look.\n<tool_call>{"name":"x"}</tool_call>')).toBe('I look.');
});
