import type { RolloutOutline } from '@palestra/protocol';
import { describe, expect, test } from 'vitest';
import { sideBySide } from './DiffPanel.tsx';
import { toolStats } from './side/ToolsTab.tsx';
import { openAiMessages, replayTest } from './snippets.ts';
import { textDiff } from './TextDiff.tsx';
import {
  buildTranscript,
  decisiveRow,
  markedRow,
  nextMarked,
  positionsOf,
  rowOfMessage,
  rowsByIndex,
  turnStarts,
  withDurations,
  withoutRepeatedCalls,
} from './transcript.ts';

type Line = [index: number, type: string, more?: { pair?: number; reward?: number; name?: string; error?: number }];

function outlineOf(lines: Line[], missing: [number, number][] = []): RolloutOutline {
  const types = [...new Set(lines.map(([, type]) => type))];
  const names = [...new Set(lines.flatMap(([, , more]) => more?.name ?? []))];
  return {
    total: lines.length,
    types,
    names,
    missing,
    index: lines.map(([index]) => index),
    type: lines.map(([, type]) => types.indexOf(type)),
    name: lines.map(([, , more]) => (more?.name === undefined ? null : names.indexOf(more.name))),
    reward: lines.map(([, , more]) => more?.reward ?? null),
    bytes: lines.map(() => 10),
    error: lines.map(([, , more]) => more?.error ?? 0),
    duration_ms: lines.map(() => null),
    pair: lines.map(([, , more]) => more?.pair ?? null),
  };
}

describe('buildTranscript', () => {
  test('joins calls with results, counts turns and finds the decisive row', () => {
    const outline = outlineOf([
      [0, 'user_message'],
      [1, 'tool_call', { pair: 2, name: 'look' }],
      [2, 'tool_result', { pair: 1, error: 1 }],
      [3, 'reasoning'],
      [4, 'tool_call', { pair: 5, name: 'accuse' }],
      [5, 'tool_result', { pair: 4, reward: 1 }],
    ]);
    const items = buildTranscript(outline);
    expect(items.map((item) => [item.kind, item.anchor, item.kind === 'gap' ? null : item.turn])).toEqual([
      ['message', 0, null],
      ['call', 1, 1],
      ['message', 3, 2],
      ['call', 4, 2],
    ]);
    expect(decisiveRow(outline, items)).toBe(3);
    expect(markedRow(outline, items, false)).toBe(3);
    // A gain does not decide a rollout that failed all the same.
    expect(markedRow(outline, items, true)).toBe(-1);
    expect(rowOfMessage(outline, items, 5)).toBe(3);
    expect([nextMarked(outline, items, -1, 1), nextMarked(outline, items, -1, 1, 0)]).toEqual([1, 0]);
    expect(rowsByIndex(outline, items).get(2)).toBe(1);
    expect(turnStarts(items)).toEqual([0, 1, 2]);
    expect(positionsOf(items, 1, 3)).toEqual([1, 5]);
    expect(toolStats({ outline, items }).map(({ name, calls, errors, reward }) => [name, calls, errors, reward])).toEqual([
      ['look', 1, 1, 0],
      ['accuse', 1, 0, 1],
    ]);
  });

  test('adds ledger durations that arrive after the outline was read', () => {
    const outline = outlineOf([
      [0, 'user_message'],
      [3, 'tool_call', { pair: 2, name: 'look' }],
      [4, 'tool_result', { pair: 1 }],
    ]);
    expect(withDurations(outline, [])).toBe(outline);
    expect(withDurations(outline, [{ index: 3, duration_ms: null }])).toBe(outline);
    const timed = withDurations(outline, [{ index: 3, duration_ms: 1_500 }]);
    expect(timed).toEqual({ ...outline, duration_ms: [null, 1_500, null] });
    expect(withDurations(timed, [{ index: 3, duration_ms: 1_500 }])).toBe(timed);
  });

  test('keeps results without a call, second results and parallel calls of one turn', () => {
    const outline = outlineOf([
      [0, 'tool_call', { pair: 2 }],
      [1, 'tool_call'],
      [2, 'tool_result', { pair: 0 }],
      [3, 'tool_result', { pair: 0 }],
      [4, 'tool_result'],
    ]);
    const rows = buildTranscript(outline).map((item) => (item.kind === 'call' ? [item.turn, item.call, item.result] : null));
    expect(rows).toEqual([
      [1, 0, 2],
      [1, 1, null],
      [1, null, 3],
      [1, null, 4],
    ]);
  });

  test('shows missing indexes as ranges at their position', () => {
    const items = buildTranscript(
      outlineOf(
        [
          [0, 'user_message'],
          [4, 'assistant_message'],
          [6, 'user_message'],
        ],
        [
          [1, 3],
          [5, 5],
        ],
      ),
    );
    expect(items.map((item) => (item.kind === 'gap' ? `${item.from}-${item.to}` : item.anchor))).toEqual([0, '1-3', 4, '5-5', 6]);
  });
});

test('withoutRepeatedCalls removes tool calls from assistant text', () => {
  expect(withoutRepeatedCalls('I look.\n<tool_call>{"name":"x"}</tool_call>')).toBe('I look.');
});

test('openAiMessages joins reasoning, text and calls of a turn into one message', () => {
  const message = (index: number, type: string, content: string, callId: string | null = null) =>
    ({ index, type, content, callId, name: callId && 'look', summary: null }) as never;
  expect(
    openAiMessages([
      message(0, 'user_message', 'go'),
      message(1, 'reasoning', 'hm'),
      message(2, 'assistant_message', 'I look'),
      message(3, 'tool_call', '{}', 'c'),
      message(4, 'tool_result', 'dark', 'c'),
      message(5, 'assistant_message', 'nothing'),
    ]),
  ).toEqual([
    { role: 'user', content: 'go' },
    {
      role: 'assistant',
      content: 'I look',
      reasoning_content: 'hm',
      tool_calls: [{ id: 'c', type: 'function', function: { name: 'look', arguments: '{}' } }],
    },
    { role: 'tool', tool_call_id: 'c', content: 'dark' },
    { role: 'assistant', content: 'nothing' },
  ]);
});

test('sideBySide pairs actions that differ and aligns equal actions', () => {
  const action = (tool: string) => ({ index: 0, kind: 'call' as const, tool, error: false, reward: null });
  const rows = [
    ['=', 'a'],
    ['-', 'b'],
    ['-', 'c'],
    ['+', 'x'],
    ['=', 'd'],
    ['+', 'y'],
  ].map(([mark, tool]) => ({
    a: mark === '+' ? null : action(tool!),
    b: mark === '-' ? null : action(tool!),
    same: mark === '=',
  }));
  expect(sideBySide(rows).map(({ a, b, same }) => [a?.tool ?? '', b?.tool ?? '', same])).toEqual([
    ['a', 'a', true],
    ['b', 'x', false],
    ['c', '', false],
    ['d', 'd', true],
    ['', 'y', false],
  ]);
});

test('textDiff compares texts by word and JSON by member, and takes bounded time for unrelated texts', () => {
  expect(textDiff('the red lamp', 'the blue lamp').map(({ text, side }) => [side, text])).toEqual([
    ['both', 'the '],
    ['a', 'red'],
    ['b', 'blue'],
    ['both', ' lamp'],
  ]);
  expect(
    textDiff('{"a":1,"b":2}', '{"a":1,"b":3}')
      .filter(({ side }) => side !== 'both')
      .map(({ text }) => text),
  ).toEqual(['2', '3']);
  expect(textDiff('ValueError: nobody', 'He saw her at nine.').map(({ side }) => side)).toEqual(['a', 'b']);
  const noise = (seed: number) => Array.from({ length: 7_000 }, (_, i) => `${(i * seed) % 9973}`).join('\n');
  // CPU time, because other processes may use the machine.
  const before = process.cpuUsage();
  textDiff(noise(7919), noise(6007));
  expect(process.cpuUsage(before).user / 1_000).toBeLessThan(3_000);
});

test('a replay test has the calls, their arguments as sent, and the rewards that were reported', () => {
  const message = (type: string, callId: string, more: object) => ({ type, callId, ...more });
  const text = replayTest('http://here', {
    id: 'r',
    environment: 'palestra/whodunit',
    split: 'train',
    task_index: 7,
    messages: [
      message('tool_call', 'a', { name: 'ask', content: '{"q":"say \\"hi\\"\\n"}' }),
      message('tool_result', 'a', { reward: 0.5 }),
      message('tool_call', 'b', { name: 'look', content: '{}' }),
      message('tool_result', 'b', { reward: null }),
    ],
  } as never);
  expect(text).toContain('environment.session(split="train", index=7)');
  expect(text).toContain(String.raw`("ask", "{\"q\":\"say \\\"hi\\\"\\n\"}", 0.5),`);
  expect(text).toContain('("look", "{}", None),');
  expect(text).not.toContain('does not name its task');
});
