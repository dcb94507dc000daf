import { ChatError } from '@palestra/kit/chat-completions';
import type { Message } from '@palestra/protocol';
import { describe, expect, test } from 'vitest';
import { isContextLength, readReply, toChat, toolMessages } from './model.ts';

const reply = (message: unknown, more: object = {}) =>
  readReply(JSON.stringify({ choices: [{ message, finish_reason: 'stop' }], ...more }), 3);
const calling = (...calls: unknown[]) => reply({ role: 'assistant', content: null, tool_calls: calls });

test.each([
  "This model's maximum context length is 4096 tokens",
  'Your input exceeds the context window of this model.',
  'prompt is too long: 210000 tokens > 200000 maximum',
  'The input token count (1100000) exceeds the maximum number of tokens allowed (1048576).',
])('the error of a full context is recognised: %s', (detail) => {
  expect(isContextLength(new ChatError('status 400', 400, false, detail))).toBe(true);
});

describe('a reply', () => {
  test('has text, reasoning and tokens', () => {
    const usage = { prompt_tokens: 12, completion_tokens: 3 };
    expect(reply({ role: 'assistant', content: 'Hello', reasoning_content: 'Hm.' }, { usage })).toEqual({
      text: 'Hello',
      reasoning: 'Hm.',
      calls: [],
      message: { role: 'assistant', content: 'Hello', reasoning_content: 'Hm.' },
      isCut: false,
      tokens: { prompt: 12, output: 3 },
    });
    expect(
      reply({
        content: [
          { type: 'text', text: 'a' },
          { type: 'text', text: 'b' },
        ],
      }).text,
    ).toBe('ab');
    expect(reply({ content: '' }, { usage: { prompt_tokens: -1, completion_tokens: '3' } }).tokens).toBeNull();
  });

  test('has calls with arguments that keep their numbers', () => {
    const [call] = calling({ id: 'a', function: { name: 'add', arguments: '{"n": 12345678901234567890}' } }).calls;
    expect(call).toMatchObject({ id: 'a', name: 'add', text: '{"n": 12345678901234567890}', problem: null });
    expect(calling({ id: 'a', function: { name: 'add', arguments: { n: 1 } } }).calls[0]).toMatchObject({
      arguments: { n: 1 },
      problem: null,
    });
    expect(calling({ id: 'a', function: { name: 'look', arguments: ' ' } }).calls[0]).toMatchObject({
      text: '{}',
      arguments: {},
      problem: null,
    });
  });

  test.each(['{"n": ', '[1]', '"n"', '3', `${'['.repeat(100_000)}`])('says why the arguments %.20s cannot be sent', (text) => {
    const { calls, message } = calling({ id: 'a', function: { name: 'add', arguments: text } });
    expect(calls[0]).toMatchObject({ text, arguments: {}, problem: expect.stringMatching(/./) });
    expect(message['tool_calls']).toEqual([{ id: 'a', type: 'function', function: { name: 'add', arguments: '{}' } }]);
  });

  test('gives a call its own id where the id of the server cannot be used', () => {
    const named = (id: unknown) => ({ id, function: { name: 'x', arguments: '' } });
    const ids = calling(named('a'), named('a'), named(7), named('b\n'), named('c'.repeat(65)), null, 'text').calls.map(({ id }) => id);
    expect(ids).toEqual(['a', 'call_3_1', 'call_3_2', 'call_3_3', 'call_3_4', 'call_3_5', 'call_3_6']);
    expect(calling(...Array.from({ length: 500 }, (_, id) => named(String(id)))).calls.length).toBe(100);
  });

  test.each(['', 'no JSON', '[]', '{}', '{"choices": []}', '{"choices": [{"message": "text"}]}', '{"choices": {"0": 1}}'])(
    '%j is no reply',
    (text) => {
      expect(() => readReply(text, 0)).toThrow(/^the reply (?:is not a JSON object|has no choices)/);
    },
  );
});

test('a conversation with images, calls and results is in the format of OpenAI', () => {
  const textBlock = (text: string) => ({ type: 'text' as const, text, detail: null });
  const image = { type: 'image' as const, data: 'AAAA', mimeType: 'image/png', detail: null };
  const url = { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } };
  const messages: Message[] = [
    { role: 'system', blocks: [textBlock('Be '), textBlock('brief.')], detail: null },
    { role: 'assistant', blocks: [{ type: 'tool_call', id: '1', name: 'look', input: { far: true }, detail: null }], detail: null },
    {
      role: 'user',
      blocks: [{ type: 'tool_result', tool_call_id: '1', blocks: [textBlock('A cat.')], is_error: false, detail: null }],
      detail: null,
    },
    { role: 'user', blocks: [textBlock('And this?'), image], detail: null },
  ];
  expect(toChat(messages)).toEqual([
    { role: 'system', content: 'Be brief.' },
    {
      role: 'assistant',
      content: null,
      tool_calls: [{ id: '1', type: 'function', function: { name: 'look', arguments: '{"far":true}' } }],
    },
    { role: 'tool', tool_call_id: '1', content: 'A cat.' },
    { role: 'user', content: [{ type: 'text', text: 'And this?' }, url] },
  ]);
  expect(toolMessages('2', [textBlock('Look:'), image])).toEqual([
    { role: 'tool', tool_call_id: '2', content: 'Look:' },
    { role: 'user', content: [url] },
  ]);
});
