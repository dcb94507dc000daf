import { randomUUID } from 'node:crypto';
import type { SharedPalestra } from '../support/palestra.ts';
import { messageEvents, type UploadedMessage, uploadEvents } from './upload.ts';

export const RUN = 'explorer suite / 3 000';
const ENVIRONMENTS = ['palestra/whodunit', 'palestra/countdown'];
const STOPS = ['finished', 'max_turns', 'no_tool_call', 'infra_error'];
/** Sums of step rewards with their binary rounding: 0.1 + 0.2 is not 0.3. */
const STEP_REWARDS = [[0.1, 0.2], [0.3], [], [1], [0], [-0.5, 0.1], [0.7, 0.1, 0.2], [0.25]];

/** One rollout as its trainer uploads it. */
export interface Sent {
  id: string;
  step: number;
  env: string;
  task: number;
  sample: number;
  phase: 'train' | 'eval';
  stop: string;
  /** Sum of the rewards of its messages; null without any, or when the infrastructure ended it. */
  reward: number | null;
  tools: string[];
  failedTools: string[];
  messages: UploadedMessage[];
}

function messagesOf(n: number, step: number): UploadedMessage[] {
  const rewards = STEP_REWARDS[(n * 5 + step) % STEP_REWARDS.length]!;
  const fails = n % 11 === 0;
  const messages: UploadedMessage[] = [
    { type: 'user_message', content: `Case ${n}. Find who did it.` },
    { type: 'tool_call', name: n % 3 === 0 ? 'interview' : 'search', callId: 'a', content: `{"place":"room ${n % 17}"}` },
    {
      type: 'tool_result',
      callId: 'a',
      content: fails ? 'ValueError: no such room' : `Dust, and ${step >= 12 && n % 7 === 0 ? 'a lantern' : 'a letter'}.`,
      ...(fails && { metadata: { is_error: true } }),
    },
  ];
  for (const [i, reward] of rewards.entries())
    messages.push(
      { type: 'tool_call', name: 'accuse', callId: `b${i}`, content: '{"suspect":"Ada Finch"}' },
      { type: 'tool_result', callId: `b${i}`, content: 'Noted.', reward },
    );
  if (n === 1_234) messages.push({ type: 'assistant_message', content: 'Beside the clock sat a quetzal, of all birds, and said nothing.' });
  return messages;
}

/** 25 steps, 2 environments, 15 tasks, 4 samples: 3 000 rollouts in upload order. */
export function sentRollouts(): Sent[] {
  const sent: Sent[] = [];
  for (let step = 0; step < 25; step++)
    for (const env of ENVIRONMENTS)
      for (let task = 0; task < 15; task++)
        for (let sample = 0; sample < 4; sample++) {
          const n = sent.length;
          const messages = messagesOf(n, step);
          const stop = STOPS[n % 13 === 0 ? 3 : n % 5 === 0 ? 1 : n % 7 === 0 ? 2 : 0]!;
          const rewards = messages.flatMap(({ reward }) => (reward === undefined ? [] : [reward]));
          sent.push({
            id: randomUUID(),
            step,
            env,
            task,
            sample,
            phase: step % 10 === 0 && task < 3 ? 'eval' : 'train',
            stop,
            reward: rewards.length === 0 || stop === 'infra_error' ? null : rewards.reduce((sum, reward) => sum + reward, 0),
            tools: [...new Set(messages.flatMap(({ name }) => name ?? []))],
            failedTools: messages.flatMap((one, i) => (one.metadata ? [messages[i - 1]!.name!] : [])),
            messages,
          });
        }
  return sent;
}

export function eventsOf({ id, step, env, task, sample, phase, stop, messages }: Sent): object[] {
  const start = {
    eventType: 'rollout',
    eventId: id,
    timestamp: Date.now(),
    runName: RUN,
    rolloutName: `case-${task}-step${step}-r${sample}`,
    environment: env,
    split: phase === 'eval' ? 'test' : 'train',
    rollout_info: { task_index: task, current_step: step },
    run_info: { model_name: 'Qwen2.5-3B', run_type: phase },
    metadata: { stop_reason: stop, sample_idx: sample, n_samples: 4, phase },
    task_spec: { case: task },
  };
  return [start, ...messageEvents(id, messages)];
}

/** One request per step, so that steps arrive in order. Inside a request the store numbers rollouts in any order. */
export async function uploadSent(palestra: SharedPalestra, sent: readonly Sent[]): Promise<void> {
  for (const step of new Set(sent.map((one) => one.step)))
    await uploadEvents(palestra, sent.filter((one) => one.step === step).flatMap(eventsOf));
}
