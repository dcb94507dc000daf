import { randomUUID } from 'node:crypto';

/** Uploads with known exports: groups of four samples of one prompt. */

export interface Sample {
  id: string;
  run: string;
  group: number;
  sample: number;
  /** null: no message has a reward. */
  reward: number | null;
  step: number;
}

export interface GroupOfFour {
  rewards: (number | null)[];
  step?: number;
}

/** Rewards by group: mixed, all equal, unscored, one scored, spread. The first and the last give pairs. */
export const GROUPS: GroupOfFour[] = [
  { rewards: [0, 1, 1, 0] },
  { rewards: [1, 1, 1, 1] },
  { rewards: [null, null, null, null] },
  { rewards: [null, 0.5, null, null] },
  { rewards: [-1, 0.25, null, 3], step: 2 },
];

/** Events of `POST /v1/rollouts` for the groups, with the recommended fields. */
export function uploadOf(run: string, groups: readonly GroupOfFour[] = GROUPS): { events: object[]; samples: Sample[] } {
  const events: object[] = [];
  const samples: Sample[] = [];
  for (const [group, { rewards, step = 1 }] of groups.entries()) {
    for (const [sample, reward] of rewards.entries()) {
      const one = { id: randomUUID(), run, group, sample, reward, step };
      samples.push(one);
      events.push(startOf(one), ...messagesOf(one));
    }
  }
  return { events, samples };
}

function startOf({ id, run, group, sample, step }: Sample): object {
  return {
    eventType: 'rollout',
    eventId: id,
    timestamp: 1_700_000_000_000 + group,
    runName: run,
    rolloutName: `task-${group}`,
    environment: 'acme/whodunit',
    split: 'train',
    task_spec: { seed: group },
    run_info: { model_name: 'tiny', run_type: 'train' },
    rollout_info: { task_index: group, current_step: step, env_version: '7' },
    metadata: { group_id: `g${group}`, sample_idx: sample, n_samples: 4, note: 'é', session_token: `sk-${'a'.repeat(32)}` },
  };
}

function messagesOf({ id, group, sample, reward }: Sample): object[] {
  const message = (index: number, type: string, more: object) => ({
    eventType: 'message',
    eventId: randomUUID(),
    rolloutEventId: id,
    timestamp: 1_700_000_000_000 + index,
    index,
    type,
    isFinished: false,
    metadata: {},
    ...more,
  });
  return [
    message(0, 'system_message', { content: 'You are a detective.' }),
    message(1, 'user_message', { content: `Case ${group}: who was it?` }),
    message(2, 'reasoning', { content: 'Let me think.' }),
    message(3, 'assistant_message', { content: `Suspect ${sample}.` }),
    message(4, 'tool_call', { name: 'accuse', callId: 'c', content: `{"name": "suspect ${sample}"}` }),
    message(5, 'tool_result', {
      callId: 'c',
      content: reward === null ? 'unclear' : 'noted',
      isFinished: true,
      ...(reward === null ? {} : { reward }),
    }),
  ];
}

/** In batches of the size of the SDK. */
export async function upload(post: (events: object[]) => Promise<{ status: number; body: any }>, events: readonly object[]): Promise<void> {
  for (let at = 0; at < events.length; at += 120) {
    const answer = await post(events.slice(at, at + 120));
    if (answer.status !== 200) throw new Error(`upload: ${answer.status} ${JSON.stringify(answer.body)}`);
  }
}
