/** Uploads of one short episode, as each integration sends them (docs/reference/metrics.md#integrations). */
export interface Example {
  id: string;
  name: string;
  events: readonly object[];
}

interface SentMessage {
  type: string;
  content: string;
  name?: string;
  callId?: string;
  reward?: number;
  isFinished?: boolean;
  metadata?: object;
}

const TIME = 1_795_215_000_000;

/** The start event and its messages, as the openreward package sends them. `intervalMs`: time between two messages. */
function events(number: number, start: object, messages: readonly SentMessage[], intervalMs = 0): object[] {
  const id = (position: number) => `00000000-0000-4000-8000-${(number * 1_000 + position).toString(16).padStart(12, '0')}`;
  const sent = messages.map((message, index) => ({
    eventType: 'message',
    eventId: id(index + 1),
    rolloutEventId: id(0),
    timestamp: TIME + index * intervalMs,
    index,
    isFinished: false,
    metadata: {},
    ...message,
  }));
  return [{ eventType: 'rollout', eventId: id(0), timestamp: TIME, ...start }, ...sent];
}

const split = { environment: 'acme/math', split: 'train' };
const prompt: readonly SentMessage[] = [
  { type: 'system_message', content: 'Use the tools.' },
  { type: 'user_message', content: 'How much is 1 + 1?' },
];

const skyrl = events(
  1,
  {
    runName: 'skyrl-openreward',
    rolloutName: 'acme-math-train-17',
    ...split,
    metadata: { stop_reason: 'finished', total_reward: 1.25, num_turns: 2 },
  },
  [
    ...prompt,
    { type: 'assistant_message', content: '<tool_call>\n{"name": "search", "arguments": {"text": "1 + 1"}}\n</tool_call>' },
    // md5("{turn}:{tool}")[:12], turns from 1.
    { type: 'tool_call', name: 'search', callId: '201c75b08c6a', content: '{"text": "1 + 1"}' },
    { type: 'tool_result', callId: '201c75b08c6a', content: 'It is 2.', reward: 0.25 },
    { type: 'assistant_message', content: '<tool_call>\n{"name": "submit", "arguments": {"answer": "2"}}\n</tool_call>' },
    { type: 'tool_call', name: 'submit', callId: 'b488d0c6f7bb', content: '{"answer": "2"}' },
    { type: 'tool_result', callId: 'b488d0c6f7bb', content: 'Right.', reward: 1, isFinished: true },
  ],
);

const slime = events(
  2,
  {
    runName: 'slime-training',
    rolloutName: 'acme-math-3f2a9c1b7d40-0a1b2c3d',
    ...split,
    task_spec: { question: '1 + 1', answer: '2' },
    metadata: { stop_reason: 'reached_terminal_state', num_tool_calls: 2, reward_sum: 1.5 },
  },
  [
    ...prompt,
    { type: 'assistant_message', content: 'Looking.' },
    // The same hash, turns from 0.
    { type: 'tool_call', name: 'search', callId: 'e5624fd63b7d', content: '{}' },
    { type: 'tool_result', callId: 'e5624fd63b7d', content: 'It is 2.', reward: 0.5 },
    { type: 'tool_call', name: 'submit', callId: 'db5abc7af70f', content: '{"answer": "2"}' },
    { type: 'tool_result', callId: 'db5abc7af70f', content: 'Right.', reward: 1, isFinished: true },
  ],
);

const tinker = events(
  3,
  {
    runName: 'tinker-math',
    rolloutName: 'acme-math-train-4-step12-r3',
    ...split,
    metadata: { step: 12, rollout_idx: 3, stop: 'max_tokens', num_tool_calls: 1, num_failed_tool_calls: 1, called_answer: false },
  },
  [
    prompt[1]!,
    { type: 'reasoning', content: 'Small numbers.' },
    { type: 'tool_call', name: 'search', callId: '5f0e4c9d2b7a4d1c9a3e8b6f7d2c1a0b', content: '{}' },
    {
      type: 'tool_result',
      callId: '5f0e4c9d2b7a4d1c9a3e8b6f7d2c1a0b',
      content: 'ValueError: no text',
      metadata: { error: 'ValueError: no text' },
    },
    { type: 'assistant_message', content: 'I give' },
  ],
);

const firehorse = events(
  4,
  {
    runName: 'math-eval',
    rolloutName: 'claude-code_some-model_2',
    ...split,
    split: 'test',
    task_spec: { question: '1 + 1', answer: '2' },
    run_info: { model_name: 'some-model', run_type: 'eval', framework: 'firehorse', framework_version: '0.3.1' },
    rollout_info: { task_index: 1, harness: 'claude-code', duration_ms: 41_000 },
    metadata: { model: 'some-model', agent: 'claude-code', effort: 'high' },
  },
  [
    prompt[1]!,
    { type: 'assistant_message', content: 'Two.' },
    { type: 'tool_call', name: 'submit', callId: 'toolu_01', content: '{"answer": "2"}' },
    { type: 'tool_result', callId: 'toolu_01', content: 'Right.', reward: 1, isFinished: true },
  ],
  9_000,
);

const recommended = events(
  5,
  {
    runName: 'own-loop',
    rolloutName: 'any name',
    ...split,
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
    { type: 'assistant_message', content: 'Looking.' },
    { type: 'tool_call', name: 'search', callId: 'c1', content: '{}' },
    { type: 'tool_result', callId: 'c1', content: 'It is 2.', reward: 0.25 },
  ],
);

export const EXAMPLES: readonly Example[] = [
  { id: 'recommended', name: 'Custom loop with all fields', events: recommended },
  { id: 'skyrl', name: 'SkyRL', events: skyrl },
  { id: 'slime', name: 'slime, miles', events: slime },
  { id: 'tinker', name: 'tinker', events: tinker },
  { id: 'firehorse', name: 'firehorse', events: firehorse },
];

export const textOf = ({ events: sent }: Example): string => JSON.stringify({ events: sent }, null, 2);
