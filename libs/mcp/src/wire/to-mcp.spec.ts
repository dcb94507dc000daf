import type { CallOutcome } from '@palestra/session';
import { expect, test } from 'vitest';
import { resultOf } from './to-mcp.ts';

test.each(['\\ud83d', '\ud83d'])('replaces a lone surrogate (%j)', (half) => {
  const output = `{"blocks":[{"text":"cut ${half}","detail":null,"type":"text"}],"metadata":{"k":"\\udc00"},"reward":1,"finished":false}`;
  const outcome: CallOutcome = {
    type: 'result',
    text: `{"ok":true,"output":${output}}`,
    ok: true,
    reason: null,
    reward: 1,
    finished: false,
  };
  const result = resultOf(outcome, null);
  expect(result).toMatchObject({ content: [{ text: 'cut \ufffd' }], _meta: { 'palestra/metadata': { k: '\ufffd' } } });
  expect(resultOf({ type: 'tool_failed', message: 'cut \ud83d' }, null)).toMatchObject({ content: [{ text: 'cut \ufffd' }] });
});

test('keeps surrogate pairs, escaped or not', () => {
  const text =
    '{"ok":true,"output":{"blocks":[{"text":"\\ud83d\\ude00 😀","detail":null,"type":"text"}],"metadata":null,"reward":null,"finished":false}}';
  expect(resultOf({ type: 'result', text, ok: true, reason: null, reward: null, finished: false }, null)).toMatchObject({
    content: [{ text: '😀 😀' }],
  });
});
