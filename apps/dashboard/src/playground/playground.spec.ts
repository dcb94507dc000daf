import type { SessionCallView, ToolSpec } from '@palestra/protocol';
import { describe, expect, test } from 'vitest';
import { curlOf, jsonlOf, pythonLiteral, pythonOf } from './call-snippets.ts';
import { actionToolOf, imagesIn, legalActions, legalLabel, notedImage, observationIn, withLegalAction } from './action-environment.ts';
import { blank } from './form/draft.ts';
import { argumentsOf } from './form/field.ts';
import { readDraft } from './form/read.ts';
import { imageIn } from './observed-image.ts';
import { filterCalls, NO_FILTER } from './log-filter.ts';
import { snippetsOf, urlsOf } from './quickstart.ts';

const toolOf = (name: string, schema: object | null = null): ToolSpec => ({ name, description: '', input_schema: schema as never });
const text = (value: string) => ({ type: 'text' as const, text: value, detail: null });
const call = (change: Partial<SessionCallView>): SessionCallView => ({
  task_id: 't1',
  seq: 1,
  kind: 'call',
  tool: 'guess',
  at_call: null,
  input: '{"n": 1.0}',
  input_bytes: 10,
  state: 'result',
  text: 'Higher.',
  blocks: [text('Higher.')],
  result_bytes: 10,
  code: null,
  ok: true,
  reason: null,
  reward: null,
  finished: false,
  failure_class: 'ok',
  started_at: '2026-01-01T00:00:00.000Z',
  ended_at: '2026-01-01T00:00:01.000Z',
  latency_ms: 1_000,
  undelivered: false,
  truncated: false,
  ...change,
});

describe('action environments', () => {
  test('have step as their only tool', () => {
    expect(actionToolOf({ tools: [toolOf('step')], terminal_tool: null } as never)?.name).toBe('step');
    expect(actionToolOf({ tools: [toolOf('step')] } as never)?.name).toBe('step');
    expect(actionToolOf({ tools: [toolOf('step'), toolOf('look')], terminal_tool: null } as never)).toBeNull();
    expect(actionToolOf({ tools: [toolOf('guess')], terminal_tool: null } as never)).toBeNull();
  });

  test('have observations of one text with a JSON object', () => {
    expect(observationIn([text('{"a":[1,2]}')])).toEqual({ a: [1, 2] });
    for (const blocks of [null, [], [text('[1]')], [text('hello')], [text('{}'), text('{}')]]) expect(observationIn(blocks)).toBeNull();
    const image = { data: 'AA==', mimeType: 'image/png', detail: null, type: 'image' as const };
    const pixels = [text('{"screen":"image 1: 160 x 210, RGB","lives":3}'), image];
    expect(observationIn(pixels)).toEqual({ screen: 'image 1: 160 x 210, RGB', lives: 3 });
    expect(['image 1: 160 x 210, RGB', 'image 1', 'image 2', 'image 1st', 3].map((value) => notedImage(value, imagesIn(pixels)))).toEqual([
      image,
      image,
      null,
      null,
      null,
    ]);
    // A frame of a game is longer than the limit for other JSON texts.
    expect(observationIn([text(JSON.stringify({ screen: Array.from({ length: 100_000 }, () => 127) }))])?.['screen']).toHaveLength(100_000);
  });

  const taken = (schema: object, legal: unknown): string | null => {
    const field = argumentsOf(schema as never);
    const draft = withLegalAction(field, blank(field), legal);
    return draft && readDraft(field, draft).json;
  };
  test.each<[string, object, unknown, string | null]>([
    ['the one member', { column: { type: 'integer' } }, 3, '{"column":3}'],
    ['the required one of two', { action_id: { type: 'integer' }, seed: { type: 'integer' } }, 3, '{"action_id":3}'],
    ['a text', { move: { type: 'string' } }, 'e2e4', '{"move":"e2e4"}'],
    ['a choice', { move: { enum: ['up', 'down'] } }, 'down', '{"move":"down"}'],
    ['no member of its type', { move: { type: 'string' } }, 3, null],
    ['an action itself', { move: { type: 'string' } }, { move: 'e2e4' }, '{"move":"e2e4"}'],
    ['an object that is no action', { move: { type: 'string' } }, { from: 'e2' }, null],
  ])('fill in a legal action: %s', (_, properties, legal, json) => {
    expect(taken({ type: 'object', properties, required: [Object.keys(properties)[0]] }, legal)).toBe(json);
  });

  test('prefer a member with a usual name of actions when several members fit', () => {
    const both = (names: string[]) => ({
      type: 'object',
      properties: Object.fromEntries(names.map((name) => [name, { type: 'integer' }])),
    });
    expect(taken(both(['depth', 'action_id']), 2)).toBe('{"action_id":2}');
    expect(taken(both(['depth', 'width']), 2)).toBeNull();
  });

  test('have no legal actions without a list of them', () => {
    expect(legalActions({ legal_actions: [0, 'a'] })).toEqual([0, 'a']);
    for (const seen of [null, {}, { legal_actions: null }, { legal_actions: 3 }]) expect(legalActions(seen)).toEqual([]);
    expect(legalLabel({ a: 1 })).toBe('{"a":1}');
    expect(legalLabel('x'.repeat(99))).toHaveLength(41);
  });
});

describe('images in observations', () => {
  const data = 'iVBORw0KGgoAAAANSUhEUgAAAAIAAAACCAAAAABX3VL4';
  test.each<[string, string, unknown, object]>([
    ['a data URL', 'screen', `data:image/png;base64,${data}`, {}],
    ['an object with a type', 'screen', { data, mime_type: 'image/png' }, {}],
    ['a type beside it', 'screen', data, { screen_mime_type: 'image/png' }],
    ['one type for all', 'screen', data, { mimeType: 'image/png' }],
  ])('%s', (_, name, value, beside) => {
    expect(imageIn(name, value, { [name]: value, ...beside })).toEqual({ data, mimeType: 'image/png' });
  });
  test('a value without a MIME type or without base64 is no image', () => {
    expect(imageIn('screen', data, { screen: data })).toBeNull();
    expect(imageIn('screen', 'a text about a picture, with commas and so on', { mime_type: 'image/png' })).toBeNull();
    expect(imageIn('n', 5, { mime_type: 'image/png' })).toBeNull();
    expect(imageIn('s', { data, mime_type: 'text/html' }, {})).toBeNull();
  });
});

describe('copied calls', () => {
  const session = { sid: 'sid-1', environment: 'acme/guess', task: { kind: 'index', split: 'train', index: 3 } };
  const origin = { url: 'http://host:8080', session };
  test('as JSONL keep the spelling of numbers in arguments', () => {
    const line = jsonlOf(call({ reward: 0 }), 7);
    expect(line).not.toContain('\n');
    expect(line).toContain('"arguments":{"n": 1.0}');
    expect(JSON.parse(line)).toMatchObject({
      n: 7,
      tool: 'guess',
      latency_ms: 1000,
      result: [text('Higher.')],
      reward: 0,
      finished: false,
    });
    expect(JSON.parse(jsonlOf(call({ input: '{"cut' }), 1))).toMatchObject({ arguments: '{"cut' });
  });
  test('as curl are quoted for a shell and have no key', () => {
    const command = curlOf(origin, call({ input: `{"n":"it's"}` }));
    expect(command).toContain(`'http://host:8080/call'`);
    expect(command).toContain('-H "X-API-Key: $OPENREWARD_API_KEY"');
    expect(command).toContain(`--data-raw '{"name":"guess","input":{"n":"it'\\''s"}}'`);
  });
  test('as Python use Python literals', () => {
    const program = pythonOf(origin, call({}));
    expect(program).toContain('environments.get("acme/guess")');
    expect(program).toContain('environment.session(split="train", index=3)');
    expect(program).toContain('session.call_tool("guess", {"n": 1.0})');
    expect(pythonLiteral('{"a":true,"b":[null,false],"c":"true \\u0041 \\"null\\"","d":1e400}')).toBe(
      '{"a":True,"b":[None,False],"c":"true A \\"null\\"","d":1e400}',
    );
  });
  test('keep their numbers when filtered', () => {
    const calls = [call({}), call({ tool: 'Look', reward: 0 }), call({ failure_class: 'policy', text: 'no such ROOM' })];
    const of = (change: object) => filterCalls(calls, { ...NO_FILTER, ...change }).map(({ n }) => n);
    expect(of({})).toEqual([1, 2, 3]);
    expect(of({ text: 'look' })).toEqual([2]);
    expect(of({ text: 'room' })).toEqual([3]);
    expect(of({ outcome: 'scored' })).toEqual([2]);
    expect(of({ outcome: 'failed' })).toEqual([3]);
    expect(of({ outcome: 'unscored' })).toEqual([1, 3]);
  });
});

describe('quick start', () => {
  const start = { origin: 'https://h.example:3000', owner: 'acme', name: 'my env', split: 'train', index: 2, key: 'or_a/b' };
  test('encodes keys and names in URLs', () => {
    const { userinfo, pathToken, mcp } = urlsOf(start);
    const url = new URL(userinfo);
    expect([url.username, decodeURIComponent(url.password), url.host, url.pathname, url.search]).toEqual([
      'key',
      'or_a/b',
      'h.example:3000',
      '/openenv/acme/my%20env',
      '',
    ]);
    expect(pathToken).toBe('https://h.example:3000/k/or_a%2Fb/openenv/acme/my%20env');
    expect(urlsOf(start).text).toBe('https://h.example:3000/v1/text-sessions');
    expect(mcp).toBe('https://h.example:3000/mcp/acme/my%20env?split=train&index=2');
  });
  test('calls a tool, or sends the action of an action environment', () => {
    const schema = { type: 'object', properties: { n: { type: 'integer', minimum: 5 } }, required: ['n'] };
    const tools = snippetsOf({ ...start, tools: [toolOf('guess', schema)] });
    expect(tools.map(({ id }) => id)).toEqual(['openreward', 'openenv', 'openenv-tools', 'mcp', 'text', 'typescript']);
    expect(tools[1]!.text).toContain('env.step({"type": "call_tool", "tool_name": "guess", "arguments": {"n": 5}})');
    const actions = snippetsOf({ ...start, tools: [toolOf('step', schema)] });
    expect(actions.map(({ id }) => id)).toEqual(['openreward', 'openenv', 'mcp', 'text', 'typescript']);
    expect(actions[1]!.text).toContain('env.step({"n": 5})');
    for (const { text: program } of [...tools, ...actions]) expect(program).not.toMatch(/undefined|\[object/);
    expect(JSON.parse(tools[3]!.text)).toMatchObject({ mcpServers: { 'my env': { headers: { Authorization: 'Bearer or_a/b' } } } });
  });
  test('makes no call for an environment without tools', () => {
    for (const { text: program } of snippetsOf({ ...start, tools: [] })) expect(program).not.toMatch(/call_tool\(|undefined/);
  });
});
