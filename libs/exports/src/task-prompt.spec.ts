import { createHash } from 'node:crypto';
import { parseJson, type MessageBlock, type ToolSpec } from '@palestra/protocol';
import { describe, expect, test } from 'vitest';
import { pythonJson } from './python-json.ts';
import { systemPrompt, taskMessages } from './task-prompt.ts';

const sha256 = (text: string) => createHash('sha256').update(text, 'utf8').digest('hex');

/** The six tools of the recorded environment, as its server sent them (recordings/skyrl-prepare-tasks.jsonl). */
const padded = (description: string, name: string): string =>
  `{"name":"${name}","description":"${description}","input_schema":{"properties":{"n":{"title":"N","type":"integer"},"lead":{"default":"","title":"Lead","type":"string"}},"required":["n"],"title":"N","type":"object"}}`;
const recordedTools = parseJson(
  `[${[
    padded('big output', 'big'),
    '{"name":"boom","description":"","input_schema":null}',
    '{"name":"secretz","description":"s","input_schema":null}',
    padded('slow', 'slow'),
    padded('spaces', 'spaces'),
    '{"name":"submit","description":"Submit an answer","input_schema":{"properties":{"answer":{"title":"Answer","type":"string"}},"required":["answer"],"title":"A","type":"object"}}',
  ].join(',')}]`,
) as ToolSpec[];

describe('prompts equal those of SkyRL’s script (docs/reference/skyrl.md#task-export)', () => {
  test('without tools', () => {
    expect(systemPrompt([])).toHaveLength(454);
    expect(sha256(systemPrompt([]))).toBe('15448ecf81f2ecc4f5f0fe733375157d6c7639f0bd8fb74a2007acb4441cef96');
  });

  test('one tool with a null schema and a non-ASCII description', () => {
    const text = systemPrompt([{ name: 'submit', input_schema: null, description: 'Répondre' }]);
    expect(text).toHaveLength(530);
    expect(sha256(text)).toBe('450f7a2287d924a6bde1e86b907c5f4c17dea9a6534b9673b1efca65f5eed023');
  });

  test('the six recorded tools', () => {
    const text = systemPrompt(recordedTools);
    expect(text).toHaveLength(1474);
    expect(sha256(text)).toBe('1d7fca7927a01d0600daf2958439e0e9bc318e5edcc67f5cdf8aece1bd60bd9f');
  });

  test.each([
    ['1+1', 'c6d45384a13eb955404efd24753148eaf3354c8d7eebbdb824cb9bf125ec87ca'],
    ['2+2', 'b3d206f7b342f97c30aec35558394bfa78ab148a11c5c6fba63cd254c070ba4e'],
  ])('the whole recorded prompt of the task %s', (task, hash) => {
    const prompt: MessageBlock[] = [{ type: 'text', text: task, detail: null }];
    const text = pythonJson(taskMessages(prompt, recordedTools));
    expect(text).toHaveLength(1766);
    expect(sha256(text)).toBe(hash);
  });

  test('text blocks are joined without a separator, images dropped', () => {
    const blocks: MessageBlock[] = [
      { type: 'text', text: 'a', detail: null },
      { type: 'image', data: '', mimeType: 'image/png', detail: null },
      { type: 'text', text: 'b', detail: null },
    ];
    expect(taskMessages(blocks, [])[1]).toEqual({ role: 'user', content: 'ab' });
  });
});

describe('Python-style JSON', () => {
  test.each([
    ['1', '1'],
    ['1.0', '1.0'],
    ['-0', '0'],
    ['-0.0', '-0.0'],
    ['0.1', '0.1'],
    ['1e3', '1000.0'],
    ['1e16', '1e+16'],
    ['123456789012345.5', '123456789012345.5'],
    ['1E-7', '1e-07'],
    ['0.0001', '0.0001'],
    ['0.00001', '1e-05'],
    ['1e400', 'Infinity'],
    ['1.5e300', '1.5e+300'],
    ['12345678901234567890', '12345678901234567890'],
    ['9007199254740993', '9007199254740993'],
    ['9007199254740993.0', '9007199254740992.0'],
  ])('number %s', (literal, expected) => {
    expect(pythonJson(parseJson(literal))).toBe(expected);
  });

  test('strings, separators and nesting', () => {
    expect(pythonJson({ a: [1, 'é', '\u007f', '😀', '\n\b"\\/'], b: {}, c: [], d: true, e: null })).toBe(
      String.raw`{"a": [1, "\u00e9", "\u007f", "\ud83d\ude00", "\n\b\"\\/"], "b": {}, "c": [], "d": true, "e": null}`,
    );
  });
});
