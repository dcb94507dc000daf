import { randomUUID } from 'node:crypto';
import type { SharedPalestra } from '../support/palestra.ts';

export interface UploadedMessage {
  type: 'system_message' | 'user_message' | 'assistant_message' | 'reasoning' | 'tool_call' | 'tool_result';
  content: string;
  name?: string;
  callId?: string;
  reward?: number;
  isFinished?: boolean;
  metadata?: object;
}

export interface UploadedRollout {
  runName: string;
  rolloutName?: string;
  environment?: string;
  task?: number;
  step?: number;
  sample?: number;
  /** Expected size of its group. */
  n?: number;
  metadata?: object;
  taskSpec?: object;
  messages: UploadedMessage[];
  /** Indexes that never arrive. */
  skip?: number[];
}

type Service = Pick<SharedPalestra, 'url' | 'apiKey'>;

/** Uploads events over HTTP as the SDK does. */
export async function uploadEvents(palestra: Service, events: object[]): Promise<void> {
  const answer = await fetch(`${palestra.url}/v1/rollouts`, {
    method: 'POST',
    headers: { 'x-api-key': palestra.apiKey, 'content-type': 'application/json' },
    body: JSON.stringify({ events }),
  });
  if (!answer.ok) throw new Error(`POST /v1/rollouts: ${answer.status} ${await answer.text()}`);
}

export const messageEvents = (rollout: string, messages: readonly UploadedMessage[], first = 0): (UploadedMessage & { index: number })[] =>
  messages.map((message, i) => ({
    eventType: 'message',
    eventId: randomUUID(),
    rolloutEventId: rollout,
    timestamp: Date.now(),
    index: first + i,
    isFinished: false,
    metadata: {},
    ...message,
  }));

/** Uploads one rollout with its messages in batches. Returns its id. */
export async function uploadRollout(palestra: Service, rollout: UploadedRollout): Promise<string> {
  const id = randomUUID();
  const { runName, rolloutName, environment = 'palestra/whodunit', task = 0, step, sample, n, metadata, taskSpec, messages } = rollout;
  const given = { ...(sample !== undefined && { sample_idx: sample }), ...(n !== undefined && { n_samples: n }), ...metadata };
  await uploadEvents(palestra, [
    {
      eventType: 'rollout',
      eventId: id,
      timestamp: Date.now(),
      runName,
      rolloutName: rolloutName ?? `task-${task}-sample-${sample ?? 0}`,
      environment,
      split: 'train',
      rollout_info: { task_index: task, ...(step !== undefined && { current_step: step }) },
      metadata: given,
      task_spec: taskSpec ?? { case: `case-${task}`, suspects: 3 },
    },
  ]);
  const events = messageEvents(id, messages).filter(({ index }) => !rollout.skip?.includes(index));
  for (let at = 0; at < events.length; at += 2_000) await uploadEvents(palestra, events.slice(at, at + 2_000));
  return id;
}

/** A link for people without an account. */
export async function createShare(palestra: SharedPalestra, body: object): Promise<{ id: string; url: string; path: string }> {
  const answer = await fetch(`${palestra.url}/v1/shares`, {
    method: 'POST',
    headers: { 'x-api-key': palestra.apiKey, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  if (!answer.ok) throw new Error(`POST /v1/shares: ${answer.status} ${await answer.text()}`);
  return (await answer.json()) as { id: string; url: string; path: string };
}
