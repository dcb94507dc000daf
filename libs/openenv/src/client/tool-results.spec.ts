import { parseJson, type JsonObject } from '@palestra/protocol';
import { describe, expect, test } from 'vitest';
import { promptOfReset, resultOfObservation, resultOfReply, resultOfStep } from './tool-results.ts';
import { readReply } from '../wire/server-replies.ts';

const read = (text: string) => parseJson(text) as JsonObject;
const output = (data: string) => {
  const { text, ...rest } = resultOfStep(read(data));
  return { ...rest, ...(JSON.parse(text) as { output?: { blocks: object[]; metadata: object | null } }).output, text };
};
const text = (words: string) => ({ text: words, detail: null, type: 'text' });

describe('a step', () => {
  test('is its observation as JSON and keeps the spelling of numbers', () => {
    const step = output('{"observation":{"metadata":{},"price":1.0,"id":12345678901234567890,"nan":null},"reward":1.0,"done":true}');
    expect(step).toMatchObject({ ok: true, reward: 1, finished: true, metadata: null });
    expect(step.blocks).toEqual([text('{"price":1.0,"id":12345678901234567890,"nan":null}')]);
    expect(step.text).toContain('"reward":1.0');
  });

  test.each([
    ['0', 0],
    ['-0.1', -0.1],
    ['true', 1],
    ['false', 0],
    ['null', null],
    ['"much"', null],
    ['1e400', null],
    ['-1e400', null],
  ])('a reward of %s', (reward, expected) => {
    const step = output(`{"observation":{},"reward":${reward},"done":false}`);
    expect(step.reward).toBe(expected);
    expect(JSON.parse(step.text)).toMatchObject({ output: { reward: expected } });
  });

  test('takes metadata beside the observation first, then inside it', () => {
    expect(output('{"observation":{"metadata":{"a":1}},"metadata":{"a":2}}').metadata).toEqual({ a: 2 });
    expect(output('{"observation":{"metadata":{"a":1}}}').metadata).toEqual({ a: 1 });
    expect(output('{"observation":{"metadata":{}},"metadata":null}').metadata).toBeNull();
  });

  test('has the blocks of the tool', () => {
    const content = '[{"type":"text","text":"a"},{"type":"image","data":"AA==","mimeType":"image/gif"},{"type":"audio","data":"x"}]';
    const step = output(
      `{"observation":{"tool_name":"t","error":null,"result":{"content":${content},"structured_content":{"n":1}},"metadata":{"m":2}},"reward":0.5}`,
    );
    expect(step.blocks).toEqual([
      text('a'),
      { data: 'AA==', mimeType: 'image/gif', detail: null, type: 'image' },
      text('{"type":"audio","data":"x"}'),
    ]);
    expect(step).toMatchObject({ metadata: { m: 2, structured_content: { n: 1 } }, reward: 0.5 });
    expect(output('{"observation":{"tool_name":"t","result":"plain","error":null}}').blocks).toEqual([text('plain')]);
    expect(output('{"observation":{"tool_name":"t","result":{"n":1.0},"error":null}}').blocks).toEqual([text('{"n":1.0}')]);
  });

  test('has a tool error as a result and an invalid call as a refusal', () => {
    const failed = (type: string) =>
      `{"observation":{"tool_name":"t","result":null,"error":{"error_type":"${type}","message":"no"}},"reward":null}`;
    expect(output(failed('execution_error'))).toMatchObject({ ok: true, blocks: [text('no')] });
    expect(output(failed('timeout'))).toMatchObject({ ok: true });
    expect(output(failed('tool_not_found'))).toMatchObject({ ok: false, reason: 'not_found' });
    expect(output(failed('invalid_args'))).toMatchObject({ ok: false, reason: 'input_validation' });
  });
});

describe('a prompt', () => {
  const prompt = (data: string, tools: boolean) => promptOfReset(read(data), tools);
  test('of an action environment is the observation', () => {
    expect(prompt('{"observation":{"prompt":"Go","x":1,"metadata":{"a":1}},"reward":0}', false)).toEqual([text('{"prompt":"Go","x":1}')]);
  });
  test('of a tool environment is its question, if it has one', () => {
    expect(prompt('{"observation":{"question":"Why?"}}', true)).toEqual([text('Why?')]);
    expect(prompt('{"observation":{"metadata":{"instruction":"Do."}}}', true)).toEqual([text('Do.')]);
    expect(prompt('{"observation":{"prompt":" ","n":1,"metadata":{}}}', true)).toEqual([text('{"prompt":" ","n":1}')]);
    expect(prompt('{"observation":{"n":1,"metadata":{"a":1}}}', true)).toEqual([text('{"n":1,"metadata":{"a":1}}')]);
  });
});

describe('a reply in the ledger', () => {
  const result = (reply: string) => resultOfReply(readReply(reply));
  test('has an exception as a failure of the environment and a refused action as one of the policy', () => {
    expect(result('{"type":"error","data":{"message":"99","code":"EXECUTION_ERROR"}}')).toEqual({ failed: '99' });
    const errors = '[{"loc":["guess"],"msg":"Field required"}]';
    const refused = result(`{"type":"error","data":{"message":"Invalid message","code":"VALIDATION_ERROR","errors":${errors}}}`);
    expect(refused).toMatchObject({ ok: false, reason: 'input_validation', text: expect.stringContaining('guess: Field required') });
  });
  test('has no reward for a JSON-RPC call', () => {
    const called =
      '{"type":"mcp","data":{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"hi"}],"structured_content":null}}}';
    expect(result(called)).toMatchObject({ ok: true, reward: null, finished: false });
    const error = (code: number, message: string) => `{"type":"mcp","data":{"id":1,"error":{"code":${code},"message":"${message}"}}}`;
    expect(result(error(-32_603, "Unknown tool: 'x'"))).toMatchObject({ ok: false, reason: 'not_found' });
    expect(result(error(-32_602, "Missing 'name' in params"))).toMatchObject({ ok: false, reason: 'input_validation' });
    expect(result(error(-32_603, 'Error calling tool: kaboom'))).toMatchObject({ ok: true });
  });
  test.each(['[]', '"x"', '{"type":"observation"}', '{"type":"other","data":{}}', '{', '{"data":{}}'])('%s is invalid', (text_) => {
    expect(() => readReply(text_)).toThrow(/OpenEnv server/);
  });
});

describe('an observation that is passed on as text', () => {
  const frame = (data: string) => `{"type":"observation","data":${data}}`;

  test.each([
    '{"observation":{"metadata":{},"waited_seconds":0.0,"pid":26091,"step_count":0},"reward":0.0,"done":false}',
    '{"observation":{},"reward":null,"done":true}',
    '{"observation":{"a":[1,{"b":"}],\\"","c":[[]]},-0.0],"x":"\\\\"},"reward":-1.50,"done":false}',
    '{"observation":{"text":"a\\n\\"b\\" é [{,:","id":12345678901234567890},"reward":true,"done":true,"metadata":null}',
    '{"observation":{"reward":1,"kept":1e5,"done":true,"metadata":{"inner":1.0}},"reward":false,"done":false}',
    '{"observation":{"kept":1,"metadata":{"inner":1.0}},"reward":"much","done":false,"metadata":{"outer":"x"}}',
    '{"observation":{"metadata":{"inner":1}},"reward":1e400,"done":null,"metadata":{}}',
    '{"done":false,"reward":0.1,"observation":{"tool_name":7,"result":1}}',
  ])('says what reading it would: %s', (data) => {
    const cut = resultOfObservation(frame(data));
    expect(cut).not.toBeNull();
    expect(cut).toEqual(resultOfReply(readReply(frame(data))));
  });

  test.each([
    frame('{"observation":{"tool_name":"t","result":1},"reward":null,"done":false}'),
    frame('{"observation":{"a": 1},"reward":null,"done":false}'),
    frame('{"observation": {"a":1},"reward":null,"done":false}'),
    frame('{"observation":{"a":"\\u00e9"},"reward":null,"done":false}'),
    frame('{"observation":{"a":"\\/"},"reward":null,"done":false}'),
    frame('{"observation":{"a\\n":1},"reward":null,"done":false}'),
    frame('{"observation":{"a":NaN},"reward":null,"done":false}'),
    frame('{"observation":[1],"reward":null,"done":false}'),
    frame('{"reward":null,"done":false}'),
    '{"type":"state","data":{}}',
    '{"type":"error","data":{"message":"m","code":"EXECUTION_ERROR"}}',
    '{"type":"observation","data":{',
  ])('is left to be read: %s', (text) => {
    expect(resultOfObservation(text)).toBeNull();
  });
});
