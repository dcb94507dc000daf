import { describe, expect, it } from 'vitest';
import type { JsonObject, RolloutMessageEvent } from '@palestra/protocol';
import { eventsOfTrace, OtlpShapeError, readTraces } from './otlp.ts';

const TRACE = '5b8efff798038103d269b633813fc60c';
const T0 = 1_770_000_000_000;

const valueOf = (value: unknown): object => {
  if (typeof value === 'string') return { stringValue: value };
  if (typeof value === 'boolean') return { boolValue: value };
  if (typeof value === 'number') return Number.isInteger(value) ? { intValue: String(value) } : { doubleValue: value };
  if (Array.isArray(value)) return { arrayValue: { values: value.map(valueOf) } };
  return { kvlistValue: { values: attributes(value as JsonObject) } };
};
const attributes = (object: JsonObject) => Object.entries(object).map(([key, value]) => ({ key, value: valueOf(value) }));
const nano = (ms: number) => String(BigInt(T0 + ms) * 1_000_000n);
let spanCount = 0;
const span = (from: number, to: number, values: JsonObject, more: object = {}) => ({
  traceId: TRACE,
  spanId: (++spanCount).toString(16).padStart(16, '0'),
  parentSpanId: 'ffffffffffffffff',
  name: 'chat tiny',
  startTimeUnixNano: nano(from),
  endTimeUnixNano: nano(to),
  attributes: attributes(values),
  ...more,
});
const event = (name: string, values: JsonObject) => ({ name, timeUnixNano: nano(0), attributes: attributes(values) });
const request = (spans: unknown[], resource: JsonObject = { 'service.name': 'agent' }) => ({
  resourceSpans: [{ resource: { attributes: attributes(resource) }, scopeSpans: [{ spans }] }],
});
const messagesOf = (spans: object[], resource?: JsonObject) => {
  const { rollouts } = readTraces(request(spans, resource));
  expect(rollouts).toHaveLength(1);
  return eventsOfTrace(rollouts[0]!).filter((one) => one.eventType === 'message') as RolloutMessageEvent[];
};
const said = (messages: RolloutMessageEvent[]) =>
  messages.map(({ type, content, name, callId, timestamp }) => [type, content, name ?? callId ?? '', timestamp - T0]);

const CHAT = { 'gen_ai.operation.name': 'chat', 'gen_ai.request.model': 'tiny' };
const user = { role: 'user', parts: [{ type: 'text', content: 'What is 1 + 1?' }] };
const call = {
  role: 'assistant',
  parts: [
    { type: 'reasoning', content: 'Hm.' },
    { type: 'tool_call', id: 'c1', name: 'add', arguments: { x: 1 } },
  ],
  finish_reason: 'tool_call',
};
const result = { role: 'tool', parts: [{ type: 'tool_call_response', id: 'c1', response: '2' }] };
const answer = { role: 'assistant', parts: [{ type: 'text', content: 'It is 2.' }], finish_reason: 'stop' };
const text = JSON.stringify;

/** One conversation of two model calls and a tool, in the words of each convention. */
const forms: Record<string, object[]> = {
  'message attributes': [
    span(0, 10, {
      ...CHAT,
      'gen_ai.system_instructions': text([{ type: 'text', content: 'You add.' }]),
      'gen_ai.input.messages': text([user]),
      'gen_ai.output.messages': text([call]),
    }),
    span(11, 20, {
      'gen_ai.operation.name': 'execute_tool',
      'gen_ai.tool.name': 'add',
      'gen_ai.tool.call.id': 'c1',
      'gen_ai.tool.call.arguments': text({ x: 1 }),
      'gen_ai.tool.call.result': '2',
    }),
    span(21, 30, {
      ...CHAT,
      'gen_ai.system_instructions': text([{ type: 'text', content: 'You add.' }]),
      'gen_ai.input.messages': text([user, call, result]),
      'gen_ai.output.messages': text([answer]),
    }),
  ],
  'structured attributes': [
    span(0, 10, {
      ...CHAT,
      'gen_ai.system_instructions': [{ type: 'text', content: 'You add.' }],
      'gen_ai.input.messages': [user],
      'gen_ai.output.messages': [call],
    }),
    span(11, 20, {
      'gen_ai.operation.name': 'execute_tool',
      'gen_ai.tool.name': 'add',
      'gen_ai.tool.call.id': 'c1',
      'gen_ai.tool.call.result': '2',
    }),
    span(21, 30, { ...CHAT, 'gen_ai.input.messages': [user, call, result], 'gen_ai.output.messages': [answer] }),
  ],
  events: [
    span(0, 10, CHAT, {
      events: [
        event('gen_ai.system.message', { content: 'You add.' }),
        event('gen_ai.user.message', { 'gen_ai.event.content': text({ content: 'What is 1 + 1?' }) }),
        event('gen_ai.choice', {
          index: 0,
          finish_reason: 'tool_calls',
          message: text({
            reasoning_content: 'Hm.',
            tool_calls: [{ id: 'c1', type: 'function', function: { name: 'add', arguments: '{"x":1}' } }],
          }),
        }),
      ],
    }),
    span(11, 20, {
      'gen_ai.operation.name': 'execute_tool',
      'gen_ai.tool.name': 'add',
      'gen_ai.tool.call.id': 'c1',
      'gen_ai.tool.call.result': '2',
    }),
    span(21, 30, CHAT, {
      events: [
        event('gen_ai.user.message', { content: 'What is 1 + 1?' }),
        event('gen_ai.tool.message', { id: 'c1', content: '2' }),
        event('gen_ai.choice', { index: 0, message: text({ content: 'It is 2.' }) }),
      ],
    }),
  ],
  'flat attributes of agent-lightning': [
    span(0, 10, {
      'gen_ai.request.model': 'tiny',
      'gen_ai.prompt.0.role': 'system',
      'gen_ai.prompt.0.content': 'You add.',
      'gen_ai.prompt.1.role': 'user',
      'gen_ai.prompt.1.content': 'What is 1 + 1?',
      'gen_ai.completion.0.role': 'assistant',
      'gen_ai.completion.0.reasoning_content': 'Hm.',
      'gen_ai.completion.0.tool_calls.0.id': 'c1',
      'gen_ai.completion.0.tool_calls.0.name': 'add',
      'gen_ai.completion.0.tool_calls.0.arguments': '{"x":1}',
    }),
    span(11, 20, {
      'traceloop.span.kind': 'tool',
      'traceloop.entity.name': 'add',
      'gen_ai.tool.call.id': 'c1',
      'traceloop.entity.output': '2',
    }),
    span(21, 30, {
      'gen_ai.request.model': 'tiny',
      'gen_ai.prompt.0.role': 'user',
      'gen_ai.prompt.0.content': 'What is 1 + 1?',
      'gen_ai.prompt.1.role': 'tool',
      'gen_ai.prompt.1.content': '2',
      'gen_ai.prompt.1.tool_call_id': 'c1',
      'gen_ai.completion.0.content': 'It is 2.',
    }),
  ],
  OpenInference: [
    span(0, 10, {
      'openinference.span.kind': 'LLM',
      'llm.input_messages.0.message.role': 'system',
      'llm.input_messages.0.message.content': 'You add.',
      'llm.input_messages.1.message.role': 'user',
      'llm.input_messages.1.message.contents.0.message_content.type': 'text',
      'llm.input_messages.1.message.contents.0.message_content.text': 'What is 1 + 1?',
      'llm.output_messages.0.message.role': 'assistant',
      'llm.output_messages.0.message.reasoning_content': 'Hm.',
      'llm.output_messages.0.message.tool_calls.0.tool_call.id': 'c1',
      'llm.output_messages.0.message.tool_calls.0.tool_call.function.name': 'add',
      'llm.output_messages.0.message.tool_calls.0.tool_call.function.arguments': '{"x":1}',
    }),
    span(11, 20, { 'openinference.span.kind': 'TOOL', 'tool.name': 'add', 'tool_call.id': 'c1', 'output.value': '2' }),
    span(21, 30, {
      'openinference.span.kind': 'LLM',
      'llm.input_messages.0.message.role': 'user',
      'llm.input_messages.0.message.content': 'What is 1 + 1?',
      'llm.output_messages.0.message.content': 'It is 2.',
    }),
  ],
};

describe('a trace of GenAI spans', () => {
  it.each(Object.entries(forms))('in %s is one conversation, each message once and at its true time', (_name, spans) => {
    const messages = messagesOf(spans);
    expect(said(messages)).toEqual([
      ['system_message', 'You add.', '', 0],
      ['user_message', 'What is 1 + 1?', '', 0],
      ['reasoning', 'Hm.', '', 10],
      ['tool_call', '{"x":1}', 'add', 10],
      ['tool_result', '2', 'add', 20],
      ['assistant_message', 'It is 2.', '', 30],
    ]);
    expect(messages.map(({ index }) => index)).toEqual([0, 1, 2, 3, 4, 5]);
    // The spans' order in the request means nothing.
    expect(messagesOf(spans.toReversed())).toEqual(messages);
  });

  it('that comes in pieces, and pieces again, is stored once and in order', () => {
    const [first, tool, last] = forms['message attributes']!;
    const whole = messagesOf([first!, tool!, last!]);
    const stored: RolloutMessageEvent[] = [];
    for (const spans of [[first!], [tool!, first!], [last!], [first!, tool!, last!]]) {
      const [rollout] = readTraces(request(spans)).rollouts;
      const state = { maxIndex: stored.length - 1, eventIds: new Set(stored.map(({ eventId }) => eventId)) };
      stored.push(...(eventsOfTrace(rollout!, state).filter((one) => one.eventType === 'message') as RolloutMessageEvent[]));
    }
    expect(stored.map(({ eventId, index }) => [eventId, index])).toEqual(whole.map(({ eventId, index }) => [eventId, index]));
  });

  it('keeps the same sentence said twice as two', () => {
    const again = [user, { role: 'assistant', parts: [{ type: 'text', content: 'Sure.' }] }, user];
    const spans = [
      span(0, 10, { ...CHAT, 'gen_ai.input.messages': text([user]), 'gen_ai.output.messages': text([again[1]]) }),
      span(20, 30, { ...CHAT, 'gen_ai.input.messages': text(again), 'gen_ai.output.messages': text([again[1]]) }),
    ];
    expect(said(messagesOf(spans)).map(([type, , , at]) => [type, at])).toEqual([
      ['user_message', 0],
      ['assistant_message', 10],
      ['user_message', 20],
      ['assistant_message', 30],
    ]);
  });

  it('tells model, tokens and times; failed calls and tools; calls whose content was not recorded', () => {
    const messages = messagesOf([
      span(0, 10, { ...CHAT, 'gen_ai.usage.input_tokens': 5, 'gen_ai.usage.output_tokens': 2 }),
      span(11, 12, { 'gen_ai.operation.name': 'execute_tool', 'gen_ai.tool.name': 'bash' }, { status: { code: 2, message: 'no shell' } }),
      span(13, 14, CHAT, { status: { code: 'STATUS_CODE_ERROR' }, events: [event('exception', { 'exception.message': 'overloaded' })] }),
    ]);
    expect(messages).toMatchObject([
      {
        type: 'assistant_message',
        content: '',
        metadata: { content_not_captured: true, model: 'tiny', duration_ms: 10, tokens: { prompt: 5, output: 2 } },
      },
      { type: 'tool_call', name: 'bash', content: '{}' },
      { type: 'tool_result', content: 'no shell', metadata: { is_error: true, error: 'no shell' } },
      { type: 'assistant_message', metadata: { is_error: true, error: 'overloaded' } },
    ]);
    expect(messages[1]!.callId).toBe(messages[2]!.callId);
  });
});

describe('a span of a tool', () => {
  it.each([
    [
      'OpenInference, with the schema of the tool',
      {
        'openinference.span.kind': 'TOOL',
        'tool.name': 'add',
        'tool.parameters': text({ type: 'object', properties: { x: {} } }),
        'input.value': text({ x: 1 }),
        'output.value': 2,
      },
    ],
    [
      'OpenLLMetry around LangChain',
      {
        'gen_ai.operation.name': 'execute_tool',
        'gen_ai.tool.name': 'add',
        'gen_ai.tool.call.arguments': text({ input_str: "{'x': 1}", tags: [], inputs: { x: 1 }, kwargs: { color: 'green' } }),
        'gen_ai.tool.call.result': text({ output: 2, kwargs: { tags: [], color: 'green' } }),
      },
    ],
    [
      'Pydantic AI, format 2',
      { 'gen_ai.operation.name': 'execute_tool', 'gen_ai.tool.name': 'add', tool_arguments: text({ x: 1 }), tool_response: '2' },
    ],
  ])('of %s says what it was called with, and what came back', (_name, values: JsonObject) => {
    expect(said(messagesOf([span(0, 10, values)]))).toEqual([
      ['tool_call', '{"x":1}', 'add', 0],
      ['tool_result', '2', 'add', 10],
    ]);
  });

  it('without an id is the call that the model asked for, not one more', () => {
    const ask = (...ids: string[]) => ({
      role: 'assistant',
      parts: ids.map((id) => ({ type: 'tool_call', id, name: 'add', arguments: { x: 1 } })),
    });
    const tool = (from: number, value: string) =>
      span(from, from + 2, { 'openinference.span.kind': 'TOOL', 'tool.name': 'add', 'input.value': '{"x": 1}', 'output.value': value });
    const got = (id: string, response: string) => ({ role: 'tool', parts: [{ type: 'tool_call_response', id, response }] });
    const chat = (from: number, input: object[], output: object) =>
      span(from, from + 5, { ...CHAT, 'gen_ai.input.messages': text(input), 'gen_ai.output.messages': text([output]) });
    const history = [user, ask('c1'), got('c1', 'one'), ask('c2', 'c3'), got('c2', 'two'), got('c3', 'three')];
    const spans = [
      chat(0, [user], ask('c1')),
      tool(5, 'one'),
      chat(10, history.slice(0, 3), ask('c2', 'c3')),
      tool(16, 'two'),
      tool(17, 'three'),
      chat(20, history, answer),
    ];
    const calls = messagesOf(spans).filter(({ callId }) => callId !== undefined);
    expect(calls.map(({ type, callId, content, timestamp }) => [type, callId, content, timestamp - T0])).toEqual([
      ['tool_call', 'c1', '{"x":1}', 5],
      ['tool_result', 'c1', 'one', 7],
      ['tool_call', 'c2', '{"x":1}', 15],
      ['tool_call', 'c3', '{"x":1}', 15],
      ['tool_result', 'c2', 'two', 18],
      ['tool_result', 'c3', 'three', 19],
    ]);
    // What asked for it came in another request.
    expect(messagesOf(spans.slice(1, 3)).filter(({ type }) => type === 'tool_result')).toMatchObject([{ callId: 'c1', content: 'one' }]);
    // Arguments that no model asked for: a call of its own.
    expect(
      messagesOf([spans[0]!, span(6, 7, { 'openinference.span.kind': 'TOOL', 'tool.name': 'add', 'input.value': '{"x": 2}' })]),
    ).toHaveLength(3);
  });
});

describe('a rollout of traces', () => {
  const chat = (more: JsonObject = {}, place: object = {}) =>
    span(0, 10, { ...CHAT, 'gen_ai.input.messages': text([user]), 'gen_ai.output.messages': text([answer]), ...more }, place);

  it('has the run, the step and the task that the resource names', () => {
    const resource = {
      'palestra.run': 'nightly',
      'palestra.step': 7,
      'palestra.task_index': 3,
      'palestra.environment': 'acme/sums',
      'palestra.group_id': 'g',
      'service.name': 's',
    };
    const [rollout] = readTraces(request([chat()], resource)).rollouts;
    expect(rollout).toMatchObject({
      start: {
        runName: 'nightly',
        environment: 'acme/sums',
        run_info: { model_name: 'tiny' },
        metadata: { group_id: 'g', trace_id: TRACE },
      },
      update: { rollout_info: { current_step: 7, task_index: 3 } },
    });
    expect(readTraces(request([chat()])).rollouts[0]!.start.runName).toBe('agent');
    expect(readTraces(request([chat()], {})).rollouts[0]!.start.runName).toBe('otlp');
  });

  it('is a trace, a conversation, an attempt, or what palestra.rollout says', () => {
    const other = { traceId: TRACE.replace('5', '6') };
    const count = (values: JsonObject) => readTraces(request([chat(values), chat(values, other)])).rollouts.length;
    expect(count({})).toBe(2);
    expect(count({ 'gen_ai.conversation.id': 'c' })).toBe(1);
    expect(count({ 'agentlightning.rollout_id': 'r', 'agentlightning.attempt_id': 'a' })).toBe(1);
    const id = '11111111-1111-4111-8111-111111111111';
    expect(readTraces(request([chat({ 'palestra.rollout': id })])).rollouts[0]!.rolloutId).toBe(id);
  });

  it('is the same one for spans that come later and do not repeat its name', () => {
    const named = new Map();
    const root = span(0, 9_000, { 'palestra.reward': 1 }, { parentSpanId: '', name: 'episode' });
    const [calls] = readTraces(request([chat({ 'gen_ai.conversation.id': 'c' })]), named).rollouts;
    const [end] = readTraces(request([root]), named).rollouts;
    expect(end).toMatchObject({ rolloutId: calls!.rolloutId, messages: [{ reward: 1 }] });
    expect(readTraces(request([root])).rollouts[0]!.rolloutId).not.toBe(calls!.rolloutId);
  });

  it('stays the same one when only a later span names it, and has what that says of it', () => {
    const attributes = { 'palestra.rollout': 'r', 'palestra.group_id': 'g', 'palestra.reward': 1 };
    const root = span(0, 9_000, attributes, { parentSpanId: '', name: 'episode' });
    for (const values of [{}, { 'gen_ai.conversation.id': 'c' }]) {
      const named = new Map();
      const [calls] = readTraces(request([chat(values)]), named).rollouts;
      const [end] = readTraces(request([root]), named).rollouts;
      expect(end).toMatchObject({ rolloutId: calls!.rolloutId, messages: [{ reward: 1 }] });
      expect(end!.update).toMatchObject({ rollout_info: { rollout: 'r', group_id: 'g', duration_ms: 9_000 } });
    }
  });

  it('is what palestra.rollout says, also for later spans of its trace that name a conversation', () => {
    const named = new Map();
    const [first] = readTraces(request([chat({ 'palestra.rollout': 'r' })]), named).rollouts;
    expect(readTraces(request([chat({ 'gen_ai.conversation.id': 'c' })]), named).rollouts[0]!.rolloutId).toBe(first!.rolloutId);
  });

  it('is not decided by spans of which nothing is kept', () => {
    const named = new Map();
    readTraces(request([span(0, 1, { 'http.request.method': 'GET' })]), named);
    const [rollout] = readTraces(request([chat({ 'palestra.rollout': 'r' })]), named).rollouts;
    expect(rollout!.rolloutId).toBe(readTraces(request([chat({ 'palestra.rollout': 'r' })])).rollouts[0]!.rolloutId);
  });

  it('ends with its root span; one that failed does not, and is told so', () => {
    const root = { parentSpanId: '', name: 'episode' };
    expect(messagesOf([chat(), span(0, 40, {}, root)]).at(-1)).toMatchObject({ isFinished: true });
    expect(messagesOf([chat()]).at(-1)).toMatchObject({ isFinished: false });
    const [failed] = readTraces(request([chat(), span(0, 40, {}, { ...root, status: { code: 2, message: 'gone' } })])).rollouts;
    expect(failed).toMatchObject({
      ended: false,
      update: { rollout_info: { stop_reason: 'infra_error', error: 'gone', duration_ms: 40 } },
    });
  });

  it.each([
    [{ 'palestra.reward': 0 }, 0],
    [
      {
        'agentlightning.reward.0.name': 'a',
        'agentlightning.reward.0.value': 0.5,
        'agentlightning.reward.1.name': 'b',
        'agentlightning.reward.1.value': 1,
      },
      0.5,
    ],
  ])('has the reward of %j, on the message of its span or beside', (values: JsonObject, reward) => {
    expect(messagesOf([chat(values)]).at(-1)).toMatchObject({ type: 'assistant_message', reward });
    const beside = messagesOf([chat(), span(50, 50, values, { name: 'agentlightning.annotation' })]);
    expect(beside.map((message) => message.reward)).toEqual([undefined, undefined, reward]);
    expect(beside.at(-1)).toMatchObject({ type: 'system_message', timestamp: T0 + 50, metadata: { annotation: true } });
  });

  it('has the reward of its root span behind the answer, also when both end in one millisecond', () => {
    const root = span(-1, 10, { 'palestra.reward': 1 }, { parentSpanId: '', name: 'episode' });
    expect(messagesOf([chat(), root]).map(({ type, reward, isFinished }) => [type, reward, isFinished])).toEqual([
      ['user_message', undefined, false],
      ['assistant_message', undefined, false],
      ['system_message', 1, true],
    ]);
  });

  it('takes what an agent span says only without model calls', () => {
    const agent = {
      'gen_ai.operation.name': 'invoke_agent',
      'gen_ai.agent.name': 'adder',
      'gen_ai.input.messages': text([user]),
      'gen_ai.output.messages': text([{ ...answer, parts: [{ type: 'text', content: 'Summary.' }] }]),
    };
    expect(said(messagesOf([span(0, 40, agent)])).map(([, content]) => content)).toEqual(['What is 1 + 1?', 'Summary.']);
    expect(said(messagesOf([span(0, 40, agent), chat()])).map(([, content]) => content)).toEqual(['What is 1 + 1?', 'It is 2.']);
  });
});

describe('spans that say nothing', () => {
  it('are ignored, bad ones are told, and the rest is read', () => {
    const read = readTraces(
      request([
        span(0, 1, { 'http.request.method': 'GET' }),
        { ...span(0, 1, CHAT), traceId: 'short' },
        { ...span(0, 1, CHAT), spanId: '0000000000000000' },
        { ...span(0, 1, CHAT), startTimeUnixNano: 'yesterday' },
        'text',
        span(0, 1, CHAT),
      ]),
    );
    expect(read).toMatchObject({ ignored: 1, rollouts: [{ spans: 1 }] });
    expect(read.problems).toHaveLength(4);
  });

  it.each([[null], [[]], ['x'], [{ resourceSpans: {} }]])('%j is no request', (body) => {
    expect(() => readTraces(body)).toThrow(OtlpShapeError);
  });

  it('cannot ask for memory or prototypes by the names of their attributes', () => {
    const messages = messagesOf([
      span(0, 1, {
        'gen_ai.request.model': 'm',
        'gen_ai.prompt.999999999.content': 'far',
        'gen_ai.prompt.0.content': 'near',
        'gen_ai.prompt.0.__proto__.polluted': 'x',
      }),
    ]);
    expect(messages.at(-1)).toMatchObject({ type: 'assistant_message' });
    expect(({} as JsonObject).polluted).toBeUndefined();
  });
});
