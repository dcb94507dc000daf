import type { JsonObject, MessageType } from '@palestra/protocol';
import { type ReadEvent, type ReadStart, readBatch } from './events/event-reader.ts';
import { type MessageSkeleton, skeletonOf } from './events/message-skeleton.ts';
import { md5Hex } from './json/hash.ts';
import { parseTolerant } from './json/tolerant-json.ts';
import type { RawRollout } from './normalise.ts';

/** Reads uploaded request bodies as the server does. Returns one `RawRollout` for each rollout, in the order of the first events. */
export function rawRollouts(bodies: readonly string[], receivedAt = 1_795_300_000_000): RawRollout[] {
  const events = bodies.flatMap((body) => readBatch(parseTolerant(body)).events);
  return [...new Set(events.map(({ rolloutId }) => rolloutId))].map((id) =>
    rawOf(
      id,
      events.filter(({ rolloutId }) => rolloutId === id),
      receivedAt,
    ),
  );
}

function rawOf(id: string, events: readonly ReadEvent[], receivedAt: number): RawRollout {
  const start = events.find((event): event is ReadStart => event.kind === 'start');
  const messages = events.filter((event) => event.kind === 'message').toSorted((a, b) => a.index - b.index);
  const updates = events.filter((event) => event.kind === 'update').toSorted((a, b) => a.sentAt - b.sentAt);
  const first = (type: MessageType) => messages.find((message) => message.type === type)?.content ?? '';
  return {
    id,
    start: start?.raw ?? null,
    rolloutInfo: Object.assign({}, ...updates.map(({ rolloutInfo }) => rolloutInfo)) as JsonObject,
    messages: messages.map((event) => skeletonOf(event, Buffer.byteLength((event.content ?? '') + (event.summary ?? '')))),
    prompt: first('system_message') + first('user_message') || null,
    startedAt: start?.sentAt ?? null,
    receivedAt,
    lastReceivedAt: receivedAt + 1_000,
    failureClass: null,
    nonfinite: start?.nonfinite === true,
  };
}

/** A message with default fields. */
export const message = (index: number, type: MessageType, rest: Partial<MessageSkeleton> = {}): MessageSkeleton => ({
  index,
  type,
  name: null,
  callId: null,
  reward: null,
  isFinished: false,
  flags: 0,
  bytes: 0,
  sentAt: 1_795_000_000_000 + index,
  ...rest,
});

/** A rollout with default fields. */
export const rollout = (
  start: JsonObject | null,
  messages: readonly MessageSkeleton[] = [],
  rest: Partial<RawRollout> = {},
): RawRollout => ({
  id: 'r',
  start,
  rolloutInfo: {},
  messages,
  prompt: null,
  startedAt: 1_795_000_000_000,
  receivedAt: 1_795_000_000_100,
  lastReceivedAt: 1_795_000_001_100,
  failureClass: null,
  ...rest,
});

/** A call and its result with SkyRL's ids. `turn` counts from 1 and includes turns that are not uploaded. */
export function skyrlCall(index: number, turn: number, tool: string, reward: number | null, isFinished = false): MessageSkeleton[] {
  const callId = md5Hex(`${turn}:${tool}`).slice(0, 12);
  return [
    message(index, 'assistant_message'),
    message(index + 1, 'tool_call', { name: tool, callId }),
    message(index + 2, 'tool_result', { callId, reward, isFinished }),
  ];
}

export const skyrlStart = (numTurns: number, stopReason = 'finished', totalReward = 0): JsonObject => ({
  runName: 'skyrl-openreward',
  rolloutName: 'acme-math-train-17',
  environment: 'acme/math',
  split: 'train',
  metadata: { stop_reason: stopReason, total_reward: totalReward, num_turns: numTurns },
});

interface Sent {
  type: MessageType;
  content?: string;
  name?: string;
  callId?: string;
  reward?: number;
  isFinished?: boolean;
  metadata?: JsonObject;
}

/** Upload bodies of the SDK: the start event, then one batch. `every`: milliseconds between messages. */
export function uploadBodies(number: number, start: JsonObject, messages: readonly Sent[], every = 0): string[] {
  const uuid = (at: number) => `00000000-0000-4000-8000-${(number * 1_000 + at).toString(16).padStart(12, '0')}`;
  const timestamp = 1_795_215_000_000;
  const batch = messages.map((sent, index) => ({
    eventId: uuid(index + 1),
    timestamp: timestamp + index * every,
    index,
    rolloutEventId: uuid(0),
    isFinished: false,
    metadata: {},
    ...sent,
    eventType: 'message',
  }));
  return [JSON.stringify({ events: [{ eventId: uuid(0), timestamp, ...start, eventType: 'rollout' }] }), JSON.stringify({ events: batch })];
}

const md5Id = (turn: number, tool: string) => md5Hex(`${turn}:${tool}`).slice(0, 12);

/** The other integrations (docs/reference/metrics.md#integrations), as their recipes upload. */
export const synthesised: Record<string, string[]> = {
  'slime-miles': uploadBodies(
    1,
    {
      runName: 'slime-training',
      rolloutName: 'acme-math-3f2a9c1b7d40-0a1b2c3d',
      environment: 'acme/math',
      split: 'train',
      task_spec: { q: '1+1', a: '2' },
      metadata: { stop_reason: 'reached_terminal_state', num_tool_calls: 2, reward_sum: 1.5 },
    },
    [
      { type: 'system_message', content: 'Use the tools.' },
      { type: 'user_message', content: '1+1' },
      { type: 'assistant_message', content: 'Looking.' },
      { type: 'tool_call', name: 'probe', callId: md5Id(0, 'probe'), content: '{}' },
      { type: 'tool_result', callId: md5Id(0, 'probe'), content: 'probed', reward: 0.5 },
      { type: 'assistant_message', content: 'Two.' },
      { type: 'tool_call', name: 'submit', callId: md5Id(1, 'submit'), content: '{"answer": "2"}' },
      { type: 'tool_result', callId: md5Id(1, 'submit'), content: 'ok', reward: 1, isFinished: true },
    ],
  ),
  tinker: uploadBodies(
    2,
    {
      runName: 'tinker-math',
      rolloutName: 'acme-math-train-4-step12-r3',
      environment: 'acme/math',
      split: 'train',
      metadata: {
        step: 12,
        rollout_idx: 3,
        stop: 'max_tokens',
        num_tool_calls: 1,
        num_failed_tool_calls: 1,
        called_answer: false,
      },
    },
    [
      { type: 'user_message', content: '1+1' },
      { type: 'reasoning', content: 'Hm.' },
      { type: 'tool_call', name: 'boom', callId: '5f0e4c9d2b7a4d1c9a3e8b6f7d2c1a0b', content: '{}' },
      { type: 'tool_result', callId: '5f0e4c9d2b7a4d1c9a3e8b6f7d2c1a0b', content: 'kaboom', metadata: { error: 'kaboom' } },
      { type: 'assistant_message', content: 'I give' },
    ],
  ),
  firehorse: uploadBodies(
    3,
    {
      runName: 'math-eval',
      rolloutName: 'claude-code_some-model_2',
      environment: 'acme/math',
      split: 'test',
      task_spec: { q: '2+2', a: '4' },
      run_info: { model_name: 'some-model', run_type: 'eval', framework: 'firehorse', framework_version: '0.3.1' },
      rollout_info: { task_index: 1, harness: 'claude-code', duration_ms: 41_000 },
      metadata: { model: 'some-model', agent: 'claude-code', effort: 'high' },
    },
    [
      { type: 'user_message', content: '2+2' },
      { type: 'assistant_message', content: 'Four.' },
      { type: 'tool_call', name: 'submit', callId: 'toolu_01', content: '{"answer":"4"}' },
      { type: 'tool_result', callId: 'toolu_01', content: 'ok', reward: 1, isFinished: true },
    ],
    9_000,
  ),
  'firehorse-subagent': uploadBodies(
    4,
    {
      runName: 'math-eval',
      rolloutName: 'trial_2_subagent_a1',
      environment: 'acme/math',
      split: 'test',
      run_info: { model_name: 'some-model', run_type: 'eval' },
      metadata: {
        model: 'some-model',
        agent: 'claude-code',
        parent_rollout: '00000000-0000-4000-8000-000000000bb8',
        parent_tool_use_id: 'toolu_00',
      },
    },
    [
      { type: 'user_message', content: 'Look it up.' },
      { type: 'assistant_message', content: 'Done.' },
    ],
  ),
  // A conversation logged with log_anthropic_message (docs/reference/metrics.md#stamped-rewards).
  'stamped-turn': uploadBodies(5, { runName: 'recipe', environment: 'acme/math', split: 'train' }, [
    { type: 'user_message', content: '1+1' },
    { type: 'tool_call', name: 'submit', callId: 'a', content: '{"answer":"2"}' },
    { type: 'tool_call', name: 'submit', callId: 'b', content: '{"answer":"2"}' },
    { type: 'tool_result', callId: 'a', content: 'ok', reward: 1, isFinished: true },
    { type: 'tool_result', callId: 'b', content: 'ok', reward: 1, isFinished: true },
  ]),
  // The recommended fields (docs/reference/metrics.md#recommended-fields).
  recommended: uploadBodies(
    6,
    {
      runName: 'own-loop',
      rolloutName: 'anything',
      environment: 'acme/math',
      split: 'train',
      rollout_info: { current_step: 40, task_index: 9 },
      metadata: {
        group_id: 'g-40-9',
        sample_idx: 2,
        n_samples: 8,
        phase: 'train',
        policy_step: 38,
        reward_total: 0.25,
        stop_reason: 'max_turns',
        num_turns: 1,
        session_id: 'sid-1',
        tokens: { prompt: 100, output: 20, tool: 5 },
      },
    },
    [
      { type: 'assistant_message', content: 'x' },
      { type: 'tool_call', name: 'probe', callId: 'c', content: '{}' },
      { type: 'tool_result', callId: 'c', content: 'probed', reward: 0.25 },
    ],
  ),
};
