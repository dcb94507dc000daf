import { classOfFingerprint, fingerprintOfBigint, fingerprintToBigint, type JsonObject, type StopReason } from '@palestra/protocol';
import { expect, test } from 'vitest';
import type { MessageSkeleton } from '../events/message-skeleton.ts';
import { MESSAGE_FLAGS } from '../events/message-flags.ts';
import { type EndedRollout, failureCause, failurePoint, textOfError } from './failure-cause.ts';

const skeleton = (index: number, part: Partial<MessageSkeleton>): MessageSkeleton => ({
  index,
  type: 'tool_call',
  name: null,
  callId: null,
  reward: null,
  isFinished: false,
  flags: 0,
  bytes: 1,
  sentAt: 0,
  ...part,
});
/** A call and its result for each entry; the result has the index 2k + 1. `!` marks an error. */
const calls = (...tools: string[]): MessageSkeleton[] =>
  tools.flatMap((tool, at) => {
    const [name, callId] = [tool.replace('!', ''), `c${at}`];
    const flags = tool.endsWith('!') ? MESSAGE_FLAGS.error : 0;
    return [skeleton(2 * at, { name, callId }), skeleton(2 * at + 1, { type: 'tool_result', callId, flags })];
  });
const rollout = (part: Partial<EndedRollout>): EndedRollout => ({
  stop: 'finished',
  failureClass: null,
  rolloutInfo: {},
  start: null,
  messages: [],
  ...part,
});
const cause = (part: Partial<EndedRollout>, content: string | null = null, metadata: JsonObject | null = null) => {
  const point = failurePoint(rollout(part));
  return point === null ? null : failureCause(point, point.error === null ? null : { content, metadata });
};

test('the last error that was not recovered is the cause, whatever the stop reason and the last tool', () => {
  const text = `unexpected argument 'culprit'`;
  const expected = { class: 'policy', kind: 'call', tool: 'accuse', error: text, index: 3 };
  const same = (['finished', 'max_turns', 'no_tool_call', 'unknown'] as StopReason[]).flatMap((stop) => [
    cause({ stop, messages: calls('ask', 'accuse!') }, text)!,
    cause({ stop, messages: calls('ask', 'accuse!', 'search') }, text)!,
  ]);
  for (const one of same) expect(one).toMatchObject(expected);
  expect(new Set(same.map(({ fingerprint }) => fingerprint)).size).toBe(1);
});

test('an error is recovered by a later call of the same tool that succeeds', () => {
  expect(cause({ messages: calls('accuse!', 'accuse') })).toBeNull();
  expect(cause({ messages: calls('accuse!', 'ask!', 'accuse') }, 'x')).toMatchObject({ tool: 'ask', index: 3 });
  expect(cause({ stop: 'max_turns', messages: calls('accuse!', 'accuse') })).toMatchObject({
    kind: 'stop',
    error: 'max_turns',
    class: 'policy',
    index: 3,
  });
});

test('a call that could not be parsed is recovered by any later call', () => {
  const parse = skeleton(0, { type: 'user_message', flags: MESSAGE_FLAGS.parseError });
  expect(cause({ messages: [parse] }, 'Tool call parse error: Expecting value')).toMatchObject({
    kind: 'parse',
    tool: null,
    class: 'policy',
  });
  expect(cause({ messages: [parse, skeleton(1, { name: 'ask' })] })).toBeNull();
});

test('no error and no limit is no failure', () => {
  for (const stop of ['finished', 'unknown'] as const) expect(cause({ stop, messages: calls('ask') })).toBeNull();
});

test('an interrupted rollout: the failing call, else what the trainer reported, else the stop reason', () => {
  const messages = calls('ask', 'search!');
  expect(cause({ stop: 'infra_error', messages }, '502 Bad Gateway')).toMatchObject({
    class: 'infrastructure',
    tool: 'search',
    error: '502 Bad Gateway',
    index: 3,
  });
  const rolloutInfo = { error: 'session_lost: The backend of session 77 died' };
  // The policy's wrong call is not why the session was lost.
  expect(cause({ stop: 'infra_error', messages, rolloutInfo }, `unexpected argument 'x'`)).toMatchObject({
    kind: 'reported',
    tool: null,
    error: 'session_lost: The backend of session <n> died',
    index: 3,
  });
  expect(cause({ stop: 'env_error', messages: calls('ask'), rolloutInfo: { error: { code: 500, message: 'boom' } } })).toMatchObject({
    class: 'environment',
    error: '500: boom',
    index: 1,
  });
  const start = { metadata: { error: 'worker 3 was preempted' } };
  expect(cause({ stop: 'infra_error', start })).toMatchObject({ kind: 'reported', error: 'worker <n> was preempted' });
  expect(cause({ stop: 'infra_error', start, rolloutInfo })).toMatchObject({ error: 'session_lost: The backend of session <n> died' });
  expect(cause({ stop: 'timeout', messages: calls('ask', 'search').slice(0, 3) })).toMatchObject({
    kind: 'stop',
    tool: 'search',
    error: 'timeout',
  });
  expect(cause({ stop: 'finished', failureClass: 'environment' })).toMatchObject({ class: 'environment', kind: 'stop', index: null });
});

test.each([
  ['environment', 'accuse', 'Traceback (most recent call last):\n  File "a.py", line 1\nKeyError: 3', null],
  ['policy', 'accuse', 'Traceback (most recent call last):\nTypeError: f() got an unexpected keyword argument "x"', null],
  ['policy', 'bash', 'Traceback (most recent call last):\nKeyError: 3', null],
  ['infrastructure', 'search', '503 Service Unavailable', null],
  ['infrastructure', 'bash', 'connect ECONNREFUSED 10.0.0.1:80', null],
  ['policy', 'search', 'no such suspect', null],
  ['environment', 'search', 'no such suspect', { failure_class: 'environment' }],
  ['policy', 'foo', `'foo' is not a valid tool`, null],
] as const)('class %s of %s: %s', (expected, tool, content, metadata) => {
  expect(cause({ messages: calls(`${tool}!`) }, content, metadata)).toMatchObject({ class: expected });
});

test('the text of an error beside the content comes first', () => {
  expect(cause({ messages: calls('a!') }, 'page', { error: 'it went boom' })).toMatchObject({
    error: 'it went boom',
    text: 'it went boom',
  });
  expect(cause({ messages: calls('a!') }, 'page', { error: true })).toMatchObject({ error: 'page' });
});

test('fingerprints differ by class, tool and error, carry the class, and fit a bigint', () => {
  const all = [
    cause({ messages: calls('a!') }, 'x')!,
    cause({ messages: calls('b!') }, 'x')!,
    cause({ messages: calls('a!') }, 'y')!,
    cause({ messages: calls('a!') }, 'x', { failure_class: 'environment' })!,
    cause({ messages: calls('a!') }, 'max_turns')!,
    cause({ stop: 'max_turns' })!,
  ];
  expect(new Set(all.map(({ fingerprint }) => fingerprint)).size).toBe(all.length);
  for (const one of all) {
    expect(one.fingerprint).toMatch(/^[0-9a-f]{16}$/);
    expect(fingerprintOfBigint(fingerprintToBigint(one.fingerprint))).toBe(one.fingerprint);
    expect(classOfFingerprint(one.fingerprint)).toBe(one.class);
    expect(BigInt(fingerprintToBigint(one.fingerprint))).toBeGreaterThanOrEqual(-(2n ** 63n));
    expect(BigInt(fingerprintToBigint(one.fingerprint))).toBeLessThan(2n ** 63n);
  }
});

test('prefers the content to a code of one word beside it', () => {
  const content = "unexpected argument 'culprit'";
  expect(textOfError({ content, metadata: { error: 'input_validation' } })).toBe(content);
  expect(textOfError({ content: ' ', metadata: { error: 'input_validation' } })).toBe('input_validation');
  expect(textOfError({ content, metadata: { error: 'no such suspect' } })).toBe('no such suspect');
});
