import { createHash, randomUUID } from 'node:crypto';
import { columnsOf, type RolloutColumns, type RolloutFigures } from '../../../libs/metrics/src/index.ts';
import { withoutNoise } from '../../../libs/kit/src/reward-text.ts';
import type { TestServer } from '../../support/server.ts';

/** A small run whose figures are known. */
export interface Seeded {
  id: string;
  step: number;
  task: number;
  sample: number;
  reward: number | null;
  failed: boolean;
}

const uuidOf = (text: string) => {
  const hex = createHash('sha256').update(text).digest('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
};

/** Rewards of `steps` × `tasks` × `n` rollouts, some unscored; the same for the same name. */
export function seeded(name: string, { steps = 4, tasks = 3, n = 4 } = {}): Seeded[] {
  const rollouts: Seeded[] = [];
  for (let step = 0; step < steps; step += 1)
    for (let task = 0; task < tasks; task += 1)
      for (let sample = 0; sample < n; sample += 1) {
        const id = uuidOf(`${name}/${step}/${task}/${sample}`);
        const chance = Number.parseInt(id.slice(0, 4), 16) % 10;
        const failed = chance === 0;
        rollouts.push({ id, step, task, sample, reward: chance === 1 ? null : chance + step * 2 > 8 ? 1 : 0, failed });
      }
  return rollouts;
}

/** The events of one rollout: a prompt, a call, its result, an answer. */
export function eventsOf(runName: string, { id, step, task, sample, reward, failed }: Seeded, text = 'the quick brown fox'): object[] {
  const message = (index: number, more: object) => ({
    eventType: 'message',
    eventId: randomUUID(),
    rolloutEventId: id,
    timestamp: 1_000 + index,
    index,
    content: '',
    isFinished: false,
    metadata: {},
    ...more,
  });
  return [
    {
      eventType: 'rollout',
      eventId: id,
      timestamp: 1_000,
      runName,
      step,
      environment: 'acme/math',
      split: 'train',
      rolloutName: `math-${task}`,
      metadata: {
        group_id: `g${step}-${task}`,
        sample_idx: sample,
        n_samples: 4,
        num_turns: 2,
        stop_reason: reward === null ? 'max_turns' : 'finished',
      },
      rollout_info: { task_index: task },
    },
    message(0, { type: 'user_message', content: `What is ${task} + ${task}?` }),
    message(1, { type: 'tool_call', name: 'add', callId: 'c1', content: JSON.stringify({ a: task, b: sample }) }),
    message(2, {
      type: 'tool_result',
      callId: 'c1',
      content: failed ? `ValueError: no number ${1000 + sample} at 0x7f${sample}a` : `${text} ${task * 2}`,
      metadata: failed ? { is_error: true } : {},
      ...(reward === null ? {} : { reward, isFinished: true }),
    }),
    message(3, { type: 'assistant_message', content: `It is ${task * 2}.` }),
  ];
}

export async function upload(server: TestServer, runName: string, rollouts: readonly Seeded[], text?: string): Promise<void> {
  const { status, body } = await server.request('POST', '/v1/rollouts', {
    body: { events: rollouts.flatMap((one) => eventsOf(runName, one, text)) },
  });
  if (status !== 200) throw new Error(JSON.stringify(body));
}

/** The same rollouts as metrics read them. */
export const columnsFrom = (rollouts: readonly Seeded[]): RolloutColumns => columnsOf(rollouts.map(figuresOf));

export const figuresOf = ({ step, task, reward, failed }: Omit<Seeded, 'id'>): RolloutFigures => ({
  group: `g${step}-${task}`,
  reward,
  rewardPositive: reward === null ? null : Math.max(0, reward),
  lastReward: reward ?? 0,
  rewardSteps: reward === null ? 0 : 1,
  stop: reward === null ? 'max_turns' : 'finished',
  turns: 2,
  assistantTurns: null,
  toolTurns: null,
  calls: 1,
  callErrors: failed ? 1 : 0,
  tokensOut: null,
  tokensTool: null,
  failure: null,
  environment: 'acme/math',
});

/** A key of another organisation, which has nothing. */
export async function strangerOf(server: TestServer): Promise<Record<string, string>> {
  const { rows } = await server.database.pool.query(`INSERT INTO organisations (name) VALUES ('other-${randomUUID()}') RETURNING id`);
  const key = `or_${randomUUID()}`;
  await server.database.pool.query(
    `INSERT INTO api_keys (org_id, user_id, name, prefix, hash, scopes) SELECT $1, id, 'x', 'or_', sha256($2::bytea), '{rollouts}' FROM users LIMIT 1`,
    [rows[0].id, Buffer.from(key)],
  );
  return { 'x-api-key': key };
}

/** As the API answers with these figures: without the noise of sums (docs/reference/metrics.md#numbers). */
export const asAnswered = <T>(figures: T): T =>
  JSON.parse(JSON.stringify(figures), (_key, value: unknown) => (typeof value === 'number' ? withoutNoise(value) : value)) as T;
