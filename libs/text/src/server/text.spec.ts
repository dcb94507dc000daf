import { describe, expect, test } from 'vitest';
import { parseJson, PalestraError, stringifyJson } from '@palestra/protocol';
import type { CallOutcome } from '@palestra/session';
import { actionToolOf, findAction, renderObservation, toAction } from '../wire/action.ts';
import { pythonSum } from './text-server.ts';
import { checkPythonJson, PythonJsonError, pythonInt, pythonRepr, pythonStrip } from '@palestra/kit/python';
import { parseToolCall } from '../wire/tool-call.ts';
import { playedTurn, readTurn, type TextConfig } from './turn.ts';
import { full } from '../../../../tests/support/full.ts';

const json = (text: string) => parseJson(text);
const problem = (work: () => unknown): string => {
  try {
    work();
  } catch (error) {
    return (error as Error).message;
  }
  return 'none';
};

/** A small deterministic generator, so that failures can be reproduced. */
function random(seed: number) {
  let state = seed;
  return (below: number): number => {
    state = (state * 1_664_525 + 1_013_904_223) % 4_294_967_296;
    return Math.floor((state / 4_294_967_296) * below);
  };
}
const PIECES = [
  '<tool_call>',
  '</tool_call>',
  '{"name": "a"',
  ', "arguments": {"x": 1.0}}',
  '{',
  '}',
  '[',
  '"',
  '\\u12',
  'NaN',
  '\n',
  '<action>',
  '</action>',
  '7',
  '\0',
  '😀',
  ',',
  ':',
  ' ',
];

describe('a tool call in a text', () => {
  test.each([
    ['no call here', null],
    ['<tool_call>{"name":"a","arguments":{"x":1}}</tool_call>', { type: 'call', name: 'a', arguments: { x: 1 } }],
    ['so <tool_call>\n{"name":"a"}', { type: 'call', name: 'a', arguments: {} }],
    ['<tool_call>{"name":"a"}</tool_call><tool_call>{"name":"b"}</tool_call>', { type: 'call', name: 'a', arguments: {} }],
    ['<tool_call>{"arguments":{}}</tool_call>', { type: 'malformed', error: "missing 'name' field" }],
    ['<tool_call>{"name":"a","arguments":[1]}</tool_call>', { type: 'malformed', error: 'arguments is not a dict: list' }],
    ['<tool_call>{"name":"a","arguments":null}</tool_call>', { type: 'malformed', error: 'arguments is not a dict: NoneType' }],
    ['<tool_call></tool_call>', { type: 'malformed', error: 'Expecting value: line 1 column 1 (char 0)' }],
    ['<tool_call>{"name": a}</tool_call>', { type: 'malformed', error: 'Expecting value: line 1 column 10 (char 9)' }],
    ['<tool_call>[1]</tool_call>', { type: 'malformed', error: "'list' object has no attribute 'get'" }],
    [
      '<tool_call>{"name":5}</tool_call>',
      { type: 'impossible', name: 5, arguments: {}, error: 'the name of a tool must be a string, not 5' },
    ],
    [
      '<tool_call>{"name":"a","arguments":{"x":NaN}}</tool_call>',
      { type: 'impossible', name: 'a', arguments: {}, error: 'Out of range float values are not JSON compliant' },
    ],
  ])('%s', (text, expected) => expect(parseToolCall(text)).toEqual(expected));

  test('keeps the spelling of numbers', () => {
    const call = parseToolCall('<tool_call>{"name":"a","arguments":{"x":1.0,"y":12345678901234567890}}');
    expect(stringifyJson(call)).toBe('{"type":"call","name":"a","arguments":{"x":1.0,"y":12345678901234567890}}');
  });

  test('parses any text, and a serialised call as itself', () => {
    const next = random(7);
    const seen = new Set<string>();
    for (let round = 0; round < 5_000; round += 1) {
      const noise = Array.from({ length: next(12) }, () => PIECES[next(PIECES.length)]).join('');
      seen.add(parseToolCall(noise)?.type ?? 'none');
      const call = {
        name: `t${next(9)}`,
        arguments: { [PIECES[next(PIECES.length)]!]: [noise.replaceAll('</tool_call>', ''), next(100) / 7, null] },
      };
      const before = noise.replaceAll('<tool_call>', '');
      const written = `${before}<tool_call>\n${JSON.stringify(call).replaceAll('</tool_call>', '')}\n</tool_call>${noise}`;
      expect(parseToolCall(written)).toMatchObject({ type: 'call', name: call.name });
    }
    expect(seen.size).toBeGreaterThanOrEqual(3);
  });

  test('accepts what JSON.parse accepts, and NaN and Infinity', () => {
    const next = random(11);
    const tokens = [
      '{',
      '}',
      '[',
      ']',
      ':',
      ',',
      '"a"',
      '"',
      '1',
      '-0',
      '1.5e3',
      '01',
      'true',
      'nul',
      ' ',
      '\\',
      '\t',
      '"\\u00e9"',
      '"\\x"',
    ];
    for (let round = 0; round < (full ? 20_000 : 6_000); round += 1) {
      const text = Array.from({ length: next(7) }, () => tokens[next(tokens.length)]).join('');
      const ours = problem(() => checkPythonJson(text)) === 'none';
      expect([text, ours]).toEqual([text, problem(() => JSON.parse(text)) === 'none']);
    }
  });

  test('reports a document that is too deep or too long', () => {
    expect(problem(() => checkPythonJson('['.repeat(100_000)))).toContain('maximum recursion depth exceeded');
    expect(problem(() => checkPythonJson('1'.repeat(5_000)))).toContain('value has 5000 digits');
    expect(() => checkPythonJson('\ufeff1')).toThrow(PythonJsonError);
  });
});

describe('an action in a text', () => {
  const tool = (properties: object, required?: string[], title?: string) =>
    actionToolOf([
      {
        name: 'step',
        description: '',
        input_schema: { type: 'object', properties, ...(required && { required }), ...(title && { title }) } as never,
      },
    ])!;
  const message = tool({ message: { type: 'string' }, tone: { type: 'string' } }, ['message']);
  const number = tool({ action_id: { type: 'integer' }, game: { type: 'string' } }, ['action_id']);

  test('is the last one on a single line', () => {
    expect(findAction('<action>a</action> <action>b</action> <action>c\n</action>')).toBe('b');
    expect(findAction('<action>a\rb\u2028c</action>')).toBe('a\rb\u2028c');
    expect(problem(() => findAction('none'))).toBe('No action found in action string: None');
    expect(problem(() => findAction('<action></action>'))).toBe('No action found in action string: ');
  });

  test('is converted to the type of the schema', () => {
    expect(toAction(message, '42')).toEqual({ message: '42' });
    expect(toAction(message, '{"message":"hi","tone":"low"}')).toEqual({ message: 'hi', tone: 'low' });
    // Python code that is valid JSON is still text.
    expect(toAction(message, '{"a":1}')).toEqual({ message: '{"a":1}' });
    const odd = '{"message":"hi","constructor":1}';
    expect(toAction(message, odd)).toEqual({ message: odd });
    expect(toAction(number, ' 1_0 ')).toEqual({ action_id: 10 });
    expect(problem(() => toAction(number, "it's"))).toBe(`invalid literal for int() with base 10: "it's"`);
    expect(stringifyJson(toAction(tool({ x: { anyOf: [{ type: 'number' }, { type: 'null' }] } }), '2'))).toBe('{"x":2.0}');
    expect(stringifyJson(toAction(tool({ actions: { type: 'array' } }, ['actions'], 'FinRLAction'), '(1, -2.5,)'))).toBe(
      '{"actions":[1,-2.5]}',
    );
    expect(problem(() => toAction(tool({ actions: { type: 'array' } }, ['actions'], 'FinRLAction'), '3'))).toBe(
      "'int' object is not iterable",
    );
    expect(problem(() => toAction(tool({ action_id: { type: 'integer' } }, undefined, 'AtariAction'), '-1'))).toBe(
      'Atari action must be numeric, got: -1',
    );
    expect(toAction(tool({ a: {}, b: {} }, ['a', 'b']), '{"a":1,"b":2}')).toEqual({ a: 1, b: 2 });
    expect(problem(() => toAction(tool({ a: {}, b: {} }, ['a', 'b']), 'x'))).toBe('Action must be a JSON object, got: x');
  });

  test('goes to the only tool', () => {
    const one = { name: 'guess', description: '', input_schema: { type: 'object', properties: { word: { type: 'string' } } } };
    expect(actionToolOf([one])).toMatchObject({ name: 'guess', observes: false });
    expect(actionToolOf([one, one])).toBeNull();
    expect(actionToolOf([{ ...one, input_schema: null }])).toBeNull();
  });

  test('prints observations as Python does', () => {
    const seen = json('{"done":false,"n":1.0,"big":1e22,"text":"it\'s","list":["a\'b",null,true,{"k":0.00001}],"none":null}') as never;
    expect(renderObservation(seen)).toBe(
      "done: False\nn: 1.0\nbig: 1e+22\ntext: it's\nlist: [\"a'b\", None, True, {'k': 1e-05}] (len=4)\nnone: None\n given this information, try again.",
    );
    const long = { list: Array.from({ length: 21 }, (_, index) => index) };
    expect(renderObservation(long)).toContain('18, 19] ... (len=21)');
    expect(pythonRepr({ a: [null, true, "it's", 1.5], b: 'x' })).toBe(`{'a': [None, True, "it's", 1.5], 'b': 'x'}`);
    expect(pythonRepr('\u00a0\n😀\u200b')).toBe("'\\xa0\\n😀\\u200b'");
    expect(pythonStrip('\u001c\u0085a\ufeff')).toBe('a\ufeff');
    expect(pythonInt('0'.repeat(3) + '7')).toBe('7');
  });
});

describe('a turn', () => {
  const calls: TextConfig = { parse: 'tool_call', maxTurns: 3, environment: 'acme/x', action: null };
  const actions: TextConfig = { ...calls, parse: 'action', action: { name: 'step', schema: { properties: { m: {} } }, observes: true } };
  const result = (output: object): CallOutcome => ({
    type: 'result',
    text: JSON.stringify({ ok: true, output }),
    ok: true,
    reason: null,
    reward: null,
    finished: false,
  });
  const output = { blocks: [{ type: 'text', text: '{"a":1}', detail: null }], metadata: null, reward: null, finished: false };

  test('ends the episode without a call; an invalid call ends it in the last turn only', () => {
    expect(readTurn(calls, 1, 'the answer is 4')).toMatchObject({
      played: { counted: false, step: { observations: [], done: true, metadata: { stop_reason: 'no_tool_call' } } },
    });
    expect(readTurn(calls, 2, '<tool_call>')).toMatchObject({ played: { counted: false, step: { done: false } } });
    expect(readTurn(calls, 3, '<tool_call>')).toMatchObject({ played: { step: { done: true } } });
  });

  test('keeps floats and gives 0.0 for a null reward', () => {
    const { step } = playedTurn(calls, 1, { tool: 'a', input: {} }, result(output));
    expect(stringifyJson(step)).toBe(
      '{"observations":[{"role":"user","content":"<tool_response>\\n{\\"a\\":1}\\n</tool_response>"}],"reward":0.0,"done":false,' +
        '"metadata":{"tool_name":"a","tool_args":{},"finished":false}}',
    );
  });

  test('throws on an infrastructure failure', () => {
    const refused = (code: 'session_lost' | 'invalid_body'): CallOutcome => ({ type: 'refused', code, status: 410, detail: 'gone' });
    expect(() => playedTurn(calls, 1, { tool: 'a', input: {} }, refused('session_lost'))).toThrow(PalestraError);
    expect(() => playedTurn(actions, 1, { tool: 'a', input: {} }, refused('session_lost'))).toThrow(PalestraError);
    expect(playedTurn(calls, 1, { tool: 'a', input: {} }, refused('invalid_body')).step.observations[0]?.content).toBe(
      '<tool_response>\nError: gone\n</tool_response>',
    );
  });

  test('gives -1 and the error for a failed action, and no observation in the last turn', () => {
    const failed: CallOutcome = { type: 'tool_failed', message: 'broke' };
    expect(playedTurn(actions, 1, { tool: 'step', input: {} }, failed).step).toMatchObject({
      observations: [{ role: 'user', content: 'broke' }],
      reward: -1,
      done: false,
      metadata: { failure_class: 'environment', observation: null },
    });
    const judge: CallOutcome = { type: 'tool_failed', message: 'Infrastructure failure: the judge does not respond' };
    expect(playedTurn(actions, 1, { tool: 'step', input: {} }, judge).step.metadata).toMatchObject({ failure_class: 'infrastructure' });
    expect(playedTurn(actions, 3, { tool: 'step', input: {} }, result(output)).step).toMatchObject({
      observations: [],
      done: true,
      metadata: {},
    });
    expect(playedTurn(actions, 1, { tool: 'step', input: {} }, result(output)).step.observations[0]?.content).toBe(
      'done: False\nreward: None\nmetadata: {}\na: 1\n given this information, try again.',
    );
  });

  test('sums rewards as Python does', () => {
    expect(stringifyJson([[], ['1', '2'], ['0.0'], ['1', '0.5', '0.5'], ['0.1', '0.1', '0.1']].map(pythonSum))).toBe(
      '[0,3,0.0,2.0,0.30000000000000004]',
    );
  });
});
