import { type JsonObject, PalestraError, parseJson, stringifyJson } from '@palestra/protocol';
import { type Backend, type HostedEnvironment, defaultSessionPolicy } from '@palestra/session';
import { describe, expect, test } from 'vitest';
import { actionIssues, readToolAction } from './actions.ts';
import { readMessage } from '../wire/client-messages.ts';
import type { EpisodeContext } from './episode.port.ts';
import { OpenEnvError, toOpenEnvError } from '../wire/errors.ts';
import { EnvironmentInfo } from './environment-info.ts';
import { readRpc, type RpcError } from '../wire/json-rpc.ts';
import { NativeEpisode } from './native-episode.ts';
import { chatOf, promptOf } from './prompt.ts';
import { jsonErrorOf } from '@palestra/kit/python';
import { bodyOf, rewardText, frameOf, type Observed } from '../wire/client-replies.ts';
import { actionSchema } from '../wire/schemas.ts';
import { derivedSid, uuidOf } from './session-ids.ts';
import { chooseTask } from './task-choice.ts';
import { blocksObservation, toolResultOf, withMetadata } from './tool-result.ts';

describe("Python's error texts", () => {
  // Right: what `json.loads` of Python 3.11 says.
  test.each([
    ['', 'Expecting value: line 1 column 1 (char 0)'],
    ['{nope', 'Expecting property name enclosed in double quotes: line 1 column 2 (char 1)'],
    ['{"a" 1}', "Expecting ':' delimiter: line 1 column 6 (char 5)"],
    ['{"a": 1 "b"', "Expecting ',' delimiter: line 1 column 9 (char 8)"],
    ['[1, 2', "Expecting ',' delimiter: line 1 column 6 (char 5)"],
    ['{"a":\n  x}', 'Expecting value: line 2 column 3 (char 8)'],
    ['"open', 'Unterminated string starting at: line 1 column 1 (char 0)'],
    ['"a\\x"', 'Invalid \\escape: line 1 column 3 (char 2)'],
    ['{} {}', 'Extra data: line 1 column 4 (char 3)'],
    ['["\u{1f600}", x]', 'Expecting value: line 1 column 7 (char 6)'],
    ['nul', 'Expecting value: line 1 column 1 (char 0)'],
  ])('%j', (text, said) => {
    expect(jsonErrorOf(text)).toBe(said);
  });
});

describe('a frame', () => {
  test('keeps the spelling of numbers; a reset needs no data', () => {
    expect(readMessage('{"type":"reset"}')).toEqual({ type: 'reset', data: {} });
    const { data } = readMessage('{"type":"reset","data":{"seed":12345678901234567890}}') as { data: { seed: unknown } };
    expect(String(data.seed)).toBe('12345678901234567890');
    expect(() => readMessage('{"type":"step","data":{},"x":1}')).toThrow('Invalid message');
  });

  test('of a tool action refuses unknown and mistyped fields', () => {
    expect(readToolAction({ type: 'list_tools', metadata: {} })).toBe('list_tools');
    expect(readToolAction({ tool_name: 'a' })).toEqual({ tool: 'a', input: {} });
    for (const wrong of [{}, { type: 'list_tools', tool_name: 'a' }, { tool_name: 'a', x: 1 }, { tool_name: 'a', metadata: null }]) {
      expect(() => readToolAction(wrong)).toThrow(OpenEnvError);
    }
  });

  test('of an action is checked against the published schema', () => {
    const schema = {
      properties: { n: { type: 'integer' }, flag: { type: 'boolean', default: false }, list: { type: 'array' } },
      required: ['n', 'flag'],
    };
    const types = (action: object) => actionIssues(schema, action as Record<string, unknown>).map(({ type, loc }) => [type, ...loc]);
    expect(types({ n: 1 })).toEqual([]);
    expect(types({ n: '7', flag: 1, list: [] })).toEqual([]);
    expect(types({ n: 1.5, list: 'x', y: 0 })).toEqual([
      ['int_from_float', 'n'],
      ['list_type', 'list'],
      ['extra_forbidden', 'y'],
    ]);
    expect(types({ n: 'x' })).toEqual([['int_parsing', 'n']]);
    expect(types({})).toEqual([['missing', 'n']]);
  });

  // What pydantic writes for a union, for a class that refers to itself, and for one with `extra='allow'`.
  test.each([
    {
      anyOf: [
        { type: 'object', properties: { x: { type: 'integer' } } },
        { type: 'object', properties: { y: {} } },
      ],
    },
    { $defs: { Move: { type: 'object', properties: { x: { type: 'integer' } } } }, $ref: '#/$defs/Move' },
    { type: 'object', properties: {}, additionalProperties: true },
    { type: 'object', additionalProperties: { type: 'integer' } },
  ])('of a plain action may have fields that its schema has elsewhere: %j', (schema) => {
    const published = actionSchema('Maze', schema)['action'] as JsonObject;
    expect(actionIssues(published, { x: 1, metadata: {} })).toEqual([]);
    expect(published['additionalProperties']).not.toBe(false);
  });

  test('of an action refuses unknown fields if the schema lists all fields', () => {
    for (const schema of [{}, { anyOf: [{}], additionalProperties: false }]) {
      const published = actionSchema('Maze', schema)['action'] as JsonObject;
      expect(actionIssues(published, { x: 1 })).toMatchObject([{ type: 'extra_forbidden', loc: ['x'] }]);
    }
  });
});

describe('a reply', () => {
  const observed: Observed = { kind: 'observation', observation: '{}', reward: 'true', done: false, metadata: null };
  test('omits empty metadata on sockets and has null over HTTP; a reward of true is 1.0 over HTTP', () => {
    expect(frameOf(observed)).toBe('{"type":"observation","data":{"observation":{},"reward":true,"done":false}}');
    expect(bodyOf(observed)).toBe('{"observation":{},"reward":1.0,"done":false,"metadata":null}');
    expect(frameOf({ ...observed, metadata: '{"a":1}' })).toContain(',"metadata":{"a":1}}}');
    expect(bodyOf({ ...observed, reward: '-3' })).toContain('"reward":-3.0');
  });
  test('serialises rewards as floats or null', () => {
    expect([1, 0.25, -2, null, Number.NaN, Number.POSITIVE_INFINITY].map(rewardText)).toEqual([
      '1.0',
      '0.25',
      '-2.0',
      'null',
      'null',
      'null',
    ]);
  });
  test('puts metadata into every observation', () => {
    expect(withMetadata(null, '{}')).toBe('{"metadata":{}}');
    expect(withMetadata('{"k":1}', '{ "a": 1.0 }')).toBe('{"metadata":{"k":1},"a": 1.0 }');
    expect(blocksObservation([{ type: 'text', text: '{"a":1.0}' }] as never)).toBe('{"a":1.0}');
    expect(blocksObservation([{ type: 'text', text: 'words' }] as never)).toBe('{"text":"words"}');
  });

  const outcome = (blocks: object[], metadata: object | null = null) => ({
    type: 'result' as const,
    text: JSON.stringify({ ok: true, output: { blocks, metadata, reward: null, finished: false } }),
    ok: true,
    reason: null,
    reward: null,
    finished: false,
  });
  const text = (words: string) => ({ type: 'text', text: words, detail: null });
  test('of a tool has content, data and structured content', () => {
    const image = { type: 'image', data: 'aGk=', mimeType: 'image/png', detail: null };
    const result = (...args: Parameters<typeof outcome>) => JSON.parse(toolResultOf(outcome(...args)).result);
    expect(result([text('a"b')])).toMatchObject({ data: 'a"b', structured_content: { result: 'a"b' }, is_error: false });
    expect(result([])).toMatchObject({ content: [], data: null, structured_content: null });
    expect(result([text('a'), text('b')])).toMatchObject({ data: 'a\nb', structured_content: { result: 'a\nb' } });
    expect(result([text('a'), image]).content[1]).toEqual({
      type: 'image',
      data: 'aGk=',
      mimeType: 'image/png',
      annotations: null,
      meta: null,
    });
    expect(result([text('{"sum":3}')], { structured_content: { sum: 3 } })).toMatchObject({
      data: { sum: 3 },
      structured_content: { sum: 3 },
    });
    expect(toolResultOf(outcome([text('a')], { k: 1 })).metadata).toBe('{"k":1}');
  });
});

describe('a JSON-RPC request to an OpenEnv server', () => {
  test.each(['"result":{"data":1.0,"big":9007199254740993}', '"error":{"code":-32603,"message":"no","data":{"big":9007199254740993}}'])(
    'keeps the spelling of numbers in both directions: %s',
    async (said) => {
      const sent: string[] = [];
      const engine = {
        exchange: async (_caller: unknown, _sid: string, message: unknown) => {
          sent.push(stringifyJson(message));
          return `{"type":"mcp","data":{"jsonrpc":"2.0","id":1,${said}}}`;
        },
      };
      const episode = new NativeEpisode({ engine, caller: {} } as unknown as EpisodeContext);
      episode.resume('sid', true);
      const request = readRpc(parseJson('{"jsonrpc":"2.0","method":"tools/call","id":9007199254740993,"params":{"x":2.0}}'));
      const answer = await episode.rpc(request).catch((error: RpcError) => stringifyJson(error.data));
      expect(sent[0]).toContain('"params":{"x":2.0},"id":9007199254740993');
      expect(answer).toContain('"big":9007199254740993');
      if (said.startsWith('"result"')) expect(answer).toContain('"data":1.0');
    },
  );
});

describe('the task of a reset', () => {
  const hosted = (listable = true): HostedEnvironment => ({
    environmentId: 'e',
    versionId: 'v',
    owner: 'o',
    name: 'n',
    owned: false,
    policy: defaultSessionPolicy,
    backend: {
      splits: async () => [
        { name: 'test', type: 'test' },
        { name: 'easy', type: 'train' },
      ],
      numTasks: async (_env: unknown, split: string) => (split === 'empty' ? 0 : 4),
      tasks: async (_env: unknown, split: string) => {
        if (!listable) throw new PalestraError('tasks_not_listable');
        return [{ id: `${split}-0` }, { task_id: 7 }];
      },
      taskRange: async () => {
        throw new PalestraError('tasks_not_listable');
      },
    } as unknown as Backend,
  });
  const choose = async (data: Record<string, unknown>, listable = true) => {
    const { split, index, id, task } = await chooseTask(EnvironmentInfo.of(hosted(listable)), data);
    return task.kind === 'spec' ? task.spec : [split, index, id];
  };

  test.each([
    [{ split: 'test', index: 2 }, ['test', 2, null]],
    [{ index: '3' }, ['easy', 3, null]],
    [{ seed: 6 }, ['easy', 2, null]],
    [{ seed: -1, split: 'test' }, ['test', 3, null]],
    [{ seed: 6, index: 1 }, ['easy', 1, null]],
    [{ task_id: 'easy-0' }, ['easy', 0, 'easy-0']],
    [{ id: 7, split: 'test' }, ['test', 1, '7']],
    [{ task: { q: 1 } }, { q: 1 }],
  ])('%j', async (data, chosen) => {
    expect(await choose(data)).toEqual(chosen);
  });

  test('is a random task of the first training split without keywords', async () => {
    const seen = new Set<unknown>();
    for (let attempt = 0; attempt < 200; attempt += 1) seen.add(((await choose({ seed: 'abc' })) as unknown[])[1]);
    expect(seen).toEqual(new Set([0, 1, 2, 3]));
  });

  test('that does not exist is an error that leaves the socket open', async () => {
    await expect(choose({ task_id: 'x' })).rejects.toMatchObject({ code: 'EXECUTION_ERROR', ends: false });
    await expect(choose({ split: 'empty' })).rejects.toThrow("The split 'empty' has no tasks.");
    await expect(choose({ id: 'easy-0' }, false)).rejects.toThrow('There is no task');
  });
});

test('an infrastructure failure is an error; it ends the socket only if the session has ended', () => {
  const codes = (
    ['backend_timeout', 'internal_error', 'setup_failed', 'session_lost', 'session_expired', 'environment_failed'] as const
  ).map((code) => toOpenEnvError(new PalestraError(code), 'Env'));
  expect(codes.map(({ code, ends }) => [code, ends])).toEqual([
    ['EXECUTION_ERROR', false],
    ['EXECUTION_ERROR', false],
    ['EXECUTION_ERROR', false],
    ['SESSION_ERROR', true],
    ['SESSION_ERROR', true],
    ['FACTORY_ERROR', true],
  ]);
});

test('converts a conversation to the form of chat APIs', () => {
  const block = (text: string, detail: object | null = null) => ({ type: 'text' as const, text, detail: detail as null });
  expect(promptOf([block('a'), block('b')])).toEqual({ text: 'a\nb', isConversation: false });
  expect(promptOf([block('[system]', { role: 'system' })]).isConversation).toBe(true);
  const image = { type: 'image' as const, data: 'aGk=', mimeType: 'image/png', detail: null };
  const call = { type: 'tool_call' as const, id: 'c', name: 'look', input: { zoom: 2 }, detail: null };
  const result = { type: 'tool_result' as const, tool_call_id: 'c', blocks: [block('seen')], is_error: false, detail: null };
  expect(
    chatOf([
      { role: 'system', blocks: [block('Be brief.')], detail: null },
      { role: 'user', blocks: [block('What?'), image], detail: null },
      { role: 'assistant', blocks: [call], detail: null },
      { role: 'user', blocks: [result], detail: null },
    ]),
  ).toEqual([
    { role: 'system', content: 'Be brief.' },
    {
      role: 'user',
      content: [
        { type: 'text', text: 'What?' },
        { type: 'image_url', image_url: { url: 'data:image/png;base64,aGk=' } },
      ],
    },
    { role: 'assistant', content: '', tool_calls: [{ id: 'c', type: 'function', function: { name: 'look', arguments: '{"zoom":2}' } }] },
    { role: 'tool', tool_call_id: 'c', content: 'seen' },
  ]);
});

test('derives ids of later sessions from the first', () => {
  const id = crypto.randomUUID();
  expect(derivedSid(id, 0)).toBe(id);
  expect(derivedSid(id, 1)).toBe(derivedSid(id, 1));
  expect(new Set([0, 1, 2, 3].map((number) => derivedSid(id, number))).size).toBe(4);
  expect(uuidOf('x')).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
});
