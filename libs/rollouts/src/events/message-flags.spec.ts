import type { JsonObject, MessageType } from '@palestra/protocol';
import { describe, expect, it } from 'vitest';
import { parseTolerant } from '../json/tolerant-json.ts';
import { readBatch } from './event-reader.ts';
import { MESSAGE_FLAGS, messageFlags } from './message-flags.ts';
import { cpuTime } from '../../../../tests/support/cpu-time.ts';

const flagsOf = (type: MessageType, content: string | null, metadata: JsonObject = {}, rest = {}) => {
  const bits = messageFlags({ type, content, metadata, ...rest });
  return (Object.keys(MESSAGE_FLAGS) as (keyof typeof MESSAGE_FLAGS)[]).filter((name) => (bits & MESSAGE_FLAGS[name]) !== 0);
};

describe('messageFlags', () => {
  it.each<[MessageType, JsonObject]>([
    ['assistant_message', { is_error: true }],
    ['assistant_message', { isError: true }],
    ['assistant_message', { error: true }],
    ['tool_result', { ok: false }],
    ['tool_result', { status: 'error' }],
    ['tool_result', { error: 'kaboom' }],
    ['tool_result', { error: { code: 1 } }],
    ['tool_result', { failure_class: 'policy' }],
  ])('sees an error: %s %j', (type, metadata) => {
    expect(flagsOf(type, 'x', metadata)).toEqual(['error']);
  });

  it.each<[MessageType, JsonObject]>([
    ['tool_result', { ok: true, status: 'ok', error: null, is_error: false, isError: 0, failure_class: 'ok' }],
    ['tool_result', { error: '' }],
    ['tool_result', { error: false }],
    ['assistant_message', { error: 'quoted' }],
  ])('sees none: %s %j', (type, metadata) => {
    expect(flagsOf(type, 'x', metadata)).toEqual([]);
  });

  it('knows the words of a call that raised, unless the result scored or ended', () => {
    expect(flagsOf('tool_result', 'Error: kaboom')).toEqual(['error']);
    expect(flagsOf('tool_result', 'Error: kaboom', {}, { reward: 0 })).toEqual([]);
    expect(flagsOf('tool_result', 'Error: kaboom', {}, { isFinished: true })).toEqual([]);
    expect(flagsOf('tool_result', 'No Error: here')).toEqual([]);
    expect(flagsOf('user_message', 'Error: kaboom')).toEqual([]);
  });

  it('knows nudges and parse errors', () => {
    expect(flagsOf('user_message', 'No tool call detected. Please use the provided tools to complete the task.')).toEqual(['nudge']);
    expect(flagsOf('user_message', 'No tool call detected. Why?')).toEqual([]);
    expect(flagsOf('user_message', 'Tool call parse error: bad JSON')).toEqual(['parseError']);
    expect(flagsOf('user_message', '<tool_response>\nError parsing tool call: x\n</tool_response>')).toEqual(['parseError']);
    expect(flagsOf('assistant_message', 'Tool call parse error: bad JSON')).toEqual([]);
  });

  it('finds images in content and metadata', () => {
    expect(flagsOf('user_message', 'look: data:image/png;base64,AAAA')).toEqual(['image']);
    expect(flagsOf('user_message', '[{"type": "image_url", "image_url": {}}]')).toEqual(['image']);
    expect(flagsOf('tool_result', '', { blocks: [{ deep: { type: 'image' } }] })).toEqual(['image']);
    expect(flagsOf('tool_result', '', { url: 'data:image/jpeg;base64,AA' })).toEqual(['image']);
    expect(flagsOf('user_message', 'the image/png type')).toEqual([]);
  });

  it('finds reasoning as an event and inside of text', () => {
    expect(flagsOf('reasoning', null)).toEqual(['reasoning']);
    expect(flagsOf('assistant_message', '<think>hm</think> 2')).toEqual(['reasoning']);
    expect(flagsOf('user_message', '<think>')).toEqual([]);
  });

  it.each([
    ['"reward": Infinity', ['nonfinite', 'nonfiniteReward']],
    ['"reward": NaN', ['nonfinite', 'nonfiniteReward']],
    ['"reward": -1e39', ['nonfinite', 'nonfiniteReward']],
    ['"reward": 3e38', []],
    ['"reward": 1, "metadata": {"loss": NaN}', ['nonfinite']],
    ['"metadata": {"loss": NaN}', ['nonfinite']],
    ['"reward": null', []],
  ])('tells a reward that is no number from other such numbers: %s', (members, names) => {
    const id = '2f0c2a52-6a0c-4a53-9d0c-5d3ef2a7f001';
    const text = `{"events":[{"eventType":"message","eventId":"${id}","rolloutEventId":"${id}","index":0,"type":"tool_result",${members}}]}`;
    const [event] = readBatch(parseTolerant(text)).events;
    expect(event).toMatchObject({ kind: 'message' });
    expect(event?.kind === 'message' && flagsOf(event.type, event.content, event.metadata, event)).toEqual(names);
  });

  it('stays linear on hostile text', () => {
    const startedAt = cpuTime();
    flagsOf('tool_result', '"type"        :        '.repeat(150_000));
    flagsOf('tool_result', 'data:image/'.repeat(300_000));
    expect(cpuTime() - startedAt).toBeLessThan(2_000);
  });
});
