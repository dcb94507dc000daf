import { describe, expect, test } from 'vitest';
import { linesOf, message, rollout, write } from './rollout-files.fixture.ts';

describe('OpenAI messages', () => {
  test('text and call are one message, the block that repeats the call is not in the text, reasoning stays out', async () => {
    const [line] = await linesOf(write([rollout(0)], 'openai'));
    expect(line.messages).toEqual([
      { role: 'system', content: 'You play.' },
      { role: 'user', content: 'Who was it?' },
      {
        role: 'assistant',
        content: 'I accuse.',
        tool_calls: [{ id: 'c1', type: 'function', function: { name: 'accuse', arguments: '{"name": "Eve"}' } }],
      },
      { role: 'tool', content: 'noted', tool_call_id: 'c1' },
    ]);
    expect(Object.keys(line)).toEqual(['messages', 'metadata']);
    expect(Object.values(line.metadata).every((value) => typeof value === 'string')).toBe(true);
    expect(Object.keys(line.metadata).length).toBeLessThanOrEqual(16);
  });

  test('repeated ids become unique, every call but those at the end has an answer, a result without call is told by the user', async () => {
    const call = (index: number, id: string | null) => message(index, 'tool_call', '{}', { name: 'look', call_id: id });
    const result = (index: number, id: string | null, text: string) => message(index, 'tool_result', text, { call_id: id });
    const messages = [
      call(0, 'x'),
      call(1, 'x'),
      result(2, 'x', 'first'),
      result(3, 'x', 'second'),
      call(4, 'x'),
      message(5, 'user_message', 'go on'),
      result(6, 'gone', 'lost'),
      call(7, null),
      result(8, null, 'anonymous'),
      call(9, 'end'),
    ];
    const [line] = await linesOf(write([rollout(0, { messages })], 'openai'));
    const shape = line.messages.map((turn: any) => [
      turn.role,
      turn.tool_calls?.map(({ id }: any) => id) ?? turn.tool_call_id ?? turn.content,
      turn.content,
    ]);
    expect(shape).toEqual([
      ['assistant', ['x', 'x-2'], null],
      ['tool', 'x', 'first'],
      ['tool', 'x-2', 'second'],
      ['assistant', ['x-3'], null],
      ['tool', 'x-3', ''],
      ['user', 'go on', 'go on'],
      ['user', 'lost', 'lost'],
      ['assistant', ['call_8_0'], null],
      ['tool', 'call_8_0', 'anonymous'],
      ['assistant', ['end'], null],
    ]);
  });
});
